//! Disruption budgets: limits of the preemption of a project or a server group. A budget is a
//! constraint, never a score.

use crate::{GroupId, Seconds};
use serde::{Deserialize, Serialize};
use std::fmt;

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
/// Running evacuations always count, spared ones never do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisruptionBudget {
    pub scope: BudgetScope,
    /// How many may be chosen.
    pub max_victims: u32,
    /// Length of the window.
    pub window: Seconds,
}
