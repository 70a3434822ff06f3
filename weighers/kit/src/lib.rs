//! The plugin author's kit: what `ebbtide-lab plugin check`, `bench` and `new` do.

#![warn(missing_docs)]

mod bench;
mod callable;
mod candidates;
mod check;
mod error;
mod hosts;
mod plugin;
mod project;
mod random;
mod templates;

pub use bench::{Measurement, Stopwatch, bench};
pub use check::{Check, CheckOutcome, check};
pub use error::KitError;
pub use plugin::{PluginLocation, Subject};
pub use project::{Language, NewProject, ProjectKind, files, write};
