//! A private RabbitMQ: node name, cookie, epmd, ports and files of its own, no plugins, no
//! configuration of the system's.
//!
//! Two things of its start are not as usual:
//! - **epmd** (Erlang's name server) normally turns itself into a daemon that outlives the broker
//!   and is shared by all of the machine. Here it is a child in the foreground, on a port of its
//!   own, started before the broker so that the broker finds it and starts none.
//! - **The start script** stays in front of the Erlang machine unless it believes to be run by
//!   systemd; then it is replaced by it (`exec`), and signals reach the right process. So it is
//!   made to believe that.

use super::{PrivateServer, ServerKind, ServerPlace};
use crate::amqp;
use crate::cluster::Member;
use crate::error::{Error, Result};
use crate::eventually::Pace;
use crate::process::{Process, Signal};
use crate::programs;
use std::ffi::OsString;
use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio::net::TcpStream;

/// RabbitMQ; see [`RabbitMq`].
#[derive(Debug)]
pub enum Rabbit {}

/// A private RabbitMQ. Its URL is `amqp://guest:guest@127.0.0.1:PORT/%2f`.
pub type RabbitMq = PrivateServer<Rabbit>;

/// Libraries that the broker loads most of its modules from, in this order at the head of the
/// search path. Without it Erlang looks for each of some thousand modules in up to 70 directories
/// of plugins that are never used; with it the start takes 4.1 instead of 5.6 seconds. One that
/// another version does not have is left out.
const ERLANG_LIBRARIES: [&str; 9] = [
    "kernel", "stdlib", "ssl", "inets", "compiler", "xmerl", "mnesia", "sasl", "tools",
];
const BROKER_LIBRARIES: [&str; 8] = [
    "rabbit",
    "rabbit_common",
    "ra",
    "rabbitmq_prelaunch",
    "cuttlefish",
    "ranch",
    "osiris",
    "observer_cli",
];

/// The file that [`RabbitMq::control`] runs; people may, too.
const CONTROL: &str = "rabbitmqctl";

impl ServerKind for Rabbit {
    const NAME: &'static str = "RabbitMQ";
    const SLUG: &'static str = "rabbitmq";
    /// AMQP, Erlang distribution, epmd.
    const PORTS: usize = 3;
    const READY: &'static str = "Server startup complete";
    const STOP: Signal = Signal::Term;
    /// Its users can read and write queues, not files.
    const ROOT_WILL_DO: bool = true;

    fn url(port: u16) -> String {
        format!("amqp://guest:guest@127.0.0.1:{port}/%2f")
    }

    async fn prepare(place: &ServerPlace) -> Result<()> {
        // Present and empty, so that the one of the system is not looked for.
        place.home.write("advanced.config", "[].\n").map(drop)
    }

    async fn launch(place: &ServerPlace, log: &Path) -> Result<Vec<Process>> {
        let [port, distribution_port, epmd_port] = place.ports[..] else {
            return Err(Error::BadAnswer {
                name: Self::NAME.to_owned(),
                reason: "it was given no ports".to_owned(),
            });
        };
        let scripts = programs::rabbitmq_scripts()?;
        // The nodes of a cluster have one epmd and one cookie.
        let shared = match &place.member {
            Some(Member::Rabbit { epmd, cookie }) => Some((*epmd, cookie.as_str())),
            _ => None,
        };
        let cookie = shared.map(|(_, cookie)| cookie);
        let epmd_port = shared.map_or(epmd_port, |(epmd, _)| epmd);
        write_control(place, epmd_port, cookie, &scripts)?;
        let epmd = match shared {
            Some(_) => None,
            None => Some(start_epmd(place, epmd_port).await?),
        };

        let mut broker = place
            .command(Self::NAME, scripts.join("rabbitmq-server"))
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("ERL_EPMD_PORT", epmd_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // "localhost" needs no name service; the first part differs so that a wrong epmd would
            // be noticed.
            .env("RABBITMQ_NODENAME", node_name(place)?)
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port.to_string())
            .env("RABBITMQ_DIST_PORT", distribution_port.to_string())
            .env("RABBITMQ_LOGS", "-")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                erlang_arguments(&scripts, cookie),
            );
        // Every place that RabbitMQ would otherwise look for below /etc and /var. Those of
        // configuration do not exist, except advanced.config.
        for (variable, name) in [
            ("RABBITMQ_CONF_ENV_FILE", "rabbitmq-env.conf"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq"),
            ("RABBITMQ_CONFIG_FILES", "conf.d"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
            ("RABBITMQ_BASE", ""),
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_QUORUM_DIR", "quorum"),
            ("RABBITMQ_STREAM_DIR", "stream"),
            ("RABBITMQ_FEATURE_FLAGS_FILE", "feature_flags"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "config"),
            ("RABBITMQ_SCHEMA_DIR", "schema"),
            ("RABBITMQ_PLUGINS_EXPAND_DIR", "plugins-expand"),
            ("RABBITMQ_PID_FILE", "pid"),
        ] {
            broker = broker.env(variable, place.join(name));
        }
        Ok([broker.spawn(log)?].into_iter().chain(epmd).collect())
    }

    async fn answers(place: &ServerPlace) -> Result<()> {
        let greeted = async { amqp::Connection::open(place.port()).await?.close().await };
        greeted.await.map_err(|reason| Error::BadAnswer {
            name: Self::NAME.to_owned(),
            reason,
        })
    }
}

impl RabbitMq {
    /// Publishes messages as a client that keeps to no limit of Ebbtide's: with this login (on the
    /// virtual host `/`), to this exchange and routing key. Each is confirmed by the broker.
    ///
    /// # Errors
    ///
    /// [`Error::BadAnswer`] if it cannot log in, or the broker does not take a message.
    pub async fn publish_as(
        &self,
        (user, password): (&str, &str),
        to: (&str, &str),
        bodies: &[Vec<u8>],
    ) -> Result<()> {
        let port = self.place.port();
        let published = async {
            let mut connection = amqp::Connection::open_as(port, user, password).await?;
            connection.publish(to, user, bodies).await?;
            connection.close().await
        };
        published.await.map_err(refused)
    }

    /// Throws away the messages of a queue of the virtual host `/` that are not on their way to a
    /// consumer, as an administrator might.
    ///
    /// # Errors
    ///
    /// [`Error::BadAnswer`] if the broker is away or has no such queue.
    pub async fn purge(&self, queue: &str) -> Result<()> {
        let port = self.place.port();
        let purged = async {
            let mut connection = amqp::Connection::open(port).await?;
            connection.purge(queue).await?;
            connection.close().await
        };
        purged.await.map_err(refused)
    }

    /// Removes a queue of the virtual host `/` with its messages, even if it has consumers.
    ///
    /// # Errors
    ///
    /// [`Error::BadAnswer`] if the broker is away. A queue that is not there counts as removed.
    pub async fn delete_queue(&self, queue: &str) -> Result<()> {
        let port = self.place.port();
        let deleted = async {
            let mut connection = amqp::Connection::open(port).await?;
            connection.delete(queue).await?;
            connection.close().await
        };
        deleted.await.map_err(refused)
    }

    /// Starts an epmd for the nodes of a cluster; `self` need not run.
    pub(crate) async fn start_epmd(&self, port: u16) -> Result<Process> {
        start_epmd(&self.place, port).await
    }

    /// The name of its node.
    pub(crate) fn node_name(&self) -> Result<String> {
        node_name(&self.place)
    }

    /// Runs `rabbitmqctl` on this broker, as an administrator would, and returns what it printed.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] with its output if it refuses; [`Error::ProgramMissing`].
    pub async fn control(&self, arguments: &[&str]) -> Result<String> {
        let place = &self.place;
        let log = place.join("rabbitmqctl.log");
        let process = place
            .command("rabbitmqctl", place.join(CONTROL))
            .args(arguments.iter().copied())
            .spawn(&log)?;
        let status = process.wait_exit(place.deadline).await?;
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if status.success() {
            return Ok(said);
        }
        Err(Error::Failed {
            program: format!("rabbitmqctl {}", arguments.join(" ")),
            status: status.to_string(),
            output: said,
        })
    }
}

/// Writes a `rabbitmqctl` for this broker: Debian's own speaks to the broker of the machine.
fn write_control(
    place: &ServerPlace,
    epmd_port: u16,
    cookie: Option<&str>,
    scripts: &Path,
) -> Result<()> {
    let cookie = cookie.map_or(String::new(), |cookie| {
        format!(" RABBITMQ_CTL_ERL_ARGS='-setcookie {cookie}'")
    });
    let text = format!(
        "#!/bin/sh\n# rabbitmqctl for the broker of this directory.\n\
         export HOME='{}' LC_ALL=C.UTF-8 ERL_EPMD_PORT={epmd_port} RABBITMQ_CONF_ENV_FILE='{}'{cookie}\n\
         exec '{}' --quiet --node '{}' \"$@\"\n",
        place.path().display(),
        place.join("rabbitmq-env.conf").display(),
        scripts.join("rabbitmqctl").display(),
        node_name(place)?,
    );
    let path = place.home.write(CONTROL, &text)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o755))
        .map_err(Error::io("set the mode of", &path))
}

fn refused(reason: String) -> Error {
    Error::BadAnswer {
        name: Rabbit::NAME.to_owned(),
        reason,
    }
}

/// Starts epmd and waits until it listens.
async fn start_epmd(place: &ServerPlace, port: u16) -> Result<Process> {
    let epmd = place
        .command("epmd", programs::find("epmd", "rabbitmq")?)
        .args(["-address", "127.0.0.1", "-port"])
        .arg(port.to_string())
        .spawn(place.join("epmd.log"))?;
    wait_for_epmd(&epmd, port, place).await?;
    Ok(epmd)
}

fn node_name(place: &ServerPlace) -> Result<String> {
    Ok(format!("ebbtide-{}@localhost", place.home.name()?))
}

/// Waits until epmd listens: it prints nothing that could be waited for.
async fn wait_for_epmd(epmd: &Process, port: u16, place: &ServerPlace) -> Result<()> {
    let mut pace = Pace::until(place.deadline);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .is_err()
    {
        if epmd.exit_status().is_some() || !pace.rest().await {
            break;
        }
    }
    // If epmd fails, its port is taken. The listener on that port is then another process.
    if epmd.exit_status().is_some() {
        return Err(Error::PortsTaken {
            name: "epmd".to_owned(),
            attempts: 1,
            ports: place.ports.clone(),
            tail: epmd.log_tail(),
        });
    }
    // If it still does not listen, the broker will say so.
    Ok(())
}

/// Distribution on the loopback interface only, no daemon, and the head of the search path. The
/// schedulers do not spin while they wait, because the broker shares its cores with everything else
/// (RabbitMQ's "Runtime Tuning" names these flags for that). The start script splits this at
/// blanks; Debian's paths have none.
fn erlang_arguments(scripts: &Path, cookie: Option<&str>) -> OsString {
    let mut arguments = OsString::from(
        "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
    );
    if let Some(cookie) = cookie {
        arguments.push(format!(" -setcookie {cookie}"));
    }
    let mut directories = library_directories(Path::new("/usr/lib/erlang/lib"), &ERLANG_LIBRARIES);
    // bin/rabbitmq-server is a link into …/rabbitmq_server-VERSION/sbin, and the libraries are in
    // …/plugins.
    if let Ok(script) = std::fs::canonicalize(scripts.join("rabbitmq-server")) {
        let plugins = script.ancestors().nth(2).map(|base| base.join("plugins"));
        directories.extend(library_directories(
            &plugins.unwrap_or_default(),
            &BROKER_LIBRARIES,
        ));
    }
    if !directories.is_empty() {
        arguments.push(" -pa");
        for directory in directories {
            arguments.push(" ");
            arguments.push(directory);
        }
    }
    arguments
}

/// `base/NAME-VERSION/ebin` for each of `names` that is there.
fn library_directories(base: &Path, names: &[&str]) -> Vec<PathBuf> {
    let present: Vec<PathBuf> = std::fs::read_dir(base)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    names
        .iter()
        .filter_map(|name| {
            present.iter().find(|path| {
                let file = path.file_name().and_then(|file| file.to_str());
                file.and_then(|file| file.rsplit_once('-'))
                    .is_some_and(|(library, _)| library == *name)
            })
        })
        .map(|path| path.join("ebin"))
        .filter(|ebin| ebin.is_dir())
        .collect()
}
