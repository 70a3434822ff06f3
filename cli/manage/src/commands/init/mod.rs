//! `ebbtide-manage init`: everything that a small region needs to be safe, with one call. An
//! authority and certificates, a token for the operator, a login to the broker for the scheduler
//! and for each agent, and the configuration that uses them.

mod certificates;
mod files;
mod texts;

use crate::error::ManageError;
use certificates::Authority;
use clap::Args;
use ebbtide_access::{Role, TokenFile};
use ebbtide_bus::{BrokerUrl, Definitions, Login, QueuePrefix};
use ebbtide_model::names::check_host_name;
use ebbtide_runtime::{clock, ids};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, text};
use files::Directory;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
What is there stays as it is: run it again to add a host, or delete a file (a certificate that
is about to expire) and run it again to have it made anew. Nothing is sent anywhere.

Examples:
  ebbtide-manage init /etc/ebbtide --host compute-1 --host compute-2
  rabbitmqctl import_definitions /etc/ebbtide/broker/definitions.json
  ebbtide-scheduler --config /etc/ebbtide/scheduler/scheduler.toml

  ebbtide-manage init region --host a --listen 0.0.0.0:7470 --name s.example --broker amqps://b.example";

/// The login of the scheduler; agents have `agent-HOST`, as `bus.agent_user` says.
const SCHEDULER: &str = "ebbtide-scheduler";

/// What to make, and where.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// The directory for all of it; made if it is not there, for its owner only
    pub directory: PathBuf,
    /// A compute host; may be repeated
    #[arg(long = "host", value_name = "HOST", required = true)]
    pub hosts: Vec<String>,
    /// Where the scheduler listens; metrics have the next port
    #[arg(long, default_value = "127.0.0.1:7470", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// A name or address by which the scheduler is called, for its certificate; may be repeated
    /// [default: localhost and 127.0.0.1]
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// The broker, without a login
    #[arg(long, default_value = "amqp://127.0.0.1:5672/%2f", value_name = "URL")]
    pub broker: String,
    /// Roots of the broker's certificate (PEM), for amqps:// [default: one is made for it]
    #[arg(long, value_name = "FILE")]
    pub broker_ca: Option<PathBuf>,
    /// First part of every queue's name: several regions can share a broker
    #[arg(long, default_value = ebbtide_bus::DEFAULT_PREFIX, value_name = "PREFIX")]
    pub prefix: String,
    /// The region's database [default: an SQLite file in DIRECTORY/scheduler]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// The hypervisor of the hosts
    #[arg(long, default_value = "libvirt", value_parser = ["libvirt", "simulated"])]
    pub driver: String,
    /// Where an agent's directory will be on its host [default: where it is written]
    #[arg(long, value_name = "DIRECTORY")]
    pub agent_directory: Option<PathBuf>,
    /// How long certificates are valid
    #[arg(long, default_value_t = 365, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// Neither certificates nor tokens: every process of this machine is an operator (to try things
    /// out)
    #[arg(long, conflicts_with_all = ["names", "days"])]
    pub open: bool,
}

/// The broker as the region uses it.
struct Broker<'a> {
    url: &'a str,
    parsed: BrokerUrl,
    prefix: QueuePrefix,
    /// A PEM text of its certificate's root.
    root: Option<String>,
}

/// Makes what is missing.
///
/// # Errors
/// [`ManageError::Init`] for what cannot be written, [`CliError::Usage`] for addresses and names
/// that do not fit.
pub fn run(context: &mut Context, args: &InitArgs) -> Result<(), CliError> {
    let usage = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    for host in &args.hosts {
        check_host_name(host).map_err(|error| usage(&error))?;
    }
    let hosts: BTreeSet<&str> = args.hosts.iter().map(String::as_str).collect();
    if args.open && !args.listen.ip().is_loopback() {
        return Err(CliError::Usage(format!(
            "--open with --listen {}: without certificates and tokens the scheduler listens on a loopback address only",
            args.listen
        )));
    }
    let parsed: BrokerUrl = args.broker.parse().map_err(|error| usage(&error))?;
    parsed.check_secret(false).map_err(|error| usage(&error))?;
    let mut broker = Broker {
        url: &args.broker,
        parsed,
        prefix: QueuePrefix::new(&args.prefix).map_err(|error| usage(&error))?,
        root: None,
    };
    let mut directory = Directory::take(&args.directory)?;

    let needs_authority = !args.open || (broker.parsed.is_tls() && args.broker_ca.is_none());
    let authority = needs_authority
        .then(|| Authority::take(&mut directory))
        .transpose()?;
    if broker.parsed.is_tls() {
        broker.root = Some(match &args.broker_ca {
            Some(file) => std::fs::read_to_string(file).map_err(|error| ManageError::Init {
                path: file.clone(),
                problem: error.to_string(),
            })?,
            None => authority
                .as_ref()
                .map(|a| a.pem.clone())
                .unwrap_or_default(),
        });
    }
    if let Some(authority) = &authority {
        if !args.open {
            scheduler_identity(args, authority, &mut directory)?;
        }
        if broker.parsed.is_tls() && args.broker_ca.is_none() {
            let name = [broker.parsed.host().to_owned()];
            authority.server(&mut directory, "broker/broker", &name, args.days)?;
            directory.add(
                "broker/ca.pem",
                "root of the broker's certificate",
                &authority.pem,
            )?;
            let text = texts::rabbitmq(&directory);
            directory.add(
                "broker/rabbitmq.conf",
                "lines for the broker's configuration",
                &text,
            )?;
        }
    }
    logins(args, &hosts, &broker, &mut directory)?;
    print(context, args, &hosts, &directory)
}

/// The scheduler's certificate, and the operator's token with the command's configuration.
fn scheduler_identity(
    args: &InitArgs,
    authority: &Authority,
    directory: &mut Directory,
) -> Result<(), CliError> {
    let mut names = args.names.clone();
    for near in ["localhost", "127.0.0.1"] {
        if !names.iter().any(|name| name == near) {
            names.push(near.to_owned());
        }
    }
    authority.server(directory, "scheduler/server", &names, args.days)?;
    if directory.has("operator/token") {
        directory.kept("operator/token");
    } else {
        let file = directory.path("scheduler/tokens.toml");
        let now = clock::now();
        let token = TokenFile::change(&file, |tokens| {
            tokens.create("operator", Role::Operator, Vec::new(), now, None)
        })
        .map_err(ManageError::Access)?;
        let text = format!("{}\n", token.reveal());
        directory.replace(
            "operator/token",
            "an operator's token: its reader is an operator",
            &text,
        )?;
    }
    let text = texts::command(directory, &names, args.listen);
    directory.add(
        "operator/config.toml",
        "configuration of the command `ebbtide`",
        &text,
    )?;
    Ok(())
}

/// The logins to the broker, and the configuration of scheduler and agents, which holds them.
fn logins(
    args: &InitArgs,
    hosts: &BTreeSet<&str>,
    broker: &Broker<'_>,
    directory: &mut Directory,
) -> Result<(), CliError> {
    const FILE: &str = "broker/definitions.json";
    let mut definitions = match directory.read(FILE)? {
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| directory.wrong(FILE, &error.to_string()))?,
        None => Definitions::default(),
    };
    let before = definitions.clone();
    let vhost = broker.parsed.vhost();
    let mut texts = Vec::new();
    // A configuration that stays has a password that the definitions must keep.
    let name = "scheduler/scheduler.toml".to_owned();
    if directory.has(&name) && definitions.has(SCHEDULER) {
        directory.kept(&name);
    } else {
        let password = password();
        let login = Login::new(SCHEDULER, &password, salt());
        definitions.scheduler(&login, &broker.prefix, vhost);
        let text = texts::scheduler(args, broker, &password, directory);
        texts.push((name, "the scheduler's configuration", text));
    }
    for host in hosts {
        let user = format!("agent-{host}");
        let name = format!("agents/{host}/agent.toml");
        if directory.has(&name) && definitions.has(&user) {
            directory.kept(&name);
            continue;
        }
        let password = password();
        let login = Login::new(&user, &password, salt());
        definitions
            .agent(&login, &broker.prefix, vhost, host)
            .map_err(|error| CliError::Usage(error.to_string()))?;
        let text = texts::agent(args, broker, host, &password, directory);
        texts.push((name, "its agent's configuration", text));
    }
    // First the hashes: a password without one would stay, and open nothing.
    if before == definitions {
        directory.kept(FILE);
    } else {
        let text = serde_json::to_string_pretty(&definitions).unwrap_or_default();
        let what = "the broker's logins and rights, with hashes of passwords";
        directory.replace(FILE, what, &text)?;
    }
    for (name, what, text) in texts {
        directory.replace(&name, what, &text)?;
    }
    let Some(root) = &broker.root else {
        return Ok(());
    };
    let what = "root of the broker's certificate";
    directory.add("scheduler/broker-ca.pem", what, root)?;
    for host in hosts {
        directory.add(&format!("agents/{host}/broker-ca.pem"), what, root)?;
    }
    Ok(())
}

fn print(
    context: &mut Context,
    args: &InitArgs,
    hosts: &BTreeSet<&str>,
    directory: &Directory,
) -> Result<(), CliError> {
    let cells = |made: &files::CreatedFile| {
        let state = if made.new { "made" } else { "kept" };
        vec![
            TableCell::new(&made.name),
            TableCell::new(state),
            TableCell::new(&made.what),
        ]
    };
    let json = |made: &files::CreatedFile| {
        Json::object([
            (
                "file",
                Json::from(directory.path(&made.name).display().to_string()),
            ),
            ("made", Json::from(made.new)),
            ("what", Json::from(made.what.as_str())),
        ])
    };
    context.output.listing(Listing {
        columns: vec![
            text("file", "File"),
            text("state", "State"),
            text("what", "What it is"),
        ],
        rows: directory.made.iter().map(cells).collect(),
        json: Json::List(directory.made.iter().map(json).collect()),
        none: "nothing to make",
    })?;
    let at = |name: &str| directory.path(name).display().to_string();
    let first = hosts.first().copied().unwrap_or_default();
    let agent = format!("agents/{first}/agent.toml");
    let agent = match &args.agent_directory {
        Some(there) => there.join("agent.toml").display().to_string(),
        None => at(&agent),
    };
    let mut next = format!(
        "next, where the broker is: rabbitmqctl import_definitions {}\n\
         then: ebbtide-scheduler --config {}\n\
         on each host, with its directory of agents/: ebbtide-agent run --config {agent}\n",
        at("broker/definitions.json"),
        at("scheduler/scheduler.toml"),
    );
    if args.open {
        next.push_str("and: ebbtide host list");
    } else {
        let config = at("operator/config.toml");
        next.push_str(&format!("and: EBBTIDE_CONFIG={config} ebbtide host list"));
    }
    context.output.say(&next);
    Ok(())
}

/// In hexadecimal: nothing in it means something in a URL.
fn password() -> String {
    ids::secret()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn salt() -> [u8; 4] {
    let [a, b, c, d, ..] = ids::secret();
    [a, b, c, d]
}

/// A path as a value of TOML.
fn quoted(path: &Path) -> String {
    toml::Value::from(path.display().to_string()).to_string()
}
