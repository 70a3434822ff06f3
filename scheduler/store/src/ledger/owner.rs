//! The schedulers that share the ledger.

use super::{Ledger, LedgerError};
use crate::StoreError;

/// A scheduler that registered: its name and which of its lives this is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Name, unique among the schedulers.
    pub name: String,
    /// One more with every registration.
    pub epoch: i64,
}

/// A scheduler as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerSeen {
    /// Name and epoch.
    pub owner: Owner,
    /// Milliseconds since its last heartbeat, by the database's clock.
    pub silent_millis: i64,
}

impl Ledger {
    /// Registers a scheduler: gives its name a new epoch. Rows of earlier epochs are orphans, to be adopted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn register(&self, _name: &str) -> Result<Owner, LedgerError> {
        Err(not_yet())
    }

    /// One heartbeat.
    ///
    /// # Errors
    /// `Superseded`; those of the database.
    pub async fn beat(&self, _owner: &Owner) -> Result<(), LedgerError> {
        Err(not_yet())
    }

    /// All schedulers that ever registered and were not forgotten.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn owners(&self) -> Result<Vec<OwnerSeen>, LedgerError> {
        Err(not_yet())
    }
}

pub(super) fn not_yet() -> LedgerError {
    LedgerError::Store(StoreError::Refused {
        url: String::new(),
        operation: "the ledger",
        reason: "this is not built yet".to_owned(),
    })
}
