//! What every command works with.

use crate::cloud::CloudRequest;
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
    /// The cloud that it belongs to, in words.
    pub cloud: String,
    /// The OpenStack that is meant, until the command has logged in there.
    pub cloud_request: Option<CloudRequest>,
    /// On whose behalf.
    pub project: String,
    /// True if the user named the project.
    pub has_own_project: bool,
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
