//! The return of a server that was evacuated and kept: stopped or hibernated, it waits for capacity
//! and resumes by itself.

use crate::{ServerStatus, Timestamp};
use serde::{Deserialize, Serialize};

/// How an evacuated server was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SavedState {
    /// Its disk.
    Stopped,
    /// Its disk and its memory.
    Hibernated,
}

impl SavedState {
    /// The status of a server that is kept so.
    #[must_use]
    pub fn status(self) -> ServerStatus {
        match self {
            Self::Stopped => ServerStatus::Stopped,
            Self::Hibernated => ServerStatus::Hibernated,
        }
    }

    /// How a server with this status is kept, if it is.
    #[must_use]
    pub fn of(status: ServerStatus) -> Option<Self> {
        match status {
            ServerStatus::Stopped => Some(Self::Stopped),
            ServerStatus::Hibernated => Some(Self::Hibernated),
            _ => None,
        }
    }
}

/// The record of a server that has been evacuated and kept at least once. The server keeps it when
/// it runs again, because the next waiting time depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comeback {
    /// How it was last kept; a failed attempt returns it to this.
    #[serde(rename = "kept")]
    pub saved_state: SavedState,
    /// When it began to wait, or was last evacuated.
    pub since: Timestamp,
    /// The scheduler does not try (again) before this time.
    pub not_before: Timestamp,
    /// Number of consecutive evacuations without a run of the whole window in between; at least 1.
    pub preempted: u32,
    /// Failed attempts since the last evacuation.
    #[serde(default)]
    pub tries: u32,
    /// Why the last attempt failed, for the owner: names no other tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When its agent was last told to resume it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    /// The storage in which it was last kept, if several hosts share it: any of them can resume it.
    /// `None`: only its own host can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}
