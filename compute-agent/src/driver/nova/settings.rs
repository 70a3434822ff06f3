//! The table `driver.nova` of the configuration.

use crate::error::AgentError;
use ebbtide_model::settings::{Setting, Shape, Type, check_ranges};
use ebbtide_model::toml_text;
use ebbtide_openstack::{AdapterOptions, AuthMethod, AuthOptions, OpenStackError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};

/// Options of another program, by its names for them.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct ApiOptions(Table);

impl Setting for ApiOptions {
    fn shape() -> Shape {
        Shape::Value(Type::Table)
    }
}

ebbtide_model::settings! {
    /// Where Nova's API is, who we are there, and how often it is asked. All times are in seconds.
    #[derive(Clone, PartialEq, Serialize, Deserialize)]
    pub struct NovaSettings: Default {
        /// The hosts for which this one process speaks, by the names of their nova-compute
        /// services, or ["*"] for all. Not set: only for host.
        pub hosts: Vec<String> = Vec::new() => key(r#"["*"]"#);
        /// The credentials, by keystoneauth's names. SIGHUP takes new ones into use, those of
        /// `nova_conf` as well.
        auth: ApiOptions = ApiOptions::default()
            => key(concat!(
                r#"{ auth_type = "password", auth_url = "http://keystone:5000/v3", "#,
                r#"username = "ebbtide", password = "PASSWORD", user_domain_name = "Default", "#,
                r#"project_name = "service", project_domain_name = "Default" }"#,
            ))
            .secret()
            .sighup();
        /// How Nova's API is found: `region_name`, `valid_interfaces`, `endpoint_override`,
        /// timeout, `connect_retries`, `connect_retry_delay`.
        compute: ApiOptions = ApiOptions::default()
            => key(r#"{ region_name = "RegionOne", endpoint_override = "http://nova:8774/v2.1" }"#);
        /// Take credentials and region from this file where auth is empty.
        pub nova_conf: Option<PathBuf> = None => key("/etc/nova/nova.conf");
        /// The section of it that has the credentials of an administrator.
        // Every compute host has it, and its user is an administrator of Placement and usually
        // of Nova.
        pub nova_conf_section: String = "placement".to_owned() => key("neutron");
        /// Time between two lists of servers, one list for all hosts.
        // Heartbeats say what runs; ten seconds is their usual interval.
        pub refresh_seconds: f64 = 10.0 => key("5.0").range(0.05..=3_600.0);
        /// Time between two whole lists; those in between say only what has changed.
        // What a list of changes cannot say (a server that left while our clock and Nova's
        // disagreed) is put right then.
        pub full_list_seconds: f64 = 300.0 => key("600.0").range(1.0..=86_400.0);
        /// Time between two looks at a server that has its notice, for an early release.
        // One small request for each victim.
        pub watch_seconds: f64 = 2.0 => key("1.0").range(0.05..=600.0);
        /// Time between two looks at a server that is being ended.
        // A preemptor waits for it.
        pub poll_seconds: f64 = 0.5 => key("0.2").range(0.005..=60.0);
        /// Time between two lists of the hosts and what they have.
        // Hosts come and go rarely.
        pub hosts_seconds: f64 = 60.0 => key("30.0").range(1.0..=86_400.0);
        /// What a notice gives as its reason.
        pub notice_reason: String = "the capacity is needed for a normal request".to_owned()
            => key("make room");
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
        check_ranges(self).map_err(|range| AgentError::out_of_range("driver.nova", range))?;
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
            Some(section) if self.auth.0.is_empty() => {
                let place = format!("[{}] of nova.conf", self.nova_conf_section);
                AuthOptions::from_lookup(&place, |name| section.get(name).cloned())
            }
            _ => AuthOptions::from_lookup("driver.nova.auth", |name| text(self.auth.0.get(name)?)),
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
        if self.nova_conf.is_some() && self.auth.0.is_empty() {
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
        let lookup = |name: &str| text(self.compute.0.get(name)?);
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
