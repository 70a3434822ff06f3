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

impl Report {
    /// What a later look finds as well, in its words: the rest was under way.
    #[must_use]
    pub fn confirmed_by(&self, later: &Self) -> Self {
        let known = |found: &&Finding| {
            let mut earlier = self.findings.iter();
            earlier.any(|f| f.code == found.code && f.subject == found.subject)
        };
        let findings = later.findings.iter().filter(known).cloned().collect();
        Self {
            findings,
            ..later.clone()
        }
    }
}
