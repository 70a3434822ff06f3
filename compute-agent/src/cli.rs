//! The command line of `ebbtide-agent`.

mod simulate;

pub use simulate::SimulateArgs;

use crate::config::{Config, Override, overrides_from};
use crate::error::AgentError;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The compute agent: one for each host. It takes notices from the scheduler, warns guests,
/// evacuates them, and reports.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-agent", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; `run` if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// For `run`.
    #[command(flatten)]
    pub run: ConfigArgs,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the agent until SIGTERM or SIGINT (the default).
    Run(ConfigArgs),
    /// Ask the agent that runs with this configuration whether it is ready, and end: for the health
    /// check of a container. It needs http.listen.
    Health(ConfigArgs),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at a simulated hypervisor, or make it misbehave. Works while its agent runs.
    Simulate(SimulateArgs),
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check it, without starting anything.
    Check(ConfigArgs),
}

/// Where the configuration comes from.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Configuration file (TOML).
    #[arg(
        long,
        short = 'c',
        env = "EBBTIDE_AGENT_CONFIG_FILE",
        value_name = "FILE"
    )]
    pub config: Option<PathBuf>,
    /// The host for which this agent speaks [host].
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Where journal, lock and the simulated hypervisor are [state_dir].
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<String>,
    /// amqp://user:password@host:port/vhost [bus.urls].
    #[arg(long, value_name = "URL")]
    pub bus_url: Option<String>,
    /// What is logged: error, warn, info, debug, or a tracing filter [log.filter].
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Log lines as JSON [log.format].
    #[arg(long)]
    pub log_json: bool,
    /// Any other key; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

const EXAMPLES: &str = "\
Every key of the configuration can be set by the environment, too:
EBBTIDE_AGENT__AGENT__HEARTBEAT_SECONDS=5 is agent.heartbeat_seconds, EBBTIDE_AGENT__HOST is host.

A configuration:
  host = \"host-a\"
  state_dir = \"/var/lib/ebbtide/agent\"
  [bus]
  urls = [\"amqp://ebbtide:secret@broker.example.org/region\"]
  [driver]
  kind = \"simulated\"
  [driver.simulated]
  inventory = { VCPU = 8, MEMORY_MB = { total = 16384, reserved = 512 }, DISK_GB = 100 }
  traits = [\"CUSTOM_RACK_7\"]

Examples:
  ebbtide-agent --config /etc/ebbtide/agent.toml
  ebbtide-agent run -c agent.toml --host host-b --state-dir /tmp/b --set agent.heartbeat_seconds=2
  ebbtide-agent config check -c agent.toml
  ebbtide-agent health -c agent.toml
  ebbtide-agent simulate --state-dir /var/lib/ebbtide/agent show
  ebbtide-agent simulate --state-dir /var/lib/ebbtide/agent fail --action hibernate --times 2

Exit codes: 0 ended as asked, 1 could not start, had to end, or is not ready, 2 wrong use or wrong
configuration, 3 another agent uses the state directory.";

impl ConfigArgs {
    /// The configuration that file, environment and these flags make together.
    ///
    /// # Errors
    /// See [`Config::read`]; a credential of systemd cannot be read.
    pub fn read(
        &self,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, AgentError> {
        let mut overrides = overrides_from(environment);
        let credentials = ebbtide_service_manager::credentials()
            .map_err(|error| AgentError::config("credential", error.to_string()))?;
        overrides.extend(credentials.into_iter().map(|(key, value)| Override {
            origin: format!("credential ebbtide_{key}"),
            key,
            value,
        }));
        let mut flag = |key: &str, value: &Option<String>, origin: &str| {
            overrides.extend(value.iter().map(|value| Override {
                key: key.to_owned(),
                value: value.clone(),
                origin: origin.to_owned(),
            }));
        };
        flag("host", &self.host, "--host");
        flag("state_dir", &self.state_dir, "--state-dir");
        flag("bus.urls", &self.bus_url, "--bus-url");
        flag("log.filter", &self.log, "--log");
        let json = self.log_json.then(|| "json".to_owned());
        flag("log.format", &json, "--log-json");
        for setting in &self.set {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                AgentError::config(
                    setting.clone(),
                    "--set takes KEY=VALUE, for example bus.prefix=test",
                )
            })?;
            flag(key, &Some(value.to_owned()), "--set");
        }
        Config::read(self.config.as_deref(), &overrides)
    }
}

/// What `config check` says about a good configuration. No passwords.
///
/// # Errors
/// Those of [`Config::amqp`].
pub fn describe(config: &Config) -> Result<String, AgentError> {
    let brokers: Vec<String> = config
        .amqp()?
        .brokers
        .iter()
        .map(ToString::to_string)
        .collect();
    let queue = config.queue_prefix()?.agent(&config.host)?;
    let fence = match config.fence.command.first() {
        Some(program) => format!("fence      {program}\n"),
        None => String::new(),
    };
    Ok(format!(
        "The configuration is good.\n\
         host       {}\n\
         state_dir  {}\n\
         brokers    {}\n\
         queue      {queue}\n\
         driver     {}\n\
         {fence}",
        config.host,
        config.state_dir.display(),
        brokers.join(", "),
        config.driver.kind,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn running_is_the_default_and_flags_reach_the_configuration() {
        for words in [&["ebbtide-agent"][..], &["ebbtide-agent", "run"][..]] {
            let flags = [
                "--host",
                "h",
                "--state-dir",
                "/tmp/x",
                "--log-json",
                "--set",
                "driver.simulated.inventory={ VCPU = 4 }",
                "--set",
                "bus.prefix=test",
            ];
            let cli = Cli::parse_from(words.iter().chain(&flags));
            let args = match cli.command {
                None => cli.run,
                Some(Command::Run(args)) => args,
                other => panic!("{other:?}"),
            };
            let config = args.read(std::iter::empty()).unwrap();
            assert_eq!(config.host, "h");
            assert_eq!(config.log.format, crate::config::LogFormat::Json);
            let described = describe(&config).unwrap();
            assert!(described.contains("queue      test.agent.h"), "{described}");
            assert!(!described.contains("guest:guest"), "{described}");
        }
    }

    #[test]
    fn a_set_without_a_value_is_explained() {
        let args = ConfigArgs {
            set: vec!["bus.prefix".to_owned()],
            ..ConfigArgs::default()
        };
        let error = args.read(std::iter::empty()).unwrap_err();
        assert!(error.to_string().contains("KEY=VALUE"), "{error}");
    }
}
