//! Errors of the service, with their HTTP status.

use ebbtide_batch::BatchError;
use ebbtide_shell::errors::{ProgramError, USAGE};
use std::path::Path;
use thiserror::Error;

/// An error of the batch service.
#[derive(Debug, Clone, Error)]
#[error("{place}{error}")]
pub(crate) struct ServiceError {
    /// The file with a colon behind it; empty if no file is to blame.
    place: String,
    /// What is wrong.
    pub(crate) error: BatchError,
}

impl ServiceError {
    pub(crate) fn in_file(path: &Path, error: BatchError) -> Self {
        let place = format!("{}: ", path.display());
        Self { place, error }
    }
}

impl From<BatchError> for ServiceError {
    fn from(error: BatchError) -> Self {
        let place = String::new();
        Self { place, error }
    }
}

impl ProgramError for ServiceError {
    fn code(&self) -> &str {
        self.error.code()
    }

    fn exit_code(&self) -> u8 {
        match self.error {
            BatchError::Setting { .. } => USAGE,
            _ => ebbtide_shell::errors::REFUSED,
        }
    }

    fn next_step(&self) -> Option<String> {
        let next = match self.error {
            BatchError::Setting { .. } => "docs/tenants/batch.md has every key of the file",
            BatchError::Book { .. } => {
                "move the book away to begin without the works in it; jobs of the service that run are ended then"
            }
            _ => return None,
        };
        Some(next.to_owned())
    }
}
