//! Errors of drivers.
//!
//! The kinds matter: the protocol retries [`DriverError::Failed`] and [`DriverError::TimedOut`],
//! takes [`DriverError::NotFound`] as the fact that there is nothing to do, and gives up at once on
//! the others.

use ebbtide_model::ServerId;
use thiserror::Error;

/// Why a driver did not execute a call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DriverError {
    /// The hypervisor does not have this server. For a caller that wants it gone, this is success.
    #[error("the hypervisor does not have server {server_id}")]
    NotFound {
        /// The server that was asked for.
        server_id: ServerId,
    },
    /// The hypervisor lacks a resource; a retry does not help until another server leaves.
    #[error("not enough room on the hypervisor: {detail}")]
    NoRoom {
        /// Which resource class, how much is asked and how much is free.
        detail: String,
    },
    /// The hypervisor cannot do this at all; repeating will not help.
    #[error("the {driver} driver cannot {what}: {detail}")]
    Unsupported {
        /// The driver's name in the registry.
        driver: &'static str,
        /// What it was asked to do.
        what: &'static str,
        /// Why not, and what would work.
        detail: String,
    },
    /// The call failed this time; a retry may help.
    #[error("the hypervisor could not {what}: {detail}")]
    Failed {
        /// What it was asked to do.
        what: &'static str,
        /// The hypervisor's own words.
        detail: String,
    },
    /// It did not end in time. Whether it took effect is unknown.
    #[error(
        "the hypervisor did not {what} within {seconds} s; whether it still will is unknown \
         (the limit is agent.action_timeout_seconds)"
    )]
    TimedOut {
        /// What it was asked to do.
        what: &'static str,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The call did not begin, because other calls left no time for it. Nothing has happened.
    #[error(
        "the hypervisor was not asked to {what}: {left_ms} ms were left when its transition came, and it takes {takes_ms} ms"
    )]
    NotBegun {
        /// The action that the driver was to execute.
        what: &'static str,
        /// Remaining time in milliseconds; negative if the time was over.
        left_ms: i64,
        /// The recent duration of such a call, in milliseconds.
        takes_ms: i64,
    },
    /// The server is kept on shared storage, and another host has its token: only that host may run
    /// or delete it.
    #[error(
        "host {host} has the token of server {server_id}; that host alone may start or delete it"
    )]
    HeldElsewhere {
        /// The server that was asked for.
        server_id: ServerId,
        /// The host that has the token.
        host: String,
    },
}

impl DriverError {
    /// The stable code of this error, listed in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "EB-DRIVER-001",
            Self::NoRoom { .. } => "EB-DRIVER-002",
            Self::Unsupported { .. } => "EB-DRIVER-003",
            Self::Failed { .. } => "EB-DRIVER-004",
            Self::TimedOut { .. } => "EB-DRIVER-005",
            Self::NotBegun { .. } => "EB-DRIVER-006",
            Self::HeldElsewhere { .. } => "EB-DRIVER-007",
        }
    }

    /// True if the same call may succeed later without anything else changing.
    #[must_use]
    pub fn is_worth_a_retry(&self) -> bool {
        matches!(
            self,
            Self::Failed { .. } | Self::TimedOut { .. } | Self::HeldElsewhere { .. }
        )
    }
}
