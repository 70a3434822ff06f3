//! Errors that only `ebbtide-manage` has.

use ebbtide_access::AccessError;
use ebbtide_nova_service::NovaServiceError;
use ebbtide_shell::errors::ProgramError;
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
        /// How many.
        problem: String,
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
            Self::NovaService(error) => error.code(),
            Self::Access(error) => error.code(),
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
            Self::NovaService(_) | Self::Access(_) => return None,
        };
        Some(next.to_owned())
    }
}
