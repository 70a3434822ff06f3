//! One plugin in the operator's configuration.

use crate::PluginError;
use ebbtide_engine::PluginFailure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One entry of `[[plugins]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginConfig {
    /// Its name: in `engine.weighers` or `engine.cost_module`, in explanations, and before
    /// `_weight_multiplier` in the metadata of aggregates. Small letters, digits and `_`.
    pub name: String,
    /// The component. A plugin has either a file or an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Where the service is that has it: `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// With an address: what the service calls it. Default: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// With an address: how long one call may take, in milliseconds. Default: 100.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u32,
    /// With an address: how many calls there may be at a time; one more fails at once. Default: 8.
    #[serde(default = "in_flight")]
    pub in_flight: u32,
    /// With `https`: PEM file of the trusted authorities. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// With `https`: PEM file of the scheduler's client certificate, with `key_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_file: Option<PathBuf>,
    /// With `https`: PEM file of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Whether it is used. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Shadow mode: the plugin is called, but decides nothing. Default: false.
    #[serde(default, skip_serializing_if = "is_not")]
    pub shadow: bool,
    /// The multiplier of a weigher, unless `engine.weighers` or an aggregate sets another one.
    /// Default: the weigher's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// What is done when it fails; by default as `engine.plugin_failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<PluginFailure>,
    /// Memory of one call in MiB. Default: 64.
    #[serde(default = "memory_mb")]
    pub memory_mb: u32,
    /// Work of one call in million units, whatever the number of hosts; a unit is about one
    /// instruction. Default: 20.
    #[serde(default = "work_million")]
    pub work_million: u32,
    /// Units of work for each host or candidate besides. Default: 20,000.
    #[serde(default = "work_per_row")]
    pub work_per_row: u32,
    /// What it gets beyond its input: `clock`, `randomness`. By default nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// What its author lets the operator set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
fn is_not(what: &bool) -> bool {
    !what
}

fn deadline_ms() -> u32 {
    100
}

fn in_flight() -> u32 {
    8
}

fn memory_mb() -> u32 {
    64
}

fn work_million() -> u32 {
    20
}

fn work_per_row() -> u32 {
    20_000
}

/// Longest name, in bytes: with its suffix it has to fit into an aggregate's metadata key.
const LONGEST: usize = 200;

impl PluginConfig {
    /// A component with the defaults.
    #[must_use]
    pub fn new(name: &str, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..Self::empty(name)
        }
    }

    /// A service with the defaults.
    #[must_use]
    pub fn at(name: &str, address: &str) -> Self {
        Self {
            address: Some(address.to_owned()),
            ..Self::empty(name)
        }
    }

    /// With neither file nor address.
    fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            file: None,
            address: None,
            plugin: None,
            deadline_ms: deadline_ms(),
            in_flight: in_flight(),
            ca_file: None,
            certificate_file: None,
            key_file: None,
            enabled: true,
            shadow: false,
            multiplier: None,
            on_failure: None,
            memory_mb: memory_mb(),
            work_million: work_million(),
            work_per_row: work_per_row(),
            grants: Vec::new(),
            settings: BTreeMap::new(),
        }
    }

    /// Checks what types alone cannot.
    ///
    /// # Errors
    /// [`PluginError::Config`] that names the key.
    pub fn check(&self) -> Result<(), PluginError> {
        let wrong = |key: &'static str, problem: String| PluginError::Config {
            name: self.name.clone(),
            key,
            problem,
        };
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if self.name.is_empty() || self.name.len() > LONGEST || !self.name.bytes().all(allowed) {
            let problem = format!("use 1 to {LONGEST} small letters, digits and _");
            return Err(wrong("name", problem));
        }
        if self
            .multiplier
            .is_some_and(|multiplier| !multiplier.is_finite())
        {
            return Err(wrong("multiplier", "it is not a finite number".to_owned()));
        }
        match (&self.file, &self.address) {
            (Some(_), None) | (None, Some(_)) => {}
            (None, None) => {
                let problem = "there is none, and no address either; a plugin has one of them";
                return Err(wrong("file", problem.to_owned()));
            }
            (Some(_), Some(_)) => {
                let problem = "there is a file, too; a plugin has one of them";
                return Err(wrong("address", problem.to_owned()));
            }
        }
        let only_with_address = [
            ("plugin", self.plugin.is_some()),
            ("ca_file", self.ca_file.is_some()),
            ("certificate_file", self.certificate_file.is_some()),
            ("key_file", self.key_file.is_some()),
        ];
        let stray = only_with_address.into_iter().find(|(_, set)| *set);
        if let (None, Some((key, _))) = (&self.address, stray) {
            let problem = "it means something with an address only".to_owned();
            return Err(wrong(key, problem));
        }
        if self.address.is_some() && !self.grants.is_empty() {
            let problem = "a service has what it has; nothing is granted to it".to_owned();
            return Err(wrong("grants", problem));
        }
        if self.certificate_file.is_some() != self.key_file.is_some() {
            let problem = "certificate_file and key_file go together".to_owned();
            return Err(wrong("certificate_file", problem));
        }
        if !(1..=60_000).contains(&self.deadline_ms) {
            let problem = format!("{} is not 1 to 60000", self.deadline_ms);
            return Err(wrong("deadline_ms", problem));
        }
        if !(1..=1024).contains(&self.in_flight) {
            let problem = format!("{} is not 1 to 1024", self.in_flight);
            return Err(wrong("in_flight", problem));
        }
        if !(1..=4096).contains(&self.memory_mb) {
            let problem = format!("{} is not 1 to 4096", self.memory_mb);
            return Err(wrong("memory_mb", problem));
        }
        if !(1..=100_000).contains(&self.work_million) {
            let problem = format!("{} is not 1 to 100000", self.work_million);
            return Err(wrong("work_million", problem));
        }
        let unknown = self
            .grants
            .iter()
            .find(|grant| !matches!(grant.as_str(), "clock" | "randomness"));
        if let Some(unknown) = unknown {
            let problem = format!("{unknown:?} cannot be granted; there are clock and randomness");
            return Err(wrong("grants", problem));
        }
        Ok(())
    }

    /// Where it comes from: its file or its address.
    #[must_use]
    pub fn source(&self) -> String {
        match (&self.file, &self.address) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(address)) => address.clone(),
            (None, None) => String::new(),
        }
    }

    /// True if this is granted.
    #[must_use]
    pub fn grants(&self, what: &str) -> bool {
        self.grants.iter().any(|grant| grant == what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        let good = PluginConfig::new("spread", "spread.wasm".into());
        assert!(good.check().is_ok());
        type Spoil = fn(&mut PluginConfig);
        let wrong: [(&str, Spoil); 12] = [
            ("file", |c| c.file = None),
            ("address", |c| {
                c.address = Some("http://127.0.0.1:1".to_owned())
            }),
            ("plugin", |c| c.plugin = Some("spread".to_owned())),
            ("deadline_ms", |c| c.deadline_ms = 0),
            ("in_flight", |c| c.in_flight = 0),
            ("grants", |c| {
                c.address = c.file.take().map(|_| "http://127.0.0.1:1".to_owned());
                c.grants.push("clock".to_owned());
            }),
            ("name", |c| c.name = "Spread it".to_owned()),
            ("name", |c| c.name = String::new()),
            ("multiplier", |c| c.multiplier = Some(f64::NAN)),
            ("memory_mb", |c| c.memory_mb = 0),
            ("work_million", |c| c.work_million = 0),
            ("grants", |c| c.grants.push("files".to_owned())),
        ];
        for (key, spoil) in wrong {
            let mut config = good.clone();
            spoil(&mut config);
            let said = config.check().unwrap_err().to_string();
            assert!(said.contains(&format!(": {key}: ")), "{said}");
        }
    }
}
