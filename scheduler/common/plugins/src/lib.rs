//! The operator's plugins: which exist, and how they are loaded, watched and replaced.
//!
//! An operator lists them in the configuration ([`PluginConfig`]). [`PluginSet::load`] reads and
//! checks all of them. If one is wrong, it refuses all and names that one, so that a set is used
//! whole or not at all. Each plugin is [watched](Health): its calls, its failures, and their
//! messages. A plugin that fails repeatedly is not called for a while, because an endless loop
//! costs every request its whole allowance of work.

mod component;
mod config;
#[cfg(test)]
mod decorators;
mod engines;
mod error;
mod file;
mod health;
mod health_counter;
mod load;
mod overrides;
mod set;
mod standalone;
mod unreachable_plugin;

pub use component::Component;
pub use config::PluginConfig;
pub use engines::{EnginePurpose, Multipliers};
pub use error::PluginError;
pub use file::read_file;
pub use health::{Health, HealthReport, Milliseconds};
pub use load::{PluginCarrier, PluginKind};
pub use overrides::{ENGINE, MergedPlugins, PluginOverride, PluginOverrides, merge};
pub use set::{Clock, Plugin, PluginEntry, PluginSet, Randomness, Services, Sources};
pub use standalone::StandaloneWeighers;
