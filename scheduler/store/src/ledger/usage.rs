//! What is not to be billed: the last, unfinished period of every victim.

use super::owner::not_yet;
use super::{Ledger, LedgerError};
use uuid::Uuid;

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUsage {
    /// The evacuation that ended it. One record each: writing it again changes nothing.
    pub evacuation_id: Uuid,
    /// Server.
    pub server_id: Uuid,
    /// Project.
    pub project_id: String,
    /// Flavor, by its name.
    pub flavor: String,
    /// Milliseconds since 1970; `None` if it never came up.
    pub launched_at: Option<i64>,
    /// Milliseconds since 1970.
    pub ended_at: i64,
    /// Seconds that are not to be billed.
    pub unbilled_seconds: i64,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// What was written.
    pub usage: NewUsage,
    /// When, milliseconds since 1970 by the database's clock.
    pub created_at: i64,
}

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// Only of this project.
    pub project_id: Option<String>,
    /// Only those that ended at or after, milliseconds since 1970.
    pub ended_from: Option<i64>,
    /// Only those that ended before, milliseconds since 1970.
    pub ended_before: Option<i64>,
    /// At most so many, oldest first; 0: 10,000.
    pub limit: u32,
}

impl Ledger {
    /// Writes a record. True if it is new, false if the evacuation has one already.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn record_usage(&self, _usage: &NewUsage) -> Result<bool, LedgerError> {
        Err(not_yet())
    }

    /// Lists records by the end of their servers.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn usage(&self, _filter: &UsageFilter) -> Result<Vec<UsageRecord>, LedgerError> {
        Err(not_yet())
    }
}
