//! Hosts that operators remove for good, on both clouds.

use super::openstack::unread;
use super::{Answer, OpenStackView, RegionView};
use crate::error::ServiceError;
use ebbtide_nova_service::RemovalError;
use ebbtide_proto::v1;
use ebbtide_region::{ReadmitHost, RegionError, RemoveHost};

/// Who removes hosts and readmits them.
pub(crate) trait HostRemovals: Send + Sync {
    /// Removes a host, and says what it leaves at the broker.
    fn remove_host<'a>(&'a self, host: &'a str) -> Answer<'a, v1::RemoveHostResponse>;
    /// Lets a removed host register again.
    fn readmit_host<'a>(&'a self, host: &'a str) -> Answer<'a, ()>;
}

impl HostRemovals for RegionView {
    fn remove_host<'a>(&'a self, host: &'a str) -> Answer<'a, v1::RemoveHostResponse> {
        Box::pin(async move {
            let remove = RemoveHost(host.to_owned());
            self.region_actor.handle(remove).await?;
            Ok(self.queues.delete(host).await)
        })
    }

    fn readmit_host<'a>(&'a self, host: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { self.region_actor.handle(ReadmitHost(host.to_owned())).await })
    }
}

fn refused(error: RemovalError) -> ServiceError {
    match error {
        RemovalError::NoHost(name) => ServiceError::NotFound {
            what: "host",
            name,
            next: "`ebbtide host list` shows those that there are",
        },
        RemovalError::InUse { host, why } => RegionError::HostInUse { host, why }.into(),
        error @ RemovalError::Unregistered(_) => RegionError::Conflict(error.to_string()).into(),
        RemovalError::Cloud(error) => unread(&error),
    }
}

impl HostRemovals for OpenStackView {
    fn remove_host<'a>(&'a self, host: &'a str) -> Answer<'a, v1::RemoveHostResponse> {
        Box::pin(async move {
            let left = self.reader().remove_host(host).await.map_err(refused)?;
            Ok(v1::RemoveHostResponse {
                queue: left.queue,
                queue_deleted: left.problem.is_none(),
                queue_problem: left.problem.unwrap_or_default(),
                // nova.conf does not say which login an agent has.
                login: String::new(),
            })
        })
    }

    fn readmit_host<'a>(&'a self, host: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { self.reader().readmit_host(host).await.map_err(refused) })
    }
}
