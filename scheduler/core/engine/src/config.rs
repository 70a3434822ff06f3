//! How the engine decides: the part `[engine]` of the scheduler's configuration.

use crate::EngineError;
use ebbtide_cost_modules::CostModuleOptions;
use ebbtide_model::LifeTables;
use ebbtide_weighers::WeigherOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How hosts that passed the filters are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankingPolicy {
    /// Hosts with room first, then those whose room is becoming free, then by the cost of the
    /// cheapest sufficient victim set, then by the number of victims; among equals by Nova's
    /// weights. The minimum over all hosts is exact.
    #[default]
    Tiered,
    /// Nova's weights alone, added up in the configured order. What an eviction costs counts only
    /// through weighers (`eviction_cost`, `preemption_needed`): without them a host may be chosen
    /// that has to evict although another has room.
    Nova,
    /// In the order of registration: the first host with room; if none has, the first whose room is
    /// becoming free; if there is none either, the first that can evict enough. No weighing.
    FirstFit,
}

impl RankingPolicy {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tiered => "tiered",
            Self::Nova => "nova",
            Self::FirstFit => "first-fit",
        }
    }
}

/// What is done with a weigher or a cost module that fails, or that returns what is not a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginFailure {
    /// Continue without the plugin for this request and say so in the explanation. A weigher then
    /// adds nothing to any host; with a cost module every victim costs 1.
    #[default]
    Ignore,
    /// Refuse the request with [`EngineError::Weigher`] or [`EngineError::CostModule`].
    Refuse,
}

/// A weigher in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeigherConfig {
    /// Its name, for example `ram`. A weigher that is named twice counts twice, as in Nova.
    pub name: String,
    /// How much it counts; by default what the weigher itself says. The metadata of a host's
    /// aggregates can override it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// What is done when it fails; by default as [`EngineConfig::plugin_failure`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<PluginFailure>,
}

impl WeigherConfig {
    /// A weigher with its own multiplier.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            multiplier: None,
            on_failure: None,
        }
    }
}

/// Everything that can be configured. All keys are optional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// How hosts are ordered. Default: `tiered`.
    pub policy: RankingPolicy,
    /// The weighers, in the order in which their weights are added up. Default: Nova's that speak
    /// about what Ebbtide knows (see [`default_weighers`]).
    pub weighers: Vec<WeigherConfig>,
    /// The cost module. Default: `partial_hour`.
    pub cost_module: String,
    /// Length of a billing period in seconds, for the cost modules and weighers that have one.
    /// Default: 3600.
    pub period_seconds: u32,
    /// Age in seconds from which on instances are all equally old, for the cost module
    /// `oldest_first`. Default: a year.
    pub horizon_seconds: u32,
    /// What each further victim of the same project costs more than the one before it, in seconds,
    /// for the cost module `fairness`. Default: 600.
    pub fairness_seconds: u32,
    /// The file with the lifetime distribution of preemptible instances, as
    /// `ebbtide-lab model fit --output json` writes it, for the cost module `remaining_lifetime`.
    /// The code that reads the configuration also reads this file and stores its content in
    /// `lifetimes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_model: Option<PathBuf>,
    /// The file with the interruption distribution of preemptible instances, for the weigher
    /// `interruption_risk`. Its content goes into `interruptions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interruption_model: Option<PathBuf>,
    /// Assumed run time in seconds of a preemptible instance whose flavor states none, for the
    /// weigher `interruption_risk`. Default: 3600.
    pub risk_horizon_seconds: u32,
    /// The content of the file `lifetime_model`.
    #[serde(skip)]
    pub lifetimes: Option<LifeTables>,
    /// What `interruption_model` says.
    #[serde(skip)]
    pub interruptions: Option<LifeTables>,
    /// Choose at random among so many of the best hosts (Nova's option). With `tiered` only among
    /// hosts that are equal but for their weights, with `first-fit` not at all. Default: 1, at
    /// least 1.
    pub host_subset_size: u32,
    /// Shuffle the hosts that share the best weight (Nova's option). Default: false.
    pub shuffle_best_same_weighed_hosts: bool,
    /// What is done with plugins that fail. Default: `ignore`.
    pub plugin_failure: PluginFailure,
    /// What is done when the cost module fails; by default as `plugin_failure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_module_failure: Option<PluginFailure>,
    /// Nodes of the victim search that one request may spend in all before the search stops with a
    /// proven gap; a node takes 1 to 10 µs. Default: 200,000, a second or two at most. A host of
    /// usual size, with a handful of flavors, needs none; dozens of instances of which no two are
    /// alike may need all.
    pub max_solver_nodes: u64,
    /// How many of the best hosts an explanation lists. Default: 10.
    pub explain_hosts: u32,
    /// How many of the hosts that each filter dropped an explanation names. Default: 5.
    pub explain_dropped: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            policy: RankingPolicy::default(),
            weighers: default_weighers(),
            cost_module: ebbtide_cost_modules::DEFAULT.to_owned(),
            period_seconds: WeigherOptions::default().period_seconds,
            horizon_seconds: CostModuleOptions::default().horizon_seconds,
            fairness_seconds: CostModuleOptions::default().fairness_seconds,
            lifetime_model: None,
            interruption_model: None,
            risk_horizon_seconds: WeigherOptions::default().risk_horizon_seconds,
            lifetimes: None,
            interruptions: None,
            host_subset_size: 1,
            shuffle_best_same_weighed_hosts: false,
            plugin_failure: PluginFailure::default(),
            cost_module_failure: None,
            max_solver_nodes: 200_000,
            explain_hosts: 10,
            explain_dropped: 5,
        }
    }
}

/// The default weighers, in this order: those of Nova's default weighers that use data known to
/// Ebbtide, in Nova's order, and then the two with which the policy `nova` avoids preemption and
/// makes it cheap. The last two add exactly zero where no instance has to leave. They also rate all
/// hosts alike that are equal under the policy `tiered`.
#[must_use]
pub fn default_weighers() -> Vec<WeigherConfig> {
    let nova = ebbtide_weighers::nova_default();
    let preemption = ebbtide_weighers::preemption_default();
    nova.into_iter()
        .chain(preemption)
        .map(WeigherConfig::named)
        .collect()
}

/// Limit of listed hosts in an explanation, because each explanation is stored with its decision.
const MAX_EXPLAINED: u32 = 1000;

impl EngineConfig {
    /// Checks the ranges. Whether weighers and cost module exist is checked by
    /// [`Engine::new`](crate::Engine::new), which knows the plugins.
    ///
    /// # Errors
    /// [`EngineError::Config`] that names the first bad key.
    pub fn check(&self) -> Result<(), EngineError> {
        let wrong = |key: &str, problem: String| {
            Err(EngineError::Config {
                key: key.to_owned(),
                problem,
            })
        };
        for (position, weigher) in self.weighers.iter().enumerate() {
            if let Some(multiplier) = weigher.multiplier.filter(|m| !m.is_finite()) {
                return wrong(
                    &format!("weighers[{position}].multiplier"),
                    format!(
                        "{multiplier} for {:?} is not finite: use a number",
                        weigher.name
                    ),
                );
            }
        }
        if let Err(problem) = self.weigher_options().check() {
            let key = match problem {
                ebbtide_weighers::ConfigError::OutOfRange { key, .. } => key,
                _ => "weighers",
            };
            return wrong(key, problem.to_string());
        }
        if let Err(problem) = self.cost_module_options().check() {
            let key = match problem {
                ebbtide_cost_modules::ConfigError::OutOfRange { key, .. } => key,
                _ => "cost_module",
            };
            return wrong(key, problem.to_string());
        }
        if self.host_subset_size == 0 {
            return wrong("host_subset_size", "0: use 1 or more".to_owned());
        }
        if self.max_solver_nodes == 0 {
            return wrong("max_solver_nodes", "0: use 1 or more".to_owned());
        }
        for (key, value) in [
            ("explain_hosts", self.explain_hosts),
            ("explain_dropped", self.explain_dropped),
        ] {
            if value > MAX_EXPLAINED {
                return wrong(key, format!("{value}: use 0 to {MAX_EXPLAINED}"));
            }
        }
        Ok(())
    }

    /// The options of the built-in weighers.
    pub(crate) fn weigher_options(&self) -> WeigherOptions {
        WeigherOptions {
            period_seconds: self.period_seconds,
            risk_horizon_seconds: self.risk_horizon_seconds,
            interruptions: self.interruptions.clone(),
        }
    }

    /// The options of the built-in cost modules.
    pub(crate) fn cost_module_options(&self) -> CostModuleOptions {
        CostModuleOptions {
            period_seconds: self.period_seconds,
            horizon_seconds: self.horizon_seconds,
            fairness_seconds: self.fairness_seconds,
            lifetimes: self.lifetimes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_configuration_is_the_default() {
        let config: EngineConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(config, EngineConfig::default());
        assert_eq!(config.check(), Ok(()));
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<EngineConfig>(&text).unwrap(), config);
    }

    #[test]
    fn typing_errors_are_refused_with_the_key() {
        for text in [
            r#"{"polcy":"nova"}"#,
            r#"{"policy":"novaa"}"#,
            r#"{"weighers":[{"name":"ram","multipler":1}]}"#,
        ] {
            assert!(
                serde_json::from_str::<EngineConfig>(text).is_err(),
                "{text} was taken"
            );
        }
        let bad = [
            (
                "host_subset_size",
                EngineConfig {
                    host_subset_size: 0,
                    ..Default::default()
                },
            ),
            (
                "period_seconds",
                EngineConfig {
                    period_seconds: 0,
                    ..Default::default()
                },
            ),
            (
                "max_solver_nodes",
                EngineConfig {
                    max_solver_nodes: 0,
                    ..Default::default()
                },
            ),
            (
                "explain_hosts",
                EngineConfig {
                    explain_hosts: 1001,
                    ..Default::default()
                },
            ),
            (
                "weighers[0].multiplier",
                EngineConfig {
                    weighers: vec![WeigherConfig {
                        name: "ram".to_owned(),
                        multiplier: Some(f64::NAN),
                        on_failure: None,
                    }],
                    ..Default::default()
                },
            ),
        ];
        for (key, config) in bad {
            match config.check() {
                Err(EngineError::Config { key: named, .. }) => assert_eq!(named, key),
                other => panic!("{key} was taken: {other:?}"),
            }
        }
    }
}
