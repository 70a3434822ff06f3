//! Why a benchmark cannot be run, or why its answer is not to be used.

use ebbtide_engine::EngineError;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no figure.
#[derive(Debug, Error)]
pub enum BenchError {
    /// An option that makes no sense.
    #[error("{0}")]
    Option(String),
    /// The engine refused a request of the workload.
    #[error("the engine refused: {0}")]
    Engine(#[from] EngineError),
    /// The system does not tell what is needed to measure.
    #[error("cannot measure: {0}")]
    System(String),
    /// A plot could not be drawn.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
    /// A file could not be written.
    #[error("cannot write {}: {problem}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

impl BenchError {
    /// The stable code of this error; `docs/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Option(_) => "EB-BENCH-001",
            Self::Engine(error) => error.code(),
            Self::System(_) => "EB-BENCH-004",
            Self::Plot(_) => "EB-BENCH-002",
            Self::Write { .. } => "EB-BENCH-003",
        }
    }

    /// What helps, if anything is known to.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        match self {
            Self::Option(_) => Some("`ebbtide bench --help` has the ranges".to_owned()),
            Self::Write { .. } => {
                Some("name a file in a directory that exists and can be written to".to_owned())
            }
            Self::System(_) => Some("measure on Linux with /proc mounted".to_owned()),
            Self::Engine(_) | Self::Plot(_) => None,
        }
    }
}
