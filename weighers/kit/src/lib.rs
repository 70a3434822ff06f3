//! The plugin author's kit: what `ebbtide plugin check`, `bench` and `new` do.

mod bench;
mod candidates;
mod chance;
mod check;
mod error;
mod hosts;
mod project;
mod subject;
mod templates;
mod tried;

pub use bench::{Measured, Stopwatch, bench};
pub use check::{Check, Outcome, check};
pub use error::KitError;
pub use project::{Language, NewProject, files, write};
pub use subject::{Place, Subject};
