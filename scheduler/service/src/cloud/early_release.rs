//! A tenant lets a leaving server go before its grace period is over.

use super::openstack::unread;
use super::{ListedServer, OpenStackView, RegionView};
use crate::error::ServiceError;
use async_trait::async_trait;
use ebbtide_model::Evacuation;
use ebbtide_region::{RegionError, ReleaseServer};

/// Who tells agents not to wait for the end of a grace period.
#[async_trait]
pub(crate) trait EarlyRelease: Send + Sync {
    /// The evacuation whose agent is told. A conflict if the server is not leaving.
    async fn release(&self, leaving: &ListedServer) -> Result<Evacuation, ServiceError>;
}

#[async_trait]
impl EarlyRelease for RegionView {
    async fn release(&self, leaving: &ListedServer) -> Result<Evacuation, ServiceError> {
        let release = ReleaseServer(leaving.server.id);
        self.region_actor.handle(release).await
    }
}

#[async_trait]
impl EarlyRelease for OpenStackView {
    async fn release(&self, leaving: &ListedServer) -> Result<Evacuation, ServiceError> {
        let server = &leaving.server;
        let released = self.reader().release_early(server.id).await;
        let released = released.map_err(|error| unread(&error))?;
        released.ok_or_else(|| {
            ServiceError::Region(RegionError::Conflict(format!(
                "server {} is not being evacuated (it is {}); `openstack server delete` ends it",
                server.id, server.status
            )))
        })
    }
}
