//! A tenant lets a leaving server go before its grace period is over.

use super::openstack::unread;
use super::{Answer, ListedServer, OpenStackView, RegionView};
use crate::error::ServiceError;
use ebbtide_model::Evacuation;
use ebbtide_region::{RegionError, ReleaseServer};

/// Who tells agents not to wait for the end of a grace period.
pub(crate) trait EarlyRelease: Send + Sync {
    /// The evacuation whose agent is told. A conflict if the server is not leaving.
    fn release<'a>(&'a self, leaving: &'a ListedServer) -> Answer<'a, Evacuation>;
}

impl EarlyRelease for RegionView {
    fn release<'a>(&'a self, leaving: &'a ListedServer) -> Answer<'a, Evacuation> {
        Box::pin(async move {
            let release = ReleaseServer(leaving.server.id);
            self.region_actor.handle(release).await
        })
    }
}

impl EarlyRelease for OpenStackView {
    fn release<'a>(&'a self, leaving: &'a ListedServer) -> Answer<'a, Evacuation> {
        Box::pin(async move {
            let server = &leaving.server;
            let released = self.reader().release_early(server.id).await;
            let released = released.map_err(|error| unread(&error))?;
            released.ok_or_else(|| {
            ServiceError::Region(RegionError::Conflict(format!(
                "server {} is not being evacuated (it is {}); `openstack server delete` ends it",
                server.id, server.status
            )))
        })
        })
    }
}
