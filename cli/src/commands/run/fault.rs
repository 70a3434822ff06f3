//! Errors of a run, except those in its options.

use ebbtide_run::RunError;
use ebbtide_shell::errors::{ProgramError, REFUSED, USAGE};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a run cannot begin, or ended before its job.
#[derive(Debug, Error)]
pub enum RunFault {
    /// Invalid options, or an unreadable answer.
    #[error(transparent)]
    Core(#[from] RunError),
    /// Another run uses the state directory.
    #[error("another `ebbtide run` is using {}", dir.display())]
    Locked { dir: PathBuf },
    /// The state directory belongs to another job.
    #[error("{} is of another job: {theirs}", dir.display())]
    OtherJob {
        dir: PathBuf,
        /// The other job.
        theirs: String,
    },
    /// The state directory may be prepared by another user.
    #[error("{}: {problem}", dir.display())]
    Foreign {
        dir: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The state file cannot be used.
    #[error("{}: {problem}", file.display())]
    Damaged {
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The state directory cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Storage {
        /// The failed operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A required program is missing, or does not work on this machine.
    #[error("{program}: {problem}")]
    Program {
        program: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        next: String,
    },
    /// No metadata server in a known form answers at the expected address.
    #[error("no metadata at {url}: {problem}")]
    NoMetadata {
        url: String,
        /// What was tried, and the results.
        problem: String,
    },
    /// The job cannot continue from any checkpoint.
    #[error("none of the {count} checkpoints in {} can be gone on from", dir.display())]
    CannotRestore {
        /// Number of checkpoints.
        count: usize,
        dir: PathBuf,
    },
}

impl ProgramError for RunFault {
    fn code(&self) -> &str {
        match self {
            Self::Core(error) => error.code(),
            Self::Locked { .. } => "EB-RUN-004",
            Self::OtherJob { .. } => "EB-RUN-005",
            Self::Damaged { .. } => "EB-RUN-006",
            Self::Storage { .. } => "EB-RUN-007",
            Self::Program { .. } => "EB-RUN-008",
            Self::NoMetadata { .. } => "EB-RUN-009",
            Self::CannotRestore { .. } => "EB-RUN-010",
            Self::Foreign { .. } => "EB-RUN-012",
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Core(RunError::Zero { .. }) => USAGE,
            _ => REFUSED,
        }
    }

    fn next_step(&self) -> Option<String> {
        match self {
            Self::Core(_) => None,
            Self::Locked { .. } => {
                Some("wait for its end, or give this run a --state-dir of its own".to_owned())
            }
            Self::OtherJob { .. } => Some(
                "give each job a --state-dir of its own; the same command line goes on with the same job"
                    .to_owned(),
            ),
            Self::Foreign { .. } => Some(
                "take a --state-dir that is yours alone: what another user put there could make this run write anywhere"
                    .to_owned(),
            ),
            Self::Damaged { .. } => Some(
                "nothing was changed; the folders in `checkpoints` beside it hold what was saved. An empty --state-dir begins anew"
                    .to_owned(),
            ),
            Self::Storage { source, .. } => Some(
                match source.kind() {
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                        "make room on that storage, then type the same again: what was saved before is still there"
                    }
                    _ => "the state directory has to be on storage that is there and can be written",
                }
                .to_owned(),
            ),
            Self::Program { next, .. } => Some(next.clone()),
            Self::NoMetadata { .. } => Some(
                "inside a virtual machine say where with --metadata URL and how with --form; beside one say --flavor or --server; --metadata none hears of nothing"
                    .to_owned(),
            ),
            Self::CannotRestore { .. } => Some(
                "nothing was thrown away: make this machine like the one that saved them, then type the same again"
                    .to_owned(),
            ),
        }
    }
}

/// For `map_err`: the failed operation and its path.
pub(super) fn storage(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunFault {
    let path = path.to_owned();
    move |source| RunFault::Storage { what, path, source }
}
