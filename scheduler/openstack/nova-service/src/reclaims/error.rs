//! Why a host is not reclaimed or returned.

use crate::error::NovaServiceError;
use ebbtide_engine::EngineError;
use ebbtide_model::{ModelError, ReclaimedHost};
use ebbtide_store::ledger::LedgerError;
use thiserror::Error;

/// Why a host is not reclaimed or returned.
#[derive(Debug, Error)]
pub enum ReclaimError {
    /// Nova has no compute of this name.
    #[error("there is no host {0:?}")]
    NoHost(String),
    /// Another owner has the host.
    #[error(transparent)]
    Reclaimed(#[from] ReclaimedHost),
    /// A value that is invalid.
    #[error(transparent)]
    Invalid(#[from] ModelError),
    /// The cost module failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The ledger, Nova or the bus to the agents.
    #[error(transparent)]
    Cloud(#[from] NovaServiceError),
}

impl From<LedgerError> for ReclaimError {
    fn from(error: LedgerError) -> Self {
        Self::Cloud(error.into())
    }
}

impl ReclaimError {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NoHost(_) => "EB-SERVICE-001",
            Self::Reclaimed(_) => "EB-REGION-008",
            Self::Invalid(error) => error.code(),
            Self::Engine(error) => error.code(),
            Self::Cloud(error) => error.code(),
        }
    }
}
