//! Who may do what.
//!
//! - [`token`]: what a token is, how it is made and recognised. Only its hash is ever kept.
//! - [`file`]: the file in which the hashes stand, which `ebbtide token` writes and the scheduler reads.
//! - [`caller`]: somebody whose identity is proven, with a role and, for tenants, projects.
//! - [`certificate`]: from the names of a client certificate to a caller.
//! - [`rules`]: the table of every call of the API and what it needs. A call that does not stand there is refused.
//! - [`bucket`]: how often somebody may ask.
//!
//! Invariants: no type of this crate shows a token in `Debug` or `Display`; nothing here reads a clock (the time comes in); chance
//! comes from `ids` only.

pub mod bucket;
pub mod caller;
pub mod certificate;
mod error;
pub mod file;
mod ids;
pub mod rules;
pub mod token;

pub use bucket::{Allowance, Buckets};
pub use caller::{Caller, Role};
pub use error::AccessError;
pub use file::{TokenFile, TokenRow};
pub use rules::{Need, Rule, rule_of};
pub use token::Token;
