//! The part `[shadow]`: another way to decide that is only looked at.

use ebbtide_engine::{EngineConfig, RankingPolicy, WeigherConfig};
use serde::{Deserialize, Serialize};

ebbtide_model::settings! {
    /// What would be decided otherwise. With any key set, or with any plugin in shadow, every
    /// decision is made a second time, without effect, and `ebbtide plugin shadow-report` shows
    /// where it would have been another.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Shadow: Default {
        /// Another way to decide that is only looked at: with any key of `[shadow]` set, every
        /// decision is made a second time without effect, and ebbtide plugin shadow-report shows
        /// where it would have been another. This one: instead of `engine.policy`; a list
        /// `shadow.weighers` takes the place of `engine.weighers`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub policy: Option<RankingPolicy> = None => key("nova");
        /// Instead of `engine.weighers`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub weighers: Option<Vec<WeigherConfig>> = None;
        /// In shadow: instead of `engine.cost_module`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cost_module: Option<String> = None => key("revenue");
    }
}

impl Shadow {
    /// True if nothing would be otherwise.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The engine's configuration in shadow.
    #[must_use]
    pub fn engine(&self, deciding: &EngineConfig) -> EngineConfig {
        let mut config = deciding.clone();
        if let Some(policy) = self.policy {
            config.policy = policy;
        }
        if let Some(weighers) = &self.weighers {
            config.weighers.clone_from(weighers);
        }
        if let Some(module) = &self.cost_module {
            config.cost_module.clone_from(module);
        }
        config
    }
}
