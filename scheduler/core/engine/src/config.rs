//! How the engine decides: the part `[engine]` of the scheduler's configuration.

use crate::EngineError;
use ebbtide_cost_modules::CostModuleOptions;
use ebbtide_model::LifeTables;
use ebbtide_model::settings::check_ranges;
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

ebbtide_model::words!(RankingPolicy, PluginFailure);

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

ebbtide_model::settings! {
    /// A weigher in use.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct WeigherConfig {
        /// A weigher in use, built in (docs/plugins/weighers.md) or a plugin's. Weights are added
        /// up in the order of the list; a weigher that is named twice counts twice. A list of your
        /// own replaces the default one: `soft_affinity`, `soft_anti_affinity`, cpu, disk,
        /// `io_ops`, `num_instances`, ram, `preemption_needed`, `eviction_cost`.
        pub name: String => key("ram");
        /// How much it counts; by default what the weigher itself says. Its numbers are normalised
        /// to 0…1 first. A negative multiplier turns it round. The metadata of a host's aggregates
        /// (NAME_weight_multiplier) can override it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub multiplier: Option<f64> = None => key("2.0");
        /// What is done when it fails; by default as `plugin_failure`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub on_failure: Option<PluginFailure> = None => key("refuse");
    }
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

ebbtide_model::settings! {
    /// Everything that can be configured. All keys are optional.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct EngineConfig: Default {
        /// How hosts that passed the filters are ordered. tiered: hosts with room first, then those
        /// whose room is becoming free, then by the exact cost of an eviction; weighers decide
        /// among equals. nova: Nova's weights alone; what an eviction costs counts only through
        /// weighers. first-fit: in the order of registration, no weighing.
        pub policy: RankingPolicy = RankingPolicy::default() => key("nova");
        /// The weighers, in the order in which their weights are added up. Default: Nova's that
        /// speak about what Ebbtide knows (see [`default_weighers`]).
        pub weighers: Vec<WeigherConfig> = default_weighers() => section().sighup();
        /// What the loss of a victim costs: `partial_hour`, `num_instances`, `oldest_first`,
        /// `newest_first`, `priority_class`, revenue, `lowest_bid`, fairness, `remaining_lifetime`
        /// (docs/plugins/cost-modules.md), or a plugin's name. The sufficient set of victims with
        /// the least sum goes.
        pub cost_module: String = ebbtide_cost_modules::DEFAULT.to_owned()
            => key("revenue").sighup();
        /// Length of a billing period, for `partial_hour`, revenue, fairness and the weigher
        /// `partial_hour_sum`.
        pub period_seconds: u32 = WeigherOptions::default().period_seconds
            => key("60").range(1..=ebbtide_weighers::MAX_PERIOD_SECONDS);
        /// Age from which on instances are all equally old, for `oldest_first`. Longer than your
        /// instances live.
        pub horizon_seconds: u32 = CostModuleOptions::default().horizon_seconds
            => key("2592000").range(1..=ebbtide_cost_modules::MAX_HORIZON_SECONDS);
        /// What each further victim of the same project costs more than the one before it, for
        /// fairness.
        pub fairness_seconds: u32 = CostModuleOptions::default().fairness_seconds
            => key("1200").range(1..=ebbtide_cost_modules::MAX_FAIRNESS_SECONDS);
        /// How long preemptible instances run without interruption, for the cost module
        /// `remaining_lifetime`, which needs it: a file as ebbtide-lab model fit --end stopped
        /// --output json writes it, for all and by flavor, zone or both. Read with the
        /// configuration.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub lifetime_model: Option<PathBuf> = None => key("/etc/ebbtide/work.json").sighup();
        /// How soon preemptible instances are interrupted, for the weigher `interruption_risk`,
        /// which needs it: a file as ebbtide-lab model fit --method mle --output json writes it,
        /// for all and by flavor, zone or both. Read with the configuration.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub interruption_model: Option<PathBuf> = None
            => key("/etc/ebbtide/interruptions.json").sighup();
        /// How long a preemptible instance is thought to run whose flavor does not say it
        /// (ebbtide:expected_seconds), for `interruption_risk`.
        pub risk_horizon_seconds: u32 = WeigherOptions::default().risk_horizon_seconds
            => key("14400").range(1..=ebbtide_weighers::MAX_HORIZON_SECONDS).sighup();
        /// The content of the file `lifetime_model`.
        #[serde(skip)]
        pub lifetimes: Option<LifeTables> = None;
        /// What `interruption_model` says.
        #[serde(skip)]
        pub interruptions: Option<LifeTables> = None;
        /// Choose at random among this many of the best hosts (Nova's option). With tiered only
        /// among hosts that are equal but for their weights, with first-fit not at all.
        pub host_subset_size: u32 = 1 => key("3").range(1..);
        /// Shuffle the hosts that share the best weight (Nova's option).
        pub shuffle_best_same_weighed_hosts: bool = false => key("true");
        /// What is done when a weigher or cost module fails. ignore: go on without it for this
        /// request (every victim costs 1) and say so in the explanation. refuse: refuse the
        /// request.
        pub plugin_failure: PluginFailure = PluginFailure::default() => key("refuse").sighup();
        /// What is done when the cost module fails; by default as `plugin_failure`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cost_module_failure: Option<PluginFailure> = None => key("refuse").sighup();
        /// Nodes of the victim search that one request may spend in all before it stops with a
        /// proven gap; a node takes 1 to 10 µs.
        pub max_solver_nodes: u64 = 200_000 => key("1000000").range(1..).unit("nodes");
        /// How many of the best hosts an explanation lists.
        pub explain_hosts: u32 = 10 => key("50").range(0..=MAX_EXPLAINED);
        /// How many of the hosts that each filter dropped an explanation names.
        pub explain_dropped: u32 = 5 => key("20").range(0..=MAX_EXPLAINED);
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
        check_ranges(self).or_else(|range| {
            wrong(
                &range.key,
                format!("{}: use {}", range.value, range.allowed()),
            )
        })
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
