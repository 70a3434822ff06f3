//! Configuration: a TOML file, then the environment, then flags; the later wins.
//!
//! Every key has a default that works, so an empty file (or none) is a configuration. Unknown keys
//! are errors, because a typing error would otherwise silently select a default.

use crate::ConfigError;
use crate::Shadow;
use crate::quotas::Quotas;
use crate::secure::{self, AgentIdentity, Auth, CallerLimits, Tls};
use ebbtide_engine::EngineConfig;
use ebbtide_model::{Seconds, names, settings, toml_text};
use ebbtide_plugins::PluginConfig;
use ebbtide_region::RegionConfig;
use ebbtide_telemetry::TelemetrySettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Environment variables that begin so are configuration: `EBBTIDE__DATABASE__URL` is
/// `database.url`.
pub const ENVIRONMENT_PREFIX: &str = "EBBTIDE__";

ebbtide_model::settings! {
    /// Everything that can be configured.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Config: Default {
        /// The API.
        pub grpc: Grpc = Grpc::default();
        /// Metrics and health over HTTP.
        pub http: Http = Http::default();
        /// Where the state is kept.
        pub database: Database = Database::default();
        /// How agents are reached.
        pub bus: Bus = Bus::default();
        /// Authentication of callers.
        pub auth: Auth = Auth::default();
        /// How much of the scheduler one caller can have.
        pub limits: CallerLimits = CallerLimits::default();
        /// How much each tenant's project may have.
        pub quotas: Quotas = Quotas::default();
        /// What is written about the service's own work.
        pub log: Log = Log::default();
        /// Where traces of requests and evacuations go.
        pub telemetry: TelemetrySettings = TelemetrySettings::default();
        /// How servers, victims and agents are treated.
        pub region: RegionConfig = RegionConfig::default();
        /// How decisions are made.
        pub engine: EngineConfig = EngineConfig::default();
        /// Another way to decide that is only looked at.
        #[serde(skip_serializing_if = "Shadow::is_empty")]
        pub shadow: Shadow = Shadow::default() => section().sighup();
        /// Weighers and cost modules beside those that are built in.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub plugins: Vec<PluginConfig> = Vec::new() => section().sighup();
    }
}

ebbtide_model::settings! {
    /// See [`Config::grpc`].
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Grpc: Default {
        /// Where the API listens, ADDRESS:PORT. Port 0 takes a free one. Anything but a loopback
        /// address needs `[grpc.tls]` and `[auth]`, or an explicit decision against them.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7470)) => key("0.0.0.0:7470");
        /// Listen on other addresses than loopback without TLS, behind a proxy that does it.
        /// Without that proxy tokens can be read on the way.
        pub insecure: bool = false => key("true");
        /// Certificates; without them connections are in plain text.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tls: Option<Tls> = None;
    }
}

ebbtide_model::settings! {
    /// See [`Config::http`].
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Http: Default {
        /// Where /metrics, /healthz and /readyz are, ADDRESS:PORT. Port 0 takes a free one.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7471)) => key("0.0.0.0:7471");
        /// Listen on other addresses than loopback without TLS.
        pub insecure: bool = false => key("true");
        /// Certificates; without them connections are in plain text.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tls: Option<Tls> = None;
    }
}

ebbtide_model::settings! {
    /// See [`Config::database`].
    #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Database: Default {
        /// Where the state is kept: `sqlite:///path/to/file`, `mysql://user:password@host/name`
        /// (MariaDB) or `postgres://user:password@host/name`. The host may be a list
        /// (`host1:3306,host2,host3`): the first server that takes writes is used. SIGHUP takes a
        /// new user and password into use, for the same database.
        pub url: String = "sqlite://ebbtide.db".to_owned()
            => key("mysql://ebbtide:PASSWORD@db/ebbtide").secret().sighup();
        /// Connections to the database at most.
        pub max_connections: u32 = 8 => key("16").range(1..=1000);
        /// Decisions, servers and evacuations that ended longer ago are deleted. Has to be longer
        /// than `region.longest_budget_window_seconds`.
        pub keep_days: u32 = 90 => key("365").range(1..=36_500);
        /// Instead of `keep_days`, for regions in which very much ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub keep_minutes: Option<u32> = None => key("1440").range(1..);
        /// A directory: before they are deleted, records are written there, one JSON object a line,
        /// in files by kind and day. Not set: nothing is kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub archive: Option<PathBuf> = None => key("/var/lib/ebbtide/archive");
        /// How long a scheduler that has fallen silent keeps its duty from others.
        // Short for a scheduler that waits to take over, long for a machine that is busy for a
        // moment.
        pub lease_seconds: u32 = 6 => key("10").range(2..=60);
        /// How long the database may take for anything before it counts as away.
        // Waiting for a busy database is better than giving up, because after a timeout the
        // state of the operation is unknown.
        pub timeout_seconds: u32 = 60 => key("30").range(1..=3600);
        /// SQLite only: the largest size of the file, in pages of 4096 bytes. Not set: no limit but
        /// the disk.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sqlite_max_pages: Option<u32> = None => key("1000000").unit("pages of 4096 bytes");
    }
}

impl Database {
    /// How long what is over stays in the database.
    #[must_use]
    pub fn retention(&self) -> Seconds {
        let days = Seconds(self.keep_days.saturating_mul(24 * 3600));
        self.keep_minutes
            .map_or(days, |minutes| Seconds(minutes.saturating_mul(60)))
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may hold a password.
        f.debug_struct("Database")
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

ebbtide_model::settings! {
    /// See [`Config::bus`].
    #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Bus: Default {
        /// The brokers, `amqp://user:password@host:port/vhost` or `amqps://…`; several are tried in
        /// turn. SIGHUP takes new users and passwords into use, for the same brokers.
        pub urls: Vec<String> = vec!["amqp://guest:guest@127.0.0.1:5672/%2f".to_owned()]
            => key(r#"["amqps://ebbtide:PASSWORD@mq1:5671/%2f"]"#).secret().sighup();
        /// First part of every queue's name: several regions can share a broker. The same in the
        /// agents' files.
        pub prefix: String = ebbtide_bus::DEFAULT_PREFIX.to_owned() => key("ebbtide-east");
        /// classic (durable, on one node) or quorum (replicated over a cluster). A queue that
        /// exists cannot change its kind. The same in the agents' files.
        pub queue_type: String = "classic".to_owned() => key("quorum").words(&["classic", "quorum"]);
        /// user-id: an agent is believed only what its login to the broker may say (see
        /// `agent_user`). none: every client of the broker is believed.
        pub agent_identity: AgentIdentity = AgentIdentity::None => key("user-id");
        /// With `agent_identity = "user-id"`: which login speaks for a host; `{host}` is the host's
        /// name and has to be in it.
        pub agent_user: String = "agent-{host}".to_owned() => key("compute-{host}");
        /// With `agent_identity = "user-id"`: further logins and their hosts, for an agent that
        /// looks after several; "*" for all.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub agent_users: BTreeMap<String, Vec<String>> = BTreeMap::new()
            => key(r#"{ "agent-central" = ["*"] }"#);
        /// For `amqps://`: roots of the broker's certificate in a PEM file, besides those of the
        /// system. Read again for every connection.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca: Option<PathBuf> = None => key("/etc/ebbtide/tls/broker-ca.pem");
        /// For `amqps://`: our certificate in a PEM file, if the broker asks for one; with key.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf> = None => key("/etc/ebbtide/tls/scheduler.pem");
        /// Its private key.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf> = None => key("/etc/ebbtide/tls/scheduler.key");
        /// Use `amqp://` (plain text, passwords included) to a broker on another machine.
        pub insecure: bool = false => key("true");
    }
}

impl Bus {
    /// The files of TLS.
    #[must_use]
    pub fn tls_files(&self) -> ebbtide_bus::TlsFiles {
        ebbtide_bus::TlsFiles {
            ca: self.ca.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        }
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URLs may hold a password.
        f.debug_struct("Bus")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

ebbtide_model::settings! {
    /// See [`Config::log`].
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Log: Default {
        /// text for people, json (one object a line) for machines.
        pub format: LogFormat = LogFormat::Text => key("json");
        /// What is logged, as tracing filters are written.
        pub filter: String = "info".to_owned() => key("ebbtide=debug,warn");
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

ebbtide_model::words!(LogFormat);

impl Config {
    /// Reads file and environment, and lets `flags` (`("database.url", value)`) have the last word.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] that names file, line and key.
    pub fn read(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigError> {
        let Some(path) = file else {
            return Self::parse(Path::new(""), "", environment, flags);
        };
        let text = std::fs::read_to_string(path).map_err(|e| {
            ConfigError::Wrong(format!("configuration file {}: {e}", path.display()))
        })?;
        Self::parse(path, &text, environment, flags)
    }

    /// The same of a file's text; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Config::read`]. No password of a URL is in it.
    pub fn parse(
        path: &Path,
        text: &str,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigError> {
        let wrong = |problem: String| ConfigError::Wrong(names::hide_logins(&problem));
        let in_file = |e: toml::de::Error| {
            let problem = toml_text::problem(text, e.span(), e.message());
            wrong(format!("configuration file {}: {problem}", path.display()))
        };
        // First as it stands, so that an error can point to its line.
        toml::from_str::<Self>(text).map_err(in_file)?;
        let mut table: Table = text.parse().map_err(in_file)?;
        for (name, value) in environment {
            if let Some(path) = name.strip_prefix(ENVIRONMENT_PREFIX) {
                let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
                set(&mut table, &keys, &value)
                    .map_err(|e| wrong(format!("environment variable {name}: {e}")))?;
            }
        }
        for (key, value) in flags {
            let keys: Vec<String> = key.split('.').map(str::to_owned).collect();
            set(&mut table, &keys, value)
                .map_err(|e| wrong(format!("option or credential for {key}: {e}")))?;
        }
        let mut config: Self = Value::Table(table)
            .try_into()
            .map_err(|e: toml::de::Error| {
                // From a variable or an option: the file was read already.
                wrong(format!(
                    "configuration: {}",
                    toml_text::without_values(e.message())
                ))
            })?;
        crate::models::read_models(&mut config.engine)?;
        config.check().map_err(|error| match error {
            ConfigError::Wrong(problem) => wrong(problem),
            of_a_part => of_a_part,
        })?;
        Ok(config)
    }

    /// Checks what can be checked without reading the plugins' files.
    fn check_plugins(&self) -> Result<(), ConfigError> {
        let mut engine = self.engine.clone();
        for (position, plugin) in self.plugins.iter().enumerate() {
            plugin.check()?;
            let before = self.plugins.iter().take(position);
            if before.into_iter().any(|known| known.name == plugin.name) {
                return Err(ebbtide_plugins::PluginError::same_name(&plugin.name).into());
            }
            // One that is not enabled is not there for the engine.
            if !plugin.enabled {
                continue;
            }
            engine
                .weighers
                .retain(|weigher| weigher.name != plugin.name);
            if engine.cost_module == plugin.name {
                engine.cost_module = EngineConfig::default().cost_module;
            }
        }
        ebbtide_engine::Engine::new(engine)?;
        Ok(())
    }

    /// The paths of what differs from `old` and counts at the next start only.
    #[must_use]
    pub fn changes_for_next_start(&self, old: &Self) -> Vec<String> {
        let values = [old, self].map(|config| serde_json::to_value(config).unwrap_or_default());
        let [before, after] = &values;
        settings::changes_for_next_start(before, after, &settings::keys::<Self>())
    }

    /// A copy that can be shown: URLs without their passwords.
    #[must_use]
    pub fn without_passwords(&self) -> Self {
        let mut shown = self.clone();
        shown.database.url = hide_password(&shown.database.url);
        shown
            .bus
            .urls
            .iter_mut()
            .for_each(|url| *url = hide_password(url));
        shown
    }

    /// Checks what types alone cannot.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] or the engine's or region's own, naming the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.region.check()?;
        self.engine.check()?;
        let wrong = |text: String| Err(ConfigError::Wrong(text));
        if self.bus.urls.is_empty() {
            return wrong("bus.urls is empty: name at least one broker".to_owned());
        }
        self.check_plugins()?;
        self.telemetry
            .check()
            .map_err(|error| ConfigError::Wrong(error.to_string()))?;
        settings::check_ranges(self).map_err(|range| ConfigError::Wrong(range.to_string()))?;
        ebbtide_bus::QueuePrefix::new(&self.bus.prefix)?;
        for url in &self.bus.urls {
            let url = url.parse::<ebbtide_bus::BrokerUrl>()?;
            url.check_secret(self.bus.insecure)?;
        }
        let tls = self.bus.tls_files().check();
        tls.map_err(ebbtide_bus::BusError::from)?;
        if !self.bus.agent_user.contains("{host}") {
            return wrong(format!(
                "bus.agent_user = {:?}: it has to contain {{host}}, or one login would speak for every host",
                self.bus.agent_user
            ));
        }
        for row in &self.auth.certificates {
            row.check()
                .map_err(|problem| ConfigError::Wrong(format!("auth.certificates: {problem}")))?;
        }
        self.quotas.check().map_err(ConfigError::Wrong)?;
        for (section, listen, tls, insecure) in [
            ("grpc", self.grpc.listen, &self.grpc.tls, self.grpc.insecure),
            ("http", self.http.listen, &self.http.tls, self.http.insecure),
        ] {
            secure::check_listener(section, listen, tls.as_ref(), insecure, &self.auth)
                .map_err(ConfigError::Wrong)?;
        }
        ebbtide_store::StoreConfig::new(&self.database.url)?;
        if !["classic", "quorum"].contains(&self.bus.queue_type.as_str()) {
            return wrong(format!(
                "bus.queue_type = {:?}: use classic or quorum",
                self.bus.queue_type
            ));
        }
        let (keep, longest) = (
            self.database.retention(),
            self.region.longest_budget_window_seconds,
        );
        if keep <= longest {
            return wrong(format!(
                "what is over is kept for {keep} (database.keep_days, keep_minutes), and disruption budgets may look back {longest}: \
                 keep more, or set region.longest_budget_window_seconds lower"
            ));
        }
        if let Err(error) = self.log.filter.parse::<tracing_subscriber::EnvFilter>() {
            return wrong(format!("log.filter = {:?}: {error}", self.log.filter));
        }
        Ok(())
    }
}

/// `scheme://user:***@host`.
fn hide_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((login, place)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    // Rather too much than the rest of a password that holds a slash or an '@'.
    let user = login.split([':', '@']).next().unwrap_or_default();
    format!("{scheme}://{user}:***@{place}")
}

/// Sets one key. The value is read as TOML if it is some (numbers, booleans, lists), else as a
/// string.
fn set(table: &mut Table, keys: &[String], value: &str) -> Result<(), String> {
    let Some((last, sections)) = keys.split_last() else {
        return Err("no key".to_owned());
    };
    let mut here = table;
    for section in sections {
        let entry = here
            .entry(section.clone())
            .or_insert_with(|| Value::Table(Table::new()));
        here = entry
            .as_table_mut()
            .ok_or_else(|| format!("{section} is not a section"))?;
    }
    let parsed = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("value"));
    here.insert(
        last.clone(),
        parsed.unwrap_or_else(|| Value::String(value.to_owned())),
    );
    Ok(())
}

#[cfg(test)]
mod tests;
