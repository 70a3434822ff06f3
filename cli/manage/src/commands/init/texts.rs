//! The texts of the configuration files.

use super::files::Directory;
use super::{Broker, InitArgs, SCHEDULER, quoted};
use std::net::SocketAddr;
use std::path::Path;

const HEAD: &str = "# Written by `ebbtide-manage init`; yours to change.\n";

/// The scheduler's.
pub(super) fn scheduler(
    args: &InitArgs,
    broker: &Broker<'_>,
    password: &str,
    directory: &Directory,
) -> String {
    let home = directory.path("scheduler");
    let database = args
        .database
        .clone()
        .unwrap_or_else(|| format!("sqlite://{}", home.join("region.db").display()));
    let metrics = beside(args.listen);
    let mut text = format!("{HEAD}[grpc]\nlisten = \"{}\"\n", args.listen);
    let tls = format!(
        "certificate = {}\nkey = {}\n",
        quoted(&home.join("server.crt")),
        quoted(&home.join("server.key"))
    );
    if !args.open {
        text.push_str(&format!("[grpc.tls]\n{tls}"));
    }
    text.push_str(&format!("[http]\nlisten = \"{metrics}\"\n"));
    if !args.open {
        let tokens = quoted(&home.join("tokens.toml"));
        text.push_str(&format!("[http.tls]\n{tls}[auth]\ntokens = {tokens}\n"));
    }
    let url = quoted(Path::new(&database));
    text.push_str(&format!("[database]\nurl = {url}\n"));
    text.push_str(&bus(broker, SCHEDULER, password, &home));
    text.push_str("# An agent is believed only what its own login to the broker says.\nagent_identity = \"user-id\"\n");
    text
}

/// The one of a host's agent.
pub(super) fn agent(
    args: &InitArgs,
    broker: &Broker<'_>,
    host: &str,
    password: &str,
    directory: &Directory,
) -> String {
    let home = match &args.agent_directory {
        Some(there) => there.clone(),
        None => directory.path("agents").join(host),
    };
    let state = quoted(&home.join("state"));
    let mut text = format!("{HEAD}host = \"{host}\"\nstate_dir = {state}\n");
    text.push_str(&bus(broker, &format!("agent-{host}"), password, &home));
    text.push_str("identity = \"user-id\"\n");
    text.push_str(&format!("[driver]\nkind = \"{}\"\n", args.driver));
    if args.driver == "simulated" {
        text.push_str(
            "[driver.simulated]\ninventory = { VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }\n",
        );
    }
    text
}

pub(super) fn command(directory: &Directory, names: &[String], listen: SocketAddr) -> String {
    let name = names.first().map_or("localhost", String::as_str);
    format!(
        "{HEAD}endpoint = \"https://{name}:{}\"\nca = {}\ntoken_file = {}\n",
        listen.port(),
        quoted(&directory.path("ca.pem")),
        quoted(&directory.path("operator/token")),
    )
}

/// Lines for rabbitmq.conf.
pub(super) fn rabbitmq(directory: &Directory) -> String {
    let at = |name: &str| directory.path("broker").join(name).display().to_string();
    format!(
        "# Written by `ebbtide-manage init`: for the broker's rabbitmq.conf; copy the files to where it may read them.\n\
         listeners.ssl.default = 5671\nlisteners.tcp = none\n\
         ssl_options.cacertfile = {}\nssl_options.certfile = {}\nssl_options.keyfile = {}\n\
         ssl_options.verify = verify_none\nmax_message_size = {}\n",
        at("ca.pem"),
        at("broker.crt"),
        at("broker.key"),
        ebbtide_bus::MAX_BODY_BYTES,
    )
}

fn bus(broker: &Broker<'_>, user: &str, password: &str, home: &Path) -> String {
    let mut text = format!(
        "[bus]\nurls = [\"{}\"]\nprefix = \"{}\"\n",
        with_login(broker.url, user, password),
        broker.prefix
    );
    if broker.root.is_some() {
        let ca = quoted(&home.join("broker-ca.pem"));
        text.push_str(&format!("ca = {ca}\n"));
    }
    text
}

/// The URL of a broker with another login than the one that may stand in it.
fn with_login(url: &str, user: &str, password: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("amqp", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{user}:{password}@{host}{path}")
}

/// The address for metrics: the next port; any if any was asked for.
fn beside(listen: SocketAddr) -> SocketAddr {
    let port = match listen.port() {
        0 => 0,
        port => port.checked_add(1).unwrap_or(port - 1),
    };
    SocketAddr::new(listen.ip(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_takes_the_place_of_the_one_in_the_url() {
        for (url, with) in [
            ("amqp://b:1/%2f", "amqp://u:p@b:1/%2f"),
            ("amqps://x:y@b", "amqps://u:p@b"),
            ("amqp://[::1]:5672", "amqp://u:p@[::1]:5672"),
            ("amqp://b?heartbeat=5", "amqp://u:p@b?heartbeat=5"),
        ] {
            assert_eq!(with_login(url, "u", "p"), with);
        }
    }

    #[test]
    fn metrics_have_the_port_beside() {
        let of = |text: &str| beside(text.parse().unwrap()).to_string();
        assert_eq!(of("127.0.0.1:7470"), "127.0.0.1:7471");
        assert_eq!(of("127.0.0.1:0"), "127.0.0.1:0");
        assert_eq!(of("[::]:65535"), "[::]:65534");
    }
}
