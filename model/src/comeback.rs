//! The way back of a server that was evacuated and kept: stopped or hibernated, it waits for room and goes on by itself.

use crate::{ServerStatus, Timestamp};
use serde::{Deserialize, Serialize};

/// How a server was kept that had to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// Its disk.
    Stopped,
    /// Its disk and its memory.
    Hibernated,
}

impl Kept {
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

/// What is known of a server that has been evacuated and kept at least once. It stays with the server when it runs again, because how
/// long the server stays away the next time depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comeback {
    /// How it was kept the last time; an attempt that fails goes back to this.
    pub kept: Kept,
    /// Since when it waits, or when it was evacuated last.
    pub since: Timestamp,
    /// It is not tried (again) before.
    pub not_before: Timestamp,
    /// How often in a row it was evacuated without having run for the whole window in between; at least 1.
    pub preempted: u32,
    /// Attempts that have failed since it was evacuated.
    #[serde(default)]
    pub tries: u32,
    /// Why the last attempt failed, fit for the owner: names no other tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When its agent was last told to let it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    /// The storage in which it was kept the last time, if several hosts share it: any of them can let it go on. `None`: only its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}
