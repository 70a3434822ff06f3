//! Authentication and authorization: who may do what.
//!
//! - [`token`]: what a token is, how it is made and recognised. Only its hash is ever kept.
//! - [`file`]: the file of the hashes, which `ebbtide-manage token` writes and the scheduler reads.
//! - [`caller`]: a caller whose identity is proven, with a role and, for tenants, projects.
//! - [`certificate`]: from the names of a client certificate to a caller.
//! - [`rules`]: the table of all calls of the API and what each needs. A call that is not in the
//!   table is refused.
//! - [`bucket`]: rate limits for each account.
//!
//! Invariants: no type of this crate shows a token in `Debug` or `Display`. No code here reads a
//! clock; the time comes in as an argument. Randomness comes from `ids` only.

pub mod bucket;
pub mod caller;
pub mod certificate;
mod error;
pub mod file;
pub mod rules;
pub mod token;

pub use bucket::{Allowance, Buckets};
pub use caller::{Caller, Role};
pub use error::AccessError;
pub use file::{TokenFile, TokenRow};
pub use rules::{AccessRequirement, AccessRule, policy_checks, rule_of};
pub use token::Token;
