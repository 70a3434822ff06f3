//! One plugin in the operator's configuration.

use crate::PluginError;
use ebbtide_engine::PluginFailure;
use ebbtide_model::settings::check_ranges;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

ebbtide_model::settings! {
    /// One entry of `[[plugins]]`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct PluginConfig {
        /// The plugin's name: in `engine.weighers` or `engine.cost_module`, in explanations, and
        /// before `_weight_multiplier` in the metadata of aggregates. Small letters, digits and
        /// `_`; unique.
        pub name: String => key("spread_racks");
        /// The WebAssembly component. The scheduler does not start if it cannot be read. A plugin
        /// has either a file or an address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None => key("/etc/ebbtide/plugins/spread_racks.wasm");
        /// Where the service is that has it, instead of a file: `http://HOST:PORT`,
        /// `https://HOST:PORT` or unix:/PATH. If it does not answer when the scheduler starts, the
        /// plugin is missing until it does; with `on_failure` = refuse the scheduler does not
        /// start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<String> = None => key("unix:/run/ebbtide/forecast.sock");
        /// With an address: what the service calls it; by default its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub plugin: Option<String> = None => key("forecast_v2");
        /// With an address: how long one call may take. Decisions wait for it.
        #[serde(default = "deadline_ms")]
        pub deadline_ms: u32 = deadline_ms() => key("50").range(1..=60_000);
        /// With an address: how many calls there may be at a time; one more fails at once.
        #[serde(default = "in_flight")]
        pub in_flight: u32 = in_flight() => key("2").range(1..=1024).unit("calls");
        /// With https: whom to trust, in PEM; by default those whom the system trusts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ca_file: Option<PathBuf> = None => key("/etc/ebbtide/ca.pem");
        /// With https: the scheduler's certificate, in PEM, with `key_file`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub certificate_file: Option<PathBuf> = None => key("/etc/ebbtide/client.pem");
        /// With https: the key of that certificate, in PEM.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key_file: Option<PathBuf> = None => key("/etc/ebbtide/client.key");
        /// Whether it is used. It is read and checked all the same.
        #[serde(default = "yes")]
        pub enabled: bool = yes() => key("false");
        /// In shadow: it is asked about every request and decides nothing; ebbtide plugin
        /// shadow-report shows what it would have changed.
        #[serde(default, skip_serializing_if = "is_not")]
        pub shadow: bool = false => key("true");
        /// How much a weigher counts, unless `engine.weighers` or an aggregate says something else;
        /// by default what it says itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub multiplier: Option<f64> = None => key("2.0");
        /// What is done when it fails; by default as `engine.plugin_failure`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub on_failure: Option<PluginFailure> = None => key("refuse");
        /// Memory that one call may take.
        #[serde(default = "memory_mb")]
        pub memory_mb: u32 = memory_mb() => key("128").range(1..=4096);
        /// Work of one call, whatever the number of hosts; a unit is about one instruction.
        #[serde(default = "work_million")]
        pub work_million: u32 = work_million()
            => key("100").range(1..=100_000).unit("million units");
        /// Work for each host or candidate besides.
        #[serde(default = "work_per_row")]
        pub work_per_row: u32 = work_per_row() => key("50000").unit("units");
        /// What it gets beyond its input: clock, randomness. By default nothing; with either its
        /// answers may differ from call to call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub grants: Vec<String> = Vec::new() => key(r#"["clock"]"#);
        /// What its author lets the operator set; all text.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub settings: BTreeMap<String, String> = BTreeMap::new() => key(r#"{ key = "rack" }"#);
    }
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
            key: key.into(),
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
        check_ranges(self).map_err(|range| PluginError::Config {
            name: self.name.clone(),
            problem: format!("{} is not {}", range.value, range.allowed()),
            key: range.key.into(),
        })?;
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
