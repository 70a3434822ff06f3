//! Disruption budgets: how much preemption a project or a server group has to bear. A constraint, never a score.

use crate::{GroupId, Seconds};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who is protected by a budget.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// All preemptible servers of a project.
    Project(String),
    /// The preemptible servers of a server group.
    Group(GroupId),
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(id) => write!(f, "project {id}"),
            Self::Group(id) => write!(f, "server group {id}"),
        }
    }
}

/// At most `max_victims` servers of the scope are chosen as victims within any `window`.
///
/// Evacuations that are still under way always count, those that were spared never do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisruptionBudget {
    /// Who is protected.
    pub scope: BudgetScope,
    /// How many may be chosen.
    pub max_victims: u32,
    /// Within which time.
    pub window: Seconds,
}
