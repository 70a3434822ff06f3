//! Plugins that operators add, change and remove while schedulers run (ADR 53).
//!
//! The plugins in use have two sources: the configuration of a scheduler, which it reads again on
//! SIGHUP, and the changes that operators make through the API. Those are rows of the database that
//! all schedulers share; every scheduler looks for them once a second and applies them.
//!
//! [`LivePlugins`] does this for both clouds. What a set of plugins becomes (the engines of a
//! standalone region, the weighers and cost modules behind Nova's own) is the matter of a
//! [`PluginUser`].

mod change;
mod control;
mod error;
mod follow;
mod live;
mod rows;
mod shadow;
mod user;

pub use control::{ListedPlugin, PluginChange, PluginControl};
pub use error::LivePluginError;
pub use live::LivePlugins;
pub use rows::stored_overrides;
pub use shadow::{ShadowBook, ShadowReport};
pub use user::{PluginUsage, PluginUser};
