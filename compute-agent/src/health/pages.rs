//! The pages of an agent: they show no names but those of hosts.

use super::Health;
use crate::error::AgentError;
use ebbtide_listen::pages::HealthSource;
pub use ebbtide_listen::pages::Pages;
use std::net::SocketAddr;

/// Serves the pages of these agents at `listen`.
///
/// # Errors
/// [`AgentError::Config`] with the address, if it cannot be had.
pub async fn serve(health: Health, listen: SocketAddr) -> Result<Pages, AgentError> {
    let serving = Pages::serve(health, listen).await;
    serving.map_err(|error| AgentError::config("http.listen", error.to_string()))
}

impl HealthSource for Health {
    fn metrics(&self) -> (&'static str, String) {
        (ebbtide_metrics::CONTENT_TYPE, Self::metrics(self))
    }

    fn stuck(&self) -> Vec<String> {
        Self::stuck(self)
    }

    fn not_ready(&self) -> Vec<String> {
        Self::not_ready(self)
    }
}
