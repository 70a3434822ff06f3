//! Errors that only `ebbtide-manage` has.

use ebbtide_access::AccessError;
use ebbtide_keystone::KeystoneError;
use ebbtide_nova_service::NovaServiceError;
use ebbtide_shell::errors::{ProgramError, REFUSED};
use std::path::PathBuf;
use thiserror::Error;

/// Why a command of `ebbtide-manage` failed.
#[derive(Debug, Error)]
pub(crate) enum ManageError {
    /// A file of `ebbtide-manage init` cannot be read, made or understood.
    #[error("{}: {problem}", path.display())]
    Init {
        /// Which file or directory.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A configuration file that was judged has errors.
    #[error("{}: {problem}", path.display())]
    Configuration {
        /// Which file.
        path: PathBuf,
        problem: String,
    },
    /// A cloud is not ready for the scheduler, or not for all that it does.
    #[error("failures: {failures}, warnings: {warnings}")]
    NotReady {
        /// Parts with which a scheduler does not start, or does not work.
        failures: usize,
        /// Parts that do less than one may expect.
        warnings: usize,
    },
    /// A policy file that a scheduler would refuse.
    #[error("{}: {}", path.display(), without_code(source))]
    Policy {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: KeystoneError,
    },
    /// A cloud of Nova's cannot be read.
    #[error(transparent)]
    NovaService(#[from] NovaServiceError),
    /// Tokens and their file.
    #[error(transparent)]
    Access(#[from] AccessError),
}

impl ProgramError for ManageError {
    fn code(&self) -> &str {
        match self {
            Self::Configuration { .. } => "EB-CLI-015",
            Self::Init { .. } => "EB-CLI-016",
            Self::NotReady { .. } => "EB-CLI-018",
            Self::Policy { source, .. } => source.code(),
            Self::NovaService(error) => error.code(),
            Self::Access(error) => error.code(),
        }
    }

    /// Those of `nova-status upgrade check`.
    fn exit_code(&self) -> u8 {
        match self {
            Self::NotReady { failures: 0, .. } => 1,
            Self::NotReady { .. } => 2,
            _ => REFUSED,
        }
    }

    fn next_step(&self) -> Option<String> {
        let next = match self {
            Self::Init { .. } => {
                "what was made stays: correct this and run it again, or move the file away to have it made anew"
            }
            Self::Configuration { .. } => {
                "`ebbtide-manage config explain KEY` says what a key may be; docs/reference/errors.md has the codes"
            }
            Self::Policy { .. } => "`ebbtide-manage policy sample` prints every rule",
            Self::NotReady { .. } => "column NEXT says what to do about each",
            Self::NovaService(_) | Self::Access(_) => return None,
        };
        Some(next.to_owned())
    }
}

/// The texts of this error begin with its code, which the command prints in front of the whole.
fn without_code(error: &KeystoneError) -> String {
    let text = error.to_string();
    let rest = text.strip_prefix(error.code());
    rest.map_or(text.as_str(), |rest| rest.trim_start_matches(": "))
        .to_owned()
}
