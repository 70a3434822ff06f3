//! Configuration: a TOML file, then the environment (`EBBTIDE_AGENT__BUS__PREFIX` is `bus.prefix`),
//! then flags; the later wins. Everything is checked before anything is started, and unknown keys
//! are errors, because a typing error would otherwise be a silent default.

use crate::driver::registry;
use crate::error::AgentError;
use crate::fence::{Fence, FenceSettings};
use crate::protocol::AgentPolicy;
use ebbtide_bus::{AmqpConfig, BrokerUrl, BusIdentity, QueueKind, QueuePrefix, TlsFiles};
use ebbtide_model::settings::{self, Setting, Shape, Type, check_ranges};
use ebbtide_model::{names, toml_text};
use ebbtide_telemetry::TelemetrySettings;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::{Table, Value};

/// Environment variables that begin so are configuration.
pub const ENVIRONMENT_PREFIX: &str = "EBBTIDE_AGENT__";

/// Where the state is without `state_dir`.
const STATE_DIR: &str = "/var/lib/ebbtide-agent";

/// Keys whose value is text even if it looks like something else (a host may be called `17`).
const TEXT_KEYS: &[&str] = &[
    "host",
    "state_dir",
    "bus.urls",
    "bus.prefix",
    "bus.ca",
    "bus.certificate",
    "bus.key",
    "log.filter",
    "telemetry.otlp_endpoint",
    "driver.nova.auth.password",
    "driver.nova.auth.token",
    "driver.nova.auth.application_credential_secret",
];

ebbtide_model::settings! {
    /// The agent's configuration.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Config: Plain {
        /// The host for which this agent speaks: its name in the region, and of its queue. Without
        /// it, or if it is empty, the name of the machine, as Nova's `host`.
        pub host: String = String::new() => key("compute-1");
        /// Where journal, lock and the simulated hypervisor are: a directory that only this agent
        /// uses, on a disk that lasts.
        pub state_dir: PathBuf = PathBuf::from(STATE_DIR) => key("/srv/ebbtide-agent");
        /// The connection to the scheduler.
        pub bus: BusSettings;
        /// Metrics and health of the agent.
        pub http: HttpSettings;
        /// Intervals and limits of the agent.
        pub agent: AgentSettings;
        /// Numbers of tries and time limits of evacuations.
        pub evacuation: AgentPolicy;
        /// The operator's fence, which ends a victim that the hypervisor does not end.
        pub fence: FenceSettings;
        /// Logging.
        pub log: LogSettings;
        /// Where traces of evacuations go.
        pub telemetry: AgentTelemetry;
        /// The driver.
        pub driver: DriverSettings;
    }
}

ebbtide_model::settings! {
    /// The table `bus`.
    #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct BusSettings: Default {
        /// The broker, `amqp://USER:PASSWORD@HOST:PORT/VHOST` or `amqps://…`; one, or a list of
        /// those of one cluster. SIGHUP takes new users and passwords into use, for the same
        /// brokers.
        urls: OneOrMany = OneOrMany::One("amqp://guest:guest@127.0.0.1:5672/%2f".to_owned())
            => key(r#"["amqps://agent-compute-1:PASSWORD@mq1:5671/%2f"]"#).secret().sighup();
        /// The first part of every queue's name; the same as the scheduler's.
        pub prefix: String = ebbtide_bus::DEFAULT_PREFIX.to_owned() => key("ebbtide-east");
        /// The kind of queue; the same as the scheduler's.
        pub queue_type: String = "classic".to_owned() => key("quorum").words(&["classic", "quorum"]);
        /// user-id: prove with every message which user of the broker sends it, as the scheduler's
        /// `bus.agent_identity` wants it.
        pub identity: AgentIdentity = AgentIdentity::None => key("user-id");
        /// For `amqps://`: roots of the broker's certificate in a PEM file, besides those of the
        /// system.
        pub ca: Option<PathBuf> = None => key("/etc/ebbtide/tls/broker-ca.pem");
        /// For `amqps://`: our certificate in a PEM file, if the broker asks for one; with key.
        pub certificate: Option<PathBuf> = None => key("/etc/ebbtide/tls/agent.pem");
        /// Its private key.
        pub key: Option<PathBuf> = None => key("/etc/ebbtide/tls/agent.key");
        /// Use `amqp://` (plain text, passwords included) to a broker on another machine.
        pub insecure: bool = false => key("true");
    }
}

/// See [`BusSettings::identity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentIdentity {
    /// The sender of a message is not verified.
    None,
    /// The broker verifies the user that sends a message.
    UserId,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl std::fmt::Debug for BusSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URLs may hold a password.
        f.debug_struct("BusSettings")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

ebbtide_model::settings! {
    /// The table `agent`. All times are in seconds.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct AgentSettings: Default {
        /// Time between two heartbeats if nothing changes. A third of the scheduler's
        /// `region.host_down_seconds` or less: two may get lost.
        // A third of the scheduler's default service down time or less: two may get lost.
        pub heartbeat_seconds: f64 = 10.0 => key("5.0").range(0.1..=3600.0);
        /// Time between two looks at the servers, for those that end by themselves and guests that
        /// release.
        // A guest that releases early should not wait noticeably.
        pub poll_seconds: f64 = 1.0 => key("0.5").range(0.05..=60.0);
        /// A call of the hypervisor that takes longer counts as failed. Writing the memory of a
        /// large guest to disk takes a minute.
        // Writing the memory of a large guest to disk takes a minute.
        // With a higher value a delivery could be older than RabbitMQ's consumer_timeout of 30
        // minutes.
        pub action_timeout_seconds: f64 = 120.0 => key("300.0").range(1.0..=1800.0);
        /// How long calls under way and reports may take at shutdown. Below the 90 s after which
        /// systemd kills.
        // Below the 90 s after which systemd kills the process.
        pub shutdown_seconds: f64 = 10.0 => key("30.0").range(0.0..=600.0);
        /// Commands in hand at the same time. A notice is in hand until its victim has ended, so
        /// this limits the evacuations at one time.
        // More than the number of servers of any host.
        pub prefetch: u16 = 4_096 => key("1024").range(16..=65_535);
    }
}

ebbtide_model::settings! {
    /// The table `http`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct HttpSettings: Default {
        /// Where `/metrics`, `/healthz` and `/readyz` are, ADDRESS:PORT, without TLS or login.
        /// Without it they are nowhere.
        // Not on by default: several agents may run on one machine.
        pub listen: Option<SocketAddr> = None => key("127.0.0.1:7472");
    }
}

/// The table `driver`.
#[derive(Clone, PartialEq)]
pub struct DriverSettings {
    /// Its name in the registry; `driver.kind`.
    pub kind: String,
    /// Its own table, `driver.KIND`.
    pub settings: Table,
}

impl std::fmt::Debug for DriverSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The settings may hold a password.
        f.debug_struct("DriverSettings")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Setting for DriverSettings {
    fn shape() -> Shape {
        Shape::Section(registry::keys)
    }
}

ebbtide_model::settings! {
    /// The table `log`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct LogSettings: Default {
        /// text for people, json (one object a line) for machines.
        pub format: LogFormat = LogFormat::Text => key("json");
        /// What is logged, as tracing filters are written.
        pub filter: String = "info".to_owned() => key("ebbtide_agent=debug,warn");
    }
}

ebbtide_model::settings! {
    /// The table `telemetry`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct AgentTelemetry: Default {
        /// Where spans are sent by OTLP over gRPC, `http://HOST:PORT` or `https://HOST:PORT` (with
        /// the system's roots). Not set: no traces. The agent traces what the scheduler traces.
        pub otlp_endpoint: Option<String> = None => key("http://127.0.0.1:4317");
    }
}

impl AgentTelemetry {
    /// The settings of the exporter. An agent begins no trace of its own.
    #[must_use]
    pub fn settings(&self) -> TelemetrySettings {
        TelemetrySettings {
            otlp_endpoint: self.otlp_endpoint.clone(),
            ..TelemetrySettings::default()
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line for people.
    Text,
    /// One JSON object a line.
    Json,
}

ebbtide_model::words!(AgentIdentity, LogFormat);

impl Setting for OneOrMany {
    fn shape() -> Shape {
        Shape::Value(Type::TextOrList)
    }
}

/// One setting from outside the file: its key with dots, its value, and what to call it in an
/// error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// For example `bus.prefix`.
    pub key: String,
    /// As it was written.
    pub value: String,
    /// For example `environment variable EBBTIDE_AGENT__BUS__PREFIX`.
    pub origin: String,
}

/// The settings among environment variables.
pub fn overrides_from(environment: impl Iterator<Item = (String, String)>) -> Vec<Override> {
    let setting = |(name, value): (String, String)| {
        let key = name.strip_prefix(ENVIRONMENT_PREFIX)?;
        let key = key.to_lowercase().replace("__", ".");
        let origin = format!("environment variable {name}");
        Some(Override { key, value, origin })
    };
    environment.filter_map(setting).collect()
}

impl Config {
    /// Reads the file, applies the overrides in their order, and checks everything.
    ///
    /// # Errors
    /// [`AgentError::ConfigFile`] with line and column, [`AgentError::Config`] with the key.
    pub fn read(file: Option<&Path>, overrides: &[Override]) -> Result<Self, AgentError> {
        let Some(path) = file else {
            return Self::parse(Path::new(""), "", overrides);
        };
        let text = std::fs::read_to_string(path).map_err(|error| AgentError::ConfigFile {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        Self::parse(path, &text, overrides)
    }

    /// The same of a file's text; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Config::read`]. No password of a URL is in it.
    pub fn parse(path: &Path, text: &str, overrides: &[Override]) -> Result<Self, AgentError> {
        let mut table = text
            .parse::<Table>()
            .map_err(|error| AgentError::ConfigFile {
                path: path.to_owned(),
                problem: toml_text::problem(text, error.span(), error.message()),
            })?;
        for setting in overrides {
            set(&mut table, setting)?;
        }
        Self::from_table(table)
    }

    /// Takes and checks a whole configuration.
    ///
    /// # Errors
    /// [`AgentError::Config`] with the key.
    pub fn from_table(mut table: Table) -> Result<Self, AgentError> {
        let named = text(&mut table, "host")?.filter(|host| !host.is_empty());
        let host = named.unwrap_or_else(machine_name);
        let state_dir = text(&mut table, "state_dir")?.unwrap_or_else(|| STATE_DIR.to_owned());
        let config = Self {
            host,
            state_dir: state_dir.into(),
            bus: section(&mut table, "bus")?,
            http: section(&mut table, "http")?,
            agent: section(&mut table, "agent")?,
            evacuation: section(&mut table, "evacuation")?,
            fence: section(&mut table, "fence")?,
            driver: driver(&mut table)?,
            log: section(&mut table, "log")?,
            telemetry: section(&mut table, "telemetry")?,
        };
        if let Some(key) = table.keys().next() {
            let known =
                "host, state_dir, bus, http, agent, evacuation, fence, driver, log, telemetry";
            return Err(AgentError::config(
                key,
                format!("it is unknown, use one of {known}"),
            ));
        }
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), AgentError> {
        names::check_host_name(&self.host)
            .map_err(|error| AgentError::config("host", error.to_string()))?;
        if self.state_dir.as_os_str().is_empty() {
            return Err(AgentError::config("state_dir", "it is empty"));
        }
        self.amqp()?;
        self.queue_prefix()?;
        check_ranges(&self.agent).map_err(|range| AgentError::out_of_range("agent", range))?;
        self.evacuation
            .check()
            .map_err(|(key, problem)| AgentError::config(format!("evacuation.{key}"), problem))?;
        self.fence
            .check()
            .map_err(|(key, problem)| AgentError::config(format!("fence.{key}"), problem))?;
        self.telemetry
            .settings()
            .check()
            .map_err(|error| AgentError::config("telemetry.otlp_endpoint", error.problem))?;
        registry::check(&self.driver.kind, &self.driver.settings)?;
        let filter = &self.log.filter;
        filter
            .parse::<tracing_subscriber::EnvFilter>()
            .map_err(|error| AgentError::config("log.filter", format!("{filter:?}: {error}")))?;
        Ok(())
    }

    /// The settings of the AMQP transport.
    ///
    /// # Errors
    /// [`AgentError::Config`] with the key; the URLs' text is not repeated.
    pub fn amqp(&self) -> Result<AmqpConfig, AgentError> {
        let urls: &[String] = match &self.bus.urls {
            OneOrMany::One(url) => std::slice::from_ref(url),
            OneOrMany::Many(urls) => urls,
        };
        if urls.is_empty() {
            return Err(AgentError::config(
                "bus.urls",
                "it is empty; name at least one broker",
            ));
        }
        let parsed: Result<Vec<BrokerUrl>, _> = urls.iter().map(|url| url.parse()).collect();
        let refused =
            |key: &str, error: ebbtide_bus::BusError| AgentError::config(key, error.to_string());
        let brokers = parsed.map_err(|error| refused("bus.urls", error))?;
        for broker in &brokers {
            broker
                .check_secret(self.bus.insecure)
                .map_err(|error| refused("bus.urls", error))?;
        }
        // At most 128 bytes are taken; the beginning of a long host name tells enough.
        let name: String = format!("ebbtide-agent {}", self.host)
            .chars()
            .take(100)
            .collect();
        let mut amqp = AmqpConfig::new(brokers, name);
        amqp.queue_kind = self
            .bus
            .queue_type
            .parse::<QueueKind>()
            .map_err(|error| refused("bus.queue_type", error))?;
        amqp.identity = match self.bus.identity {
            AgentIdentity::None => BusIdentity::None,
            AgentIdentity::UserId => BusIdentity::Agent,
        };
        amqp.tls_files = TlsFiles {
            ca: self.bus.ca.clone(),
            certificate: self.bus.certificate.clone(),
            key: self.bus.key.clone(),
        };
        // Read now so that an error is reported at once; read again for every connection.
        amqp.tls_files
            .check()
            .map_err(|error| refused("bus", error.into()))?;
        Ok(amqp)
    }

    /// The paths of what differs from `old` and counts at the next start only.
    #[must_use]
    pub fn changes_for_next_start(&self, old: &Self) -> Vec<String> {
        let keys = settings::keys::<Self>();
        settings::changes_for_next_start(&old.as_json(), &self.as_json(), &keys)
    }

    /// By key, passwords included.
    fn as_json(&self) -> serde_json::Value {
        let driver = &self.driver;
        serde_json::json!({
            "host": self.host,
            "state_dir": self.state_dir,
            "bus": self.bus,
            "http": self.http,
            "agent": self.agent,
            "evacuation": self.evacuation,
            "fence": self.fence,
            "log": self.log,
            "telemetry": self.telemetry,
            "driver": { "kind": driver.kind, driver.kind.as_str(): driver.settings },
        })
    }

    /// The first part of all queue names.
    ///
    /// # Errors
    /// [`AgentError::Config`].
    pub fn queue_prefix(&self) -> Result<QueuePrefix, AgentError> {
        QueuePrefix::new(&self.bus.prefix)
            .map_err(|error| AgentError::config("bus.prefix", error.to_string()))
    }

    /// What [`Agent::run`](crate::Agent::run) needs of it.
    ///
    /// # Errors
    /// [`AgentError::Config`].
    pub fn agent_config(&self) -> Result<crate::AgentConfig, AgentError> {
        let seconds = |value| Duration::try_from_secs_f64(value).unwrap_or(Duration::ZERO);
        let mut agent = crate::AgentConfig::new(&self.host, &self.state_dir);
        agent.queue_prefix = self.queue_prefix()?;
        agent.prefetch = self.agent.prefetch;
        agent.heartbeat_interval = seconds(self.agent.heartbeat_seconds);
        agent.poll_interval = seconds(self.agent.poll_seconds);
        agent.action_timeout = seconds(self.agent.action_timeout_seconds);
        agent.shutdown_grace = seconds(self.agent.shutdown_seconds);
        agent.policy = self.evacuation.clone();
        agent.fence = Fence::new(&self.fence);
        if agent.fence.is_some() {
            agent.policy.fence_tries = self.fence.tries;
        }
        Ok(agent)
    }
}

/// The name of this machine, as Nova takes it for `host`.
fn machine_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

fn text(table: &mut Table, key: &'static str) -> Result<Option<String>, AgentError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            let problem = format!("expected text, found {}", other.type_str());
            Err(AgentError::config(key, problem))
        }
    }
}

fn subtable(table: &mut Table, key: &str) -> Result<Table, AgentError> {
    match table.remove(key) {
        None => Ok(Table::new()),
        Some(Value::Table(section)) => Ok(section),
        Some(other) => {
            let problem = format!("expected a table, found {}", other.type_str());
            Err(AgentError::config(key, problem))
        }
    }
}

/// Reads one table, key by key first, so that a wrong type is reported with the name of its key.
fn section<T: serde::de::DeserializeOwned>(
    table: &mut Table,
    name: &'static str,
) -> Result<T, AgentError> {
    let section = subtable(table, name)?;
    for (key, value) in &section {
        let single = Table::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = single.try_into::<T>() {
            let key = format!("{name}.{key}");
            return Err(AgentError::config(
                key,
                toml_text::without_values(error.message()),
            ));
        }
    }
    section
        .try_into()
        .map_err(|error| AgentError::config(name, toml_text::without_values(error.message())))
}

fn driver(table: &mut Table) -> Result<DriverSettings, AgentError> {
    let mut section = subtable(table, "driver")?;
    let kind = match section.remove("kind") {
        None => registry::DEFAULT.to_owned(),
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(AgentError::config("driver.kind", "expected text")),
    };
    let mut settings = Table::new();
    for (name, value) in section {
        // Settings of a driver that is not used may stay in the file.
        let known = registry::DRIVERS.iter().any(|d| d.name == name);
        match value {
            Value::Table(own) if name == kind => settings = own,
            Value::Table(_) if known => {}
            _ => {
                let problem = "it is unknown: there are driver.kind and a table for each driver";
                return Err(AgentError::config(format!("driver.{name}"), problem));
            }
        }
    }
    Ok(DriverSettings { kind, settings })
}

/// Sets one key. The value is read as TOML if it is some (numbers, booleans, lists, inline tables),
/// else as text.
fn set(table: &mut Table, setting: &Override) -> Result<(), AgentError> {
    let refused = |problem: &str| {
        let problem = format!("{problem} ({})", setting.origin);
        AgentError::config(setting.key.clone(), problem)
    };
    let parts: Vec<&str> = setting.key.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(refused("it is no key: write TABLE.KEY"));
    }
    let Some((last, tables)) = parts.split_last() else {
        return Err(refused("it is no key: write TABLE.KEY"));
    };
    let mut here = table;
    for part in tables {
        here = here
            .entry((*part).to_owned())
            .or_insert_with(|| Value::Table(Table::new()))
            .as_table_mut()
            .ok_or_else(|| refused("a part of it is not a table"))?;
    }
    let plain = TEXT_KEYS.contains(&setting.key.as_str()) && !setting.value.starts_with('[');
    let parsed = if plain {
        None
    } else {
        let line = format!("value = {}", setting.value);
        line.parse::<Table>()
            .ok()
            .and_then(|mut t| t.remove("value"))
    };
    let value = parsed.unwrap_or_else(|| Value::String(setting.value.clone()));
    here.insert((*last).to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests;
