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
    /// Its name: in `engine.weighers` or `engine.cost_module`, in explanations, and before `_weight_multiplier` in the metadata of aggregates. Small
    /// letters, digits and `_`.
    pub name: String,
    /// The component.
    pub file: PathBuf,
    /// Whether it is used. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// How much a weigher counts, unless `engine.weighers` or an aggregate says something else; by default what it says itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// What is done when it fails; by default as `engine.plugin_failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<PluginFailure>,
    /// Memory of one call in MiB. Default: 64.
    #[serde(default = "memory_mb")]
    pub memory_mb: u32,
    /// Work of one call in million units, whatever the number of hosts; a unit is about one instruction. Default: 20.
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
    /// A plugin with the defaults.
    #[must_use]
    pub fn new(name: &str, file: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            file,
            enabled: true,
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
        let wrong: [(&str, Spoil); 6] = [
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
