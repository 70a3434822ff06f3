//! What the engine refuses. That no host is valid is not an error but an answer: see
//! [`DecisionOutcome::NoValidHost`](ebbtide_model::DecisionOutcome::NoValidHost).

use ebbtide_model::{GroupId, ModelError, ServerId};
use thiserror::Error;

/// Why there is no decision, or why the host table refused a change.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EngineError {
    /// A key of the engine's configuration has a value that cannot be used.
    #[error("engine configuration: {key}: {problem}")]
    Config {
        /// The key, as it is written in the configuration file.
        key: String,
        /// What is wrong and what is accepted.
        problem: String,
    },
    /// The request contradicts itself or is out of range.
    #[error("request: {0}")]
    Request(#[from] ModelError),
    /// The request joins a server group that the table does not know.
    #[error("server group {0} is unknown: create it before servers join it")]
    UnknownGroup(GroupId),
    /// An instance was put on a host that the table does not know.
    #[error("instance {instance}: host {host:?} is unknown: register the host first")]
    UnknownHost {
        instance: ServerId,
        /// The host as it was named.
        host: String,
    },
    /// A weigher misbehaved and `plugin_failure` is `refuse`.
    #[error("weigher {weigher}: {problem}; repair it, or set plugin_failure to ignore")]
    Weigher {
        weigher: String,
        /// What it did.
        problem: String,
    },
    /// The cost module misbehaved and `plugin_failure` is `refuse`.
    #[error("cost module {module}: {problem}; repair it, or set plugin_failure to ignore")]
    CostModule {
        /// The cost module.
        module: String,
        /// What it did.
        problem: String,
    },
    /// The victim search refused its input, or an invariant of the engine does not hold: a bug,
    /// never the caller's fault.
    #[error("internal: {0}; please report this with the request and the host table")]
    Internal(String),
}

impl EngineError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "EB-ENGINE-001",
            Self::Request(_) => "EB-ENGINE-002",
            Self::UnknownGroup(_) => "EB-ENGINE-003",
            Self::UnknownHost { .. } => "EB-ENGINE-004",
            Self::Weigher { .. } => "EB-ENGINE-005",
            Self::CostModule { .. } => "EB-ENGINE-006",
            Self::Internal(_) => "EB-ENGINE-007",
        }
    }
}
