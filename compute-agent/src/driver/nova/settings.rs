//! The table `driver.nova` of the configuration.

use crate::error::AgentError;
use ebbtide_model::toml_text;
use ebbtide_openstack::{AdapterOptions, AuthMethod, AuthOptions, OpenStackError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};

/// Where Nova's API is, who we are there, and how often it is asked. All times are in seconds.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NovaSettings {
    /// The hosts for which this one process speaks, by the names of their nova-compute services, or
    /// `["*"]` for all. Empty: only for `host`.
    pub hosts: Vec<String>,
    /// The credentials, by keystoneauth's names: `auth_url`, `username`, `user_domain_name`,
    /// `password`, …
    auth: Table,
    /// How Nova's API is found: `region_name`, `valid_interfaces`, `endpoint_override`, `timeout`,
    /// …
    compute: Table,
    /// Take credentials and region from this file where `auth` is empty.
    pub nova_conf: Option<PathBuf>,
    /// The section of it that has the credentials of an administrator.
    pub nova_conf_section: String,
    /// Time between two lists of servers, one list for all hosts. 0.05 to 3600.
    pub refresh_seconds: f64,
    /// Time between two whole lists; those in between say only what has changed. 1 to 86400.
    pub full_list_seconds: f64,
    /// Time between two looks at a server that has its notice, for an early release. 0.05 to 600.
    pub watch_seconds: f64,
    /// Time between two looks at a server that is being ended. 0.005 to 60.
    pub poll_seconds: f64,
    /// Time between two lists of the hosts and what they have. 1 to 86400.
    pub hosts_seconds: f64,
    /// What a notice gives as its reason.
    pub notice_reason: String,
}

impl Default for NovaSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            auth: Table::new(),
            compute: Table::new(),
            nova_conf: None,
            // Every compute host has it, and its user is an administrator of Placement and usually
            // of Nova.
            nova_conf_section: "placement".to_owned(),
            // Heartbeats say what runs; ten seconds is their usual interval.
            refresh_seconds: 10.0,
            // What a list of changes cannot say (a server that left while our clock and Nova's
            // disagreed) is put right then.
            full_list_seconds: 300.0,
            // One small request for each victim.
            watch_seconds: 2.0,
            // A preemptor waits for it.
            poll_seconds: 0.5,
            // Hosts come and go rarely.
            hosts_seconds: 60.0,
            notice_reason: "the capacity is needed for a normal request".to_owned(),
        }
    }
}

impl std::fmt::Debug for NovaSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The credentials are among the rest.
        f.debug_struct("NovaSettings")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl NovaSettings {
    /// Reads and checks the table.
    ///
    /// # Errors
    /// [`AgentError::Config`] that names the key.
    pub fn from_table(table: &Table) -> Result<Self, AgentError> {
        for (key, value) in table {
            let single = Table::from_iter([(key.clone(), value.clone())]);
            if let Err(error) = single.try_into::<Self>() {
                return Err(AgentError::config(
                    format!("driver.nova.{key}"),
                    toml_text::without_values(error.message()),
                ));
            }
        }
        let settings: Self = table.clone().try_into().map_err(|error: toml::de::Error| {
            AgentError::config("driver.nova", toml_text::without_values(error.message()))
        })?;
        settings.check()?;
        settings.auth_options()?;
        settings.adapter_options()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), AgentError> {
        for (key, value, low, high) in [
            ("refresh_seconds", self.refresh_seconds, 0.05, 3_600.0),
            ("full_list_seconds", self.full_list_seconds, 1.0, 86_400.0),
            ("watch_seconds", self.watch_seconds, 0.05, 600.0),
            ("poll_seconds", self.poll_seconds, 0.005, 60.0),
            ("hosts_seconds", self.hosts_seconds, 1.0, 86_400.0),
        ] {
            if !(low..=high).contains(&value) {
                let problem = format!("{value} is out of range, allowed is {low} to {high}");
                return Err(AgentError::config(format!("driver.nova.{key}"), problem));
            }
        }
        for host in self.hosts.iter().filter(|host| *host != "*") {
            ebbtide_model::names::check_host_name(host)
                .map_err(|error| AgentError::config("driver.nova.hosts", error.to_string()))?;
        }
        Ok(())
    }

    /// True if it speaks for every host that Nova has.
    #[must_use]
    pub fn all_hosts(&self) -> bool {
        self.hosts.iter().any(|host| host == "*")
    }

    pub(super) fn poll(&self) -> Duration {
        seconds(self.poll_seconds)
    }

    /// The section of nova.conf, if one is named.
    fn section(&self) -> Result<Option<BTreeMap<String, String>>, AgentError> {
        let Some(path) = &self.nova_conf else {
            return Ok(None);
        };
        let refused = |error: oslo_config::ConfigError| {
            AgentError::config("driver.nova.nova_conf", error.to_string())
        };
        let config = oslo_config::Config::load(std::slice::from_ref(path), &[]).map_err(refused)?;
        let section = config.section(&self.nova_conf_section).map_err(refused)?;
        if section.is_empty() {
            let problem = format!(
                "{} has no section [{}]",
                path.display(),
                self.nova_conf_section
            );
            return Err(AgentError::config("driver.nova.nova_conf_section", problem));
        }
        Ok(Some(section))
    }

    pub(super) fn auth_options(&self) -> Result<AuthOptions, AgentError> {
        let options = match self.section()? {
            Some(section) if self.auth.is_empty() => {
                let place = format!("[{}] of nova.conf", self.nova_conf_section);
                AuthOptions::from_lookup(&place, |name| section.get(name).cloned())
            }
            _ => AuthOptions::from_lookup("driver.nova.auth", |name| text(self.auth.get(name)?)),
        };
        let mut options = options.map_err(refused)?;
        let direct = matches!(
            options.method,
            AuthMethod::AdminToken { .. } | AuthMethod::None
        );
        if direct
            && options.endpoint.is_none()
            && self.adapter_options()?.endpoint_override.is_none()
        {
            let problem = "it is missing: this auth_type has no catalog to find Nova in";
            return Err(AgentError::config(
                "driver.nova.compute.endpoint_override",
                problem,
            ));
        }
        if self.nova_conf.is_some() && self.auth.is_empty() {
            // There it is Placement's.
            options.endpoint = None;
        }
        Ok(options)
    }

    pub(super) fn adapter_options(&self) -> Result<AdapterOptions, AgentError> {
        let mut options = AdapterOptions::compute();
        if let Some(section) = self.section()? {
            // Of another service's section only what is the same for all services.
            let common = ["region_name", "valid_interfaces"];
            let lookup = |name: &str| {
                common
                    .contains(&name)
                    .then(|| section.get(name).cloned())
                    .flatten()
            };
            options = options.read("nova.conf", lookup).map_err(refused)?;
        }
        let lookup = |name: &str| text(self.compute.get(name)?);
        options.read("driver.nova.compute", lookup).map_err(refused)
    }
}

pub(super) fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::from_secs(1))
}

/// A value of TOML as an option's text; lists are separated by commas.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => {
            let texts: Vec<_> = values.iter().filter_map(text).collect();
            Some(texts.join(","))
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}

fn refused(error: OpenStackError) -> AgentError {
    match error {
        OpenStackError::Config {
            place,
            option,
            problem,
        } => {
            let key = if place.starts_with("driver.") {
                format!("{place}.{option}")
            } else {
                format!("driver.nova: {place} {option}")
            };
            AgentError::config(key, problem)
        }
        other => AgentError::config("driver.nova", other.to_string()),
    }
}
