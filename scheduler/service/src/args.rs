//! The command line of `ebbtide-scheduler`.

use crate::config::{Config, ENVIRONMENT_PREFIX};
use crate::error::ServiceError;
use clap::Parser;
use std::path::PathBuf;

/// The preemptible-aware scheduler: decides, claims, and has victims evacuated.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-scheduler", version, after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file (TOML). Without it every key has its default.
    #[arg(long, short = 'c', env = "EBBTIDE_CONFIG_FILE")]
    pub config: Option<PathBuf>,
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
    /// Write the bound addresses here as JSON once the service answers: {"grpc": "…", "http": "…", "pid": …}.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Read and check the configuration, print it, and end.
    #[arg(long)]
    pub check_config: bool,
}

const EXAMPLES: &str = "\
Every key of the configuration can be set by the environment, too: EBBTIDE__REGION__NOTICE_ATTEMPTS=5 is region.notice_attempts.

Examples:
  ebbtide-scheduler --config /etc/ebbtide/scheduler.toml
  ebbtide-scheduler --database-url sqlite:///var/lib/ebbtide/region.db --bus-url amqp://guest:guest@127.0.0.1/%2f
  ebbtide-scheduler --config scheduler.toml --check-config

Exit codes: 0 ended as asked, 1 could not start or had to end, 2 wrong use or wrong configuration.";

impl Args {
    /// The configuration that file, environment and these flags make together.
    ///
    /// # Errors
    /// See [`Config::read`].
    pub fn config(
        &self,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ServiceError> {
        let mut flags: Vec<(&str, String)> = Vec::new();
        let mut set = |key: &'static str, value: &Option<String>| {
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
        Config::read(
            self.config.as_deref(),
            environment.filter(|(k, _)| k.starts_with(ENVIRONMENT_PREFIX)),
            &flags,
        )
    }
}

/// A string as TOML writes it, so that nothing in it is taken for something else.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
