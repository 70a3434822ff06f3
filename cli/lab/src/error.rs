//! Errors that only `ebbtide-lab` has.

use ebbtide_bench::BenchError;
use ebbtide_deadline::DeadlineError;
use ebbtide_shell::errors::{ProgramError, REFUSED, USAGE};
use ebbtide_simulator::SimError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a command of `ebbtide-lab` failed.
#[derive(Debug, Error)]
pub(crate) enum LabError {
    /// Trace, report or offline replay.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A benchmark.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A trace of availability, or a job with a deadline on it.
    #[error("{place}{error}")]
    Deadline {
        /// The file with a colon behind it; empty if no file is to blame.
        place: String,
        /// What is wrong.
        error: DeadlineError,
    },
    /// A file of cases for `conform` cannot be used.
    #[error("{}: {problem}", path.display())]
    Corpus {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, with the line.
        problem: String,
    },
}

impl ProgramError for LabError {
    fn code(&self) -> &str {
        match self {
            Self::Sim(error) => error.code(),
            Self::Bench(error) => error.code(),
            Self::Deadline { error, .. } => error.code(),
            Self::Corpus { .. } => "EB-CLI-014",
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Bench(BenchError::Option(_)) => USAGE,
            Self::Deadline { error, .. } if error.is_setting() => USAGE,
            _ => REFUSED,
        }
    }

    fn next_step(&self) -> Option<String> {
        match self {
            Self::Sim(error) => error.next_step(),
            Self::Bench(error) => error.next_step(),
            Self::Deadline {
                error: DeadlineError::Row { .. } | DeadlineError::Empty,
                ..
            } => Some("docs/tenants/deadlines.md has the format".to_owned()),
            Self::Deadline { .. } => None,
            Self::Corpus { .. } => Some(
                "give a file of cases with answers, such as integration/nova/corpus/dev.jsonl.gz"
                    .to_owned(),
            ),
        }
    }
}
