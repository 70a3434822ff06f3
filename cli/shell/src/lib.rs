//! What the programs of people share: `ebbtide`, `ebbtide-manage` and `ebbtide-lab`.
//!
//! - `program` runs a command line: options, configuration file, exit code. `globals` has the
//!   options of every command, `config` what stands in the user's file, `completion` the scripts
//!   for shells.
//! - `io` is the world outside, `listing` what is shown; `output`, `layout`, `table` and `render`
//!   say how it looks; `json` turns messages of the contract into JSON, `charts` writes charts into
//!   files.
//! - `cloud` finds the OpenStack that is meant, and logs in.
//! - `errors` has every way to fail with its code, next step and exit code.
//! - `resolve` turns names into identifiers, `hours` and `time_argument` read times, `model` and
//!   `bag` read what several commands take.
//!
//! Invariants: standard output carries data only, standard error talk only. Commands read
//! clocks, make ids and start tasks through `ebbtide-runtime`.

pub mod backoff;
pub mod bag;
pub mod charts;
pub mod cloud;
pub mod completion;
pub mod config;
mod context;
pub mod errors;
pub mod globals;
pub mod hours;
pub mod io;
pub mod json;
pub mod layout;
pub mod listing;
pub mod model;
pub mod output;
pub mod program;
pub mod render;
pub mod resolve;
pub mod table;
pub mod time_argument;

pub use context::Context;
