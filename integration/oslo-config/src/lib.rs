//! Configuration files as oslo.config reads them.
//!
//! ```
//! use oslo_config::{Config, Opt};
//!
//! const REPORT_INTERVAL: Opt = Opt::int("DEFAULT", "report_interval").default("10");
//! const TRANSPORT_URL: Opt = Opt::text("DEFAULT", "transport_url").secret();
//!
//! # fn main() -> oslo_config::Result<()> {
//! let config = Config::load_with(&[], &[], [("OS_DEFAULT__REPORT_INTERVAL".to_owned(),
//! "5".to_owned())])?;
//! assert_eq!(config.int(&REPORT_INTERVAL)?, Some(5));
//! assert_eq!(config.text(&TRANSPORT_URL)?, None);
//! # Ok(())
//! # }
//! ```
//!
//! What holds, checked against Python's oslo.config with a table of odd files
//! (`tests/vectors.json.gz`):
//! - Files in their order, then the `*.conf` of directories by name; what comes later wins.
//!   `OS_GROUP__NAME` of the environment wins over all.
//! - Groups compare without case, but for `DEFAULT`; names with it.
//! - An option may have older groups and names.
//! - `$name`, `${name}`, `${group.name}` stand for other options, with their defaults; `$$` and
//!   `\$` for a dollar sign.
//! - Options that the program does not read are never checked. The error for a wrong value says
//!   file, line, group, option, value and what is allowed.

#![warn(missing_docs)]

mod config;
mod error;
mod option;
mod parse;
mod search;
mod template;
mod typed;
mod value;

pub use config::{Config, FileValue};
pub use error::{ConfigError, Result, ValueLocation};
pub use option::{Effect, Opt, OptionType, Scalar};
pub use search::default_paths;
pub use value::Value;
