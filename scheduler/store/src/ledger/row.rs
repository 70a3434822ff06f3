//! The rows: one preemption each.

use super::owner::not_yet;
use super::{LedgerError, Owner};
use crate::StoreConfig;
use serde_json::Value;
use uuid::Uuid;

/// An open ledger. Cheap to clone; all clones share the connections.
#[derive(Debug, Clone)]
pub struct Ledger {}

/// A preemption to be written down.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRow {
    /// Id.
    pub id: Uuid,
    /// Nova's request id (`req-…`).
    pub request_id: String,
    /// State, in the caller's words; at most 32 characters.
    pub state: String,
    /// Whose it is.
    pub owner: Owner,
    /// Instances that get the room.
    pub newcomers: Vec<Uuid>,
    /// Instances that give it. None of them may be a victim of another open row.
    pub victims: Vec<Uuid>,
    /// Everything else, for the caller alone.
    pub document: Value,
}

/// A preemption as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerRow {
    /// Id.
    pub id: Uuid,
    /// Nova's request id.
    pub request_id: String,
    /// State.
    pub state: String,
    /// Whose it is.
    pub owner: Owner,
    /// One more with every update.
    pub version: i64,
    /// Over: nothing will happen to it any more.
    pub finished: bool,
    /// Instances that get the room.
    pub newcomers: Vec<Uuid>,
    /// Instances that give it; empty once finished.
    pub victims: Vec<Uuid>,
    /// Milliseconds since 1970 by the database's clock.
    pub created_at: i64,
    /// Milliseconds since 1970 by the database's clock.
    pub updated_at: i64,
    /// The caller's.
    pub document: Value,
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// It is written; the row has this version now.
    Updated(i64),
    /// The row has another version: somebody else moved it on, and it is not ours to touch any more.
    Lost,
}

impl Ledger {
    /// Connects and brings the tables to this program's schema.
    ///
    /// # Errors
    /// Those of [`Store::open`](crate::Store::open).
    pub async fn open(_config: &StoreConfig) -> Result<Self, LedgerError> {
        Err(not_yet())
    }

    /// Writes a new row, at version 1.
    ///
    /// # Errors
    /// `VictimTaken`, `Exists`; those of the database.
    pub async fn insert(&self, _row: &NewRow) -> Result<(), LedgerError> {
        Err(not_yet())
    }

    /// Moves a row on, if it is still at `expected_version`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn update(
        &self,
        _id: Uuid,
        _expected_version: i64,
        _state: &str,
        _document: &Value,
    ) -> Result<Written, LedgerError> {
        Err(not_yet())
    }

    /// As [`Self::update`], with other victims: after a conflict another set was planned.
    ///
    /// # Errors
    /// `VictimTaken`; those of the database.
    pub async fn replan(
        &self,
        _id: Uuid,
        _expected_version: i64,
        _state: &str,
        _victims: &[Uuid],
        _document: &Value,
    ) -> Result<Written, LedgerError> {
        Err(not_yet())
    }

    /// Ends a row: its victims can be planned with again.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn finish(
        &self,
        _id: Uuid,
        _expected_version: i64,
        _state: &str,
        _document: &Value,
    ) -> Result<Written, LedgerError> {
        Err(not_yet())
    }

    /// Takes a row over, if it is still at `expected_version`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn adopt(
        &self,
        _id: Uuid,
        _expected_version: i64,
        _owner: &Owner,
    ) -> Result<Written, LedgerError> {
        Err(not_yet())
    }

    /// One row.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn row(&self, _id: Uuid) -> Result<Option<LedgerRow>, LedgerError> {
        Err(not_yet())
    }

    /// All rows that are not finished, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn open_rows(&self) -> Result<Vec<LedgerRow>, LedgerError> {
        Err(not_yet())
    }

    /// Rows in which an instance is a newcomer, newest first, finished ones included.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn by_instance(&self, _instance: Uuid) -> Result<Vec<LedgerRow>, LedgerError> {
        Err(not_yet())
    }

    /// Every victim of an open row, and that row: nobody to be planned with.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn victims_of_open_rows(&self) -> Result<Vec<(Uuid, Uuid)>, LedgerError> {
        Err(not_yet())
    }

    /// Deletes finished rows that were last touched so long ago, and schedulers that have been silent for so long and own
    /// nothing that is open. Returns how many rows went.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn purge(&self, _older_than_millis: i64) -> Result<u64, LedgerError> {
        Err(not_yet())
    }

    /// Closes all connections of all clones.
    pub async fn close(&self) {}
}
