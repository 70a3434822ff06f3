//! What can go wrong between the ledger and its database.

use crate::StoreError;
use ebbtide_model::BudgetScope;
use thiserror::Error;
use uuid::Uuid;

/// An error of the ledger. Nothing of the operation has been written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LedgerError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An instance is a victim of another preemption that is under way: look again, and plan
    /// without it.
    #[error("instance {victim} is a victim of the preemption {by} already; plan again without it")]
    VictimTaken {
        /// The instance.
        victim: Uuid,
        /// The row that has it.
        by: Uuid,
    },
    /// There is a row of the same request already, which has answered it or is about to: go on with
    /// that one.
    #[error("the request {request} has the preemption {by} already; go on with that one")]
    RequestTaken {
        /// The request's key.
        request: String,
        /// The row that has it.
        by: Uuid,
    },
    /// A row with this id exists.
    #[error("there is a preemption {id} in the ledger already; a new one needs a new id")]
    Exists { id: Uuid },
    /// What a budget had left was counted before another preemption or a change of the budget:
    /// count again.
    #[error(
        "the disruption budget of {scope} has changed since it was counted; count again and plan within what is left"
    )]
    BudgetMoved {
        /// The budget's scope.
        scope: BudgetScope,
    },
    /// A scheduler with the same name registered after this one: two run under one name, or the
    /// other one replaced this one.
    #[error(
        "another scheduler registered as {name:?} after this one (epoch {epoch}); give each scheduler a name of its own ([DEFAULT] host), and restart this one"
    )]
    Superseded { name: String, epoch: i64 },
    /// A restored ledger was compared with Placement and Nova, and has changed since.
    #[error(
        "the ledger has changed since it was compared with Placement and Nova; nothing was written, reconcile again"
    )]
    RestoreMoved,
}

impl LedgerError {
    /// The stable code, as listed in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::VictimTaken { .. } => "EB-LEDGER-001",
            Self::Exists { .. } => "EB-LEDGER-002",
            Self::Superseded { .. } => "EB-LEDGER-003",
            Self::RequestTaken { .. } => "EB-LEDGER-004",
            Self::BudgetMoved { .. } => "EB-LEDGER-005",
            Self::RestoreMoved => "EB-LEDGER-006",
        }
    }

    /// True if the same operation can succeed later without any intervention.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }
}
