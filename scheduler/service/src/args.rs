//! The command line of `ebbtide-scheduler`.

use crate::config::{Config, ENVIRONMENT_PREFIX};
use crate::error::ServiceError;
use clap::Parser;
use ebbtide_nova_service::PROGRAM;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The preemptible-aware scheduler: decides, claims, and has victims evacuated.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-scheduler", version, after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file (TOML). Without it every key has its default.
    #[arg(long, short = 'c', env = "EBBTIDE_CONFIG_FILE")]
    pub config: Option<PathBuf>,
    /// In place of nova-scheduler: Nova's configuration file, as oslo.config reads it. May be
    /// repeated; later files count.
    #[arg(long, value_name = "NOVA_CONF", conflicts_with = "config")]
    pub config_file: Vec<PathBuf>,
    /// In place of nova-scheduler: a folder with more of Nova's configuration (*.conf, in order).
    /// May be repeated.
    #[arg(long, value_name = "FOLDER", conflicts_with = "config")]
    pub config_dir: Vec<PathBuf>,
    /// With --config-file: beside nova-scheduler, decide nothing. The program gets a copy of each
    /// request, and records what it would have decided beside nova-scheduler's answer. See
    /// `ebbtide-manage shadow report`.
    #[arg(long, conflicts_with = "config")]
    pub shadow: bool,
    /// With --config-file: where log lines go, instead of what nova.conf says or standard error.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// With --config-file: the folder of the log file, instead of what nova.conf says.
    #[arg(long, value_name = "FOLDER")]
    pub log_dir: Option<PathBuf>,
    /// With --config-file: log what is for finding errors, too, as `[DEFAULT] debug` does.
    #[arg(long, short = 'd')]
    pub debug: bool,
    /// Where the gRPC API listens [default: 127.0.0.1:7470].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Where metrics and health are [default: 127.0.0.1:7471].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http_listen: Option<String>,
    /// sqlite:///path, mysql://user:password@host/name or postgres://user:password@host/name.
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,
    /// amqp://user:password@host:port/vhost; repeat it for the other brokers of a cluster.
    #[arg(long, value_name = "URL")]
    pub bus_url: Vec<String>,
    /// What is logged: error, warn, info, debug, or a tracing filter.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Log lines as JSON.
    #[arg(long)]
    pub log_json: bool,
    /// Write the bound addresses here as JSON once the service answers: {"grpc": "…", "http": "…",
    /// "pid": …}.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Read and check the configuration, print it, and end.
    #[arg(long)]
    pub check_config: bool,
    /// Ask the scheduler that runs with this configuration on this machine whether it is ready, and
    /// end: for the health check of a container.
    #[arg(long, conflicts_with = "check_config")]
    pub health: bool,
    /// Mark the database as restored from a backup, and end: the region's, or with --config-file
    /// the ledger of an OpenStack. Schedulers then decide nothing (of an OpenStack: preempt no
    /// server) until `ebbtide-manage reconcile --apply`. Do this before the first scheduler starts
    /// on a restored database.
    #[arg(long, conflicts_with_all = ["check_config", "health", "shadow"])]
    pub restored: bool,
}

const EXAMPLES: &str = "\
Every key of the configuration can be set by the environment, too: EBBTIDE__REGION__NOTICE_ATTEMPTS=5 is region.notice_attempts.

With --config-file the program stands in place of nova-scheduler (see docs/openstack/openstack.md);
without, it runs a region of its own. Installed or linked under the name nova-scheduler it always
stands in its place, and finds nova.conf where Nova does.

Examples:
  ebbtide-scheduler --config-file /etc/nova/nova.conf
  ebbtide-scheduler --config-file /etc/nova/nova.conf --config-file /etc/nova/ebbtide.conf --shadow
  ebbtide-scheduler --config /etc/ebbtide/scheduler.toml
  ebbtide-scheduler --database-url sqlite:///var/lib/ebbtide/region.db --bus-url amqp://guest:guest@127.0.0.1/%2f
  ebbtide-scheduler --config scheduler.toml --check-config
  ebbtide-scheduler --config scheduler.toml --health
  ebbtide-scheduler --config scheduler.toml --restored
  ebbtide-scheduler --config-file /etc/nova/nova.conf --restored

Exit codes: 0 ended as asked, 1 could not start, had to end, or is not ready, 2 wrong use or wrong configuration.";

impl Args {
    /// True if the program stands in place of nova-scheduler: it is called by that name, or was
    /// given Nova's configuration. Deployments start it, and probe it, by its name.
    #[must_use]
    pub fn is_for_nova(&self, called: Option<&OsStr>) -> bool {
        let name = called.and_then(|called| Path::new(called).file_name());
        name == Some(OsStr::new(PROGRAM))
            || !self.config_file.is_empty()
            || !self.config_dir.is_empty()
            || self.shadow
    }

    /// The configuration that file, environment, credentials of systemd and these flags make
    /// together; the later wins.
    ///
    /// # Errors
    /// See [`Config::read`]; a credential cannot be read.
    pub fn config(
        &self,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ServiceError> {
        let credentials = ebbtide_service_manager::credentials()
            .map_err(|error| ServiceError::Config(format!("credential {error}")))?;
        let of_systemd = credentials.iter();
        let mut flags: Vec<(&str, String)> = of_systemd
            .map(|(key, value)| (key.as_str(), value.clone()))
            .collect();
        let mut set = |key, value: &Option<String>| {
            if let Some(value) = value {
                flags.push((key, quoted(value)));
            }
        };
        set("grpc.listen", &self.listen);
        set("http.listen", &self.http_listen);
        set("database.url", &self.database_url);
        set("log.filter", &self.log);
        if self.log_json {
            flags.push(("log.format", quoted("json")));
        }
        if !self.bus_url.is_empty() {
            let urls: Vec<String> = self.bus_url.iter().map(|url| quoted(url)).collect();
            flags.push(("bus.urls", format!("[{}]", urls.join(", "))));
        }
        let config = Config::read(
            self.config.as_deref(),
            environment.filter(|(k, _)| k.starts_with(ENVIRONMENT_PREFIX)),
            &flags,
        )?;
        Ok(config)
    }
}

/// A string as TOML writes it, so that nothing in it is taken for something else.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
