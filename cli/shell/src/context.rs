//! What every command works with.

use crate::errors::CliError;
use crate::output::Output;
use ebbtide_client::{Credentials, Region};

/// What every command works with.
#[derive(Debug)]
pub struct Context {
    /// How to speak.
    pub output: Output,
    /// Address of the region.
    pub endpoint: String,
    /// On whose behalf.
    pub project: String,
    /// Proof of who we are.
    pub credentials: Credentials,
}

impl Context {
    /// Connects to the region.
    ///
    /// # Errors
    /// [`CliError::Client`] if the region does not answer.
    pub async fn region(&self) -> Result<Region, CliError> {
        Ok(Region::connect(&self.endpoint, &self.credentials).await?)
    }
}
