//! An audit compares Placement, Nova's databases and the ledger.
//!
//! [`read`] reads the data, and [`compare`] compares them: it is pure, and each kind of
//! disagreement has its own code.

mod compare;
mod read;
mod shortage;
mod tables;

pub(crate) use compare::held;
pub use compare::{
    AuditServer, AuditSnapshot, Disagreement, Host, Migration, PreemptionRow, UnreadableRow,
    compare,
};
pub(crate) use read::AuditSources;
pub use read::read;
pub(crate) use read::read_whole;
pub use shortage::{CpuKind, PreemptibleServer, WholeHolding};
pub(crate) use shortage::{Shortage, shortages};

use serde::Serialize;

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReport {
    /// Number of compute nodes checked.
    pub hosts: usize,
    /// Number of servers that are not deleted.
    pub servers: usize,
    /// Consumers in Placement.
    pub consumers: usize,
    /// Preemptions under way.
    pub preemptions: usize,
    /// The disagreements, the worst first. Empty: everything agrees.
    pub findings: Vec<Disagreement>,
}

impl AuditReport {
    /// The findings that a later audit confirms, in its words. The others were transitions.
    #[must_use]
    pub fn confirmed_by(&self, later: &Self) -> Self {
        let known = |found: &&Disagreement| {
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
