//! What the region refuses.

use ebbtide_engine::EngineError;
use ebbtide_model::ModelError;
use thiserror::Error;

/// A refused input. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RegionError {
    /// A value that no version of the region would take.
    #[error(transparent)]
    Invalid(#[from] ModelError),
    /// The engine refused the request.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A key of the configuration is out of range.
    #[error("{0}")]
    Config(String),
    /// Something that is named does not exist.
    #[error("there is no {what} {name:?}; {next}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// How it was named.
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// Something that is to be made exists already, and is not the same.
    #[error("{what} {name:?} exists already; {next}")]
    Exists {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// A name that fits several.
    #[error("{count} {what} are named {name:?}; use the id")]
    Ambiguous {
        /// What kind of things.
        what: &'static str,
        /// The name.
        name: String,
        /// How many.
        count: usize,
    },
    /// More than a project may have.
    #[error(
        "project {project:?} has {used} {what} and asks for {asked} more, but may have {most} in all; \
         delete some, or ask an operator for a higher quota"
    )]
    Quota {
        /// What kind of things.
        what: &'static str,
        /// Whose.
        project: String,
        /// How many there are.
        used: usize,
        /// How many are asked for.
        asked: usize,
        /// How many there may be.
        most: u32,
    },
    /// Right in itself, but not in the present state.
    #[error("{0}")]
    Conflict(String),
}

impl RegionError {
    /// The stable code of this error; `docs/errors.md` has a paragraph for each.
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
        }
    }
}
