//! Services and hypervisors.

use super::{Compute, encoded};
use crate::adapter::AdapterRequest;
use crate::error::OpenStackError;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// How many hypervisors are asked for at a time; Nova's default `max_limit`.
const PAGE: usize = 1_000;
/// More pages than any cloud has hosts for.
const MAX_PAGES: usize = 1_000;

/// A row of `openstack compute service list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    /// Its id, a UUID from microversion 2.53 on.
    pub id: String,
    /// `nova-compute`, `nova-scheduler`, …
    pub binary: String,
    pub host: String,
    /// `enabled` or `disabled`.
    #[serde(default)]
    pub status: String,
    /// `up` or `down`.
    #[serde(default)]
    pub state: String,
    /// Its availability zone.
    #[serde(default)]
    pub zone: Option<String>,
    #[serde(default)]
    pub disabled_reason: Option<String>,
    /// Whether an operator has said that it is down.
    #[serde(default)]
    pub forced_down: bool,
}

/// What a compute host has, as its driver reported it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hypervisor {
    /// Its id, from microversion 2.53 on that of its resource provider.
    pub id: Uuid,
    /// Its name.
    pub hypervisor_hostname: String,
    /// `up` or `down`.
    #[serde(default)]
    pub state: String,
    /// `enabled` or `disabled`.
    #[serde(default)]
    pub status: String,
    /// Physical CPUs.
    #[serde(default)]
    pub vcpus: i64,
    /// MiB.
    #[serde(default)]
    pub memory_mb: i64,
    /// GiB.
    #[serde(default)]
    pub local_gb: i64,
    /// The service that speaks for it.
    pub service: HypervisorService,
}

/// The service that speaks for a hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HypervisorService {
    pub host: String,
}

#[derive(Deserialize)]
struct Services {
    services: Vec<ComputeService>,
}

#[derive(Deserialize)]
struct Hypervisors {
    hypervisors: Vec<Hypervisor>,
    #[serde(default)]
    hypervisors_links: Vec<Value>,
}

impl Compute {
    /// The services, all or those of one binary.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn services(
        &self,
        binary: Option<&str>,
    ) -> Result<Vec<ComputeService>, OpenStackError> {
        let version = self.negotiated().await?;
        let query = binary
            .map(|binary| format!("?binary={}", encoded(binary)))
            .unwrap_or_default();
        let ask = AdapterRequest::get(format!("/os-services{query}")).at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Services = answer.json(&call)?;
        Ok(found.services)
    }

    /// The nova-compute of a host; `None`: Nova knows none.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn compute_service(
        &self,
        host: &str,
    ) -> Result<Option<ComputeService>, OpenStackError> {
        let version = self.negotiated().await?;
        let path = format!("/os-services?binary=nova-compute&host={}", encoded(host));
        let ask = AdapterRequest::get(path).at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Services = answer.json(&call)?;
        let mut services = found.services.into_iter();
        Ok(services.find(|service| service.host == host && service.binary == "nova-compute"))
    }

    /// Disables a service for a reason, or enables it.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`], [`OpenStackError::Forbidden`] if the credentials are not an
    /// administrator's, [`OpenStackError::Unavailable`] and the like.
    pub async fn set_service_disabled(
        &self,
        id: &str,
        reason: Option<&str>,
    ) -> Result<(), OpenStackError> {
        let version = self.negotiated().await?;
        let body = match reason {
            Some(reason) => json!({"status": "disabled", "disabled_reason": reason}),
            None => json!({"status": "enabled"}),
        };
        let path = format!("/os-services/{}", encoded(id));
        let ask = AdapterRequest::new(Method::PUT, path)
            .at(version)
            .with(&body);
        self.adapter.call(&ask).await?;
        Ok(())
    }

    /// All hypervisors, page by page.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn hypervisors(&self) -> Result<Vec<Hypervisor>, OpenStackError> {
        let version = self.negotiated().await?;
        let mut hypervisors: Vec<Hypervisor> = Vec::new();
        let mut marker = None;
        for _ in 0..MAX_PAGES {
            let behind = marker
                .map(|marker| format!("&marker={marker}"))
                .unwrap_or_default();
            let ask = AdapterRequest::get(format!("/os-hypervisors/detail?limit={PAGE}{behind}"))
                .at(version);
            let (answer, call) = self.adapter.call(&ask).await?;
            let page: Hypervisors = answer.json(&call)?;
            let last = page.hypervisors.last().map(|hypervisor| hypervisor.id);
            let more = !page.hypervisors_links.is_empty() && last.is_some() && last != marker;
            hypervisors.extend(page.hypervisors);
            if !more {
                return Ok(hypervisors);
            }
            marker = last;
        }
        Ok(hypervisors)
    }
}
