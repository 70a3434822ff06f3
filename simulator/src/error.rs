//! What can be wrong with a trace, a recording or a report directory.

use ebbtide_engine::EngineError;
use ebbtide_files::FileError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a trace cannot be replayed or a report not be written.
#[derive(Debug, Error)]
pub enum SimError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The header lacks a column, or has one twice.
    #[error("{}: {problem}", path.display())]
    Header {
        /// Which file.
        path: PathBuf,
        /// Which column, and which are needed.
        problem: String,
    },
    /// A line that cannot be understood.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1, the header included.
        line: u64,
        /// What is wrong and what is accepted.
        problem: String,
    },
    /// A line that is well-formed but contradicts those before it. Skipped when lenient.
    #[error("{}, line {line}: {problem}", path.display())]
    Order {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1, the header included.
        line: u64,
        /// What it contradicts.
        problem: String,
    },
    /// The recorded placements belong to another trace.
    #[error("the recorded placements do not belong to this trace: {0}")]
    OtherTrace(String),
    /// An option that makes no sense.
    #[error("{0}")]
    Option(String),
    /// The engine refused.
    #[error("the engine refused: {0}")]
    Engine(#[from] EngineError),
}

impl SimError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Header { .. } => "EB-SIM-002",
            Self::Line { .. } => "EB-SIM-003",
            Self::Order { .. } => "EB-SIM-004",
            Self::OtherTrace(_) => "EB-SIM-005",
            Self::Option(_) => "EB-SIM-006",
            Self::Engine(error) => error.code(),
        }
    }

    /// What to do about it, if there is something.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        match self {
            Self::Header { .. } => Some(
                "the first line names the columns; event, vm, cpu, mem_gb and time_s are needed"
                    .to_owned(),
            ),
            Self::Order { .. } => {
                Some("--lenient counts and skips such lines instead of stopping".to_owned())
            }
            _ => None,
        }
    }
}
