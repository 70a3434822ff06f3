//! Errors of a region.

use ebbtide_engine::EngineError;
use ebbtide_model::{ModelError, ReclaimedHost, names};
use thiserror::Error;

/// A refused input. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RegionError {
    /// A value that is invalid in any state of the region.
    #[error(transparent)]
    Invalid(#[from] ModelError),
    /// The engine refused the request.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A key of the configuration is out of range.
    #[error("{0}")]
    Config(String),
    /// A named object does not exist.
    #[error("there is no {what} {name:?}; {next}")]
    NotFound {
        /// The kind of object.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// An object to be created exists already with other properties.
    #[error("{what} {name:?} exists already; {next}")]
    Exists {
        /// The kind of object.
        what: &'static str,
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// Several objects have the name.
    #[error("{count} {what} are named {name:?}; use the id")]
    Ambiguous {
        /// The kind of objects.
        what: &'static str,
        name: String,
        count: usize,
    },
    /// A project would exceed its quota.
    #[error(
        "project {project:?} has {used} {what} and asks for {requested} more, but may have {most} in all; \
         delete some, or ask an operator for a higher quota"
    )]
    Quota {
        /// The kind of objects.
        what: &'static str,
        project: String,
        /// How many the project has.
        used: usize,
        /// How many the request asks for.
        requested: usize,
        /// How many the project may have.
        most: u32,
    },
    /// An owner has the host.
    #[error(transparent)]
    Reclaimed(#[from] ReclaimedHost),
    /// A host cannot be removed now.
    #[error("host {host:?} cannot be removed: {why}")]
    HostInUse {
        host: String,
        /// What is in the way, and what to do.
        why: String,
    },
    /// The database was restored from a backup and is not reconciled with the agents yet.
    #[error(
        "the region's database was restored from a backup, and nothing is decided before an operator has \
         reconciled it with the hosts: `ebbtide-manage reconcile`"
    )]
    Held,
    /// The region cannot be reconciled now.
    #[error("nothing was reconciled: {0}")]
    NotReconcilable(String),
    /// A valid request that the present state does not allow.
    #[error("{0}")]
    Conflict(String),
}

impl RegionError {
    /// No host has this name.
    pub(crate) fn unknown_host(name: &str) -> Self {
        Self::NotFound {
            what: "host",
            name: names::shorten(name),
            next: "`ebbtide host list` shows those whose agents have registered",
        }
    }

    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(e) => e.code(),
            Self::Engine(e) => e.code(),
            Self::Config(_) => "EB-REGION-001",
            Self::NotFound { .. } => "EB-REGION-002",
            Self::Exists { .. } => "EB-REGION-003",
            Self::Ambiguous { .. } => "EB-REGION-004",
            Self::Conflict(_) => "EB-REGION-005",
            Self::Quota { .. } => "EB-REGION-006",
            Self::Reclaimed(_) => "EB-REGION-008",
            Self::HostInUse { .. } => "EB-REGION-009",
            Self::Held => "EB-REGION-011",
            Self::NotReconcilable(_) => "EB-REGION-012",
        }
    }
}
