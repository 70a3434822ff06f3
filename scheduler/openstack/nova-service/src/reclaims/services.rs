//! What a reclaim does through Nova's API: it disables and enables the nova-compute of a host.

use async_trait::async_trait;
use ebbtide_openstack::OpenStackError;
use ebbtide_openstack::compute::Compute;

/// The nova-compute of a host, as Nova's API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComputeServiceState {
    /// Nova's id of it.
    pub(crate) id: String,
    /// Why it is disabled; `None`: it is enabled.
    pub(crate) disabled: Option<String>,
}

/// The services of computes.
#[async_trait]
pub(crate) trait ComputeServices: Send + Sync {
    /// The nova-compute of a host; `None`: Nova knows none.
    async fn state(&self, host: &str) -> Result<Option<ComputeServiceState>, OpenStackError>;
    /// Disables it for a reason, or enables it.
    async fn set_disabled(&self, id: &str, reason: Option<&str>) -> Result<(), OpenStackError>;
}

#[async_trait]
impl ComputeServices for Compute {
    async fn state(&self, host: &str) -> Result<Option<ComputeServiceState>, OpenStackError> {
        let found = self.compute_service(host).await?;
        Ok(found.map(|service| {
            let reason = || "no reason given".to_owned();
            ComputeServiceState {
                id: service.id,
                disabled: (service.status == "disabled")
                    .then(|| service.disabled_reason.unwrap_or_else(reason)),
            }
        }))
    }

    async fn set_disabled(&self, id: &str, reason: Option<&str>) -> Result<(), OpenStackError> {
        self.set_service_disabled(id, reason).await
    }
}
