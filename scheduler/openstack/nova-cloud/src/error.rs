//! Errors of the cloud's input and queries. Missing capacity is an answer, not an error.

use uuid::Uuid;

/// What is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// A row of a compute node that Nova itself could not schedule with: the host is left out until
    /// the row is right.
    #[error(
        "the compute node {host} ({uuid}) cannot be taken in: {problem}; until its row in compute_nodes is right the host gets nothing"
    )]
    BadComputeNode {
        /// Service's host.
        host: String,
        uuid: Uuid,
        /// What is wrong.
        problem: String,
    },
    /// An answer of Placement that does not look like one.
    #[error(
        "Placement's answer at {place} {problem}; ask again, and check Placement's version if it stays so"
    )]
    BadAnswer {
        /// Where in the JSON.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// Hosts came or went between a question and its use.
    #[error(
        "the hosts of the cloud have changed since the candidates were looked up; look them up again"
    )]
    Stale,
    /// The engine for victims cannot be made of its configuration.
    #[error("preemption cannot be configured like this: {0}")]
    Engine(String),
    /// A request that cannot be planned because of what it says itself.
    #[error("the request cannot be planned: {0}")]
    BadRequest(String),
}

impl CloudError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadComputeNode { .. } => "EB-CLOUD-001",
            Self::BadAnswer { .. } => "EB-CLOUD-002",
            Self::Stale => "EB-CLOUD-003",
            Self::Engine(_) => "EB-CLOUD-004",
            Self::BadRequest(_) => "EB-CLOUD-005",
        }
    }
}
