//! An audit: Placement, Nova's databases and the ledger, held against each other.
//!
//! [`read`] asks them, [`compare`] looks: it is pure, and each disagreement that it can name has a code of its own.

mod compare;
mod read;

pub use compare::{Finding, Host, Migration, Picture, Row, Server, compare};
pub use read::read;

use serde::Serialize;

/// What an audit has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Compute nodes that were looked at.
    pub hosts: usize,
    /// Servers that live.
    pub servers: usize,
    /// Consumers in Placement.
    pub consumers: usize,
    /// Preemptions under way.
    pub preemptions: usize,
    /// What disagrees, the worst first. None: all is in order.
    pub findings: Vec<Finding>,
}
