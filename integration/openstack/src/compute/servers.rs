//! Servers: read, delete, and their metadata.

use super::{AcceptedAction, Compute, encoded};
use crate::adapter::AdapterRequest;
use crate::error::{OpenStackError, RequestEffect};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// How many servers are asked for at a time; Nova's default `max_limit`.
const PAGE: usize = 1_000;
/// More pages than any cloud has servers for.
const MAX_PAGES: usize = 10_000;

/// A server as Nova's API shows it. What a policy hides from us is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Server {
    pub id: Uuid,
    /// Its name, chosen by the tenant.
    #[serde(default)]
    pub name: String,
    /// `ACTIVE`, `SHUTOFF`, `SHELVED_OFFLOADED`, …
    pub status: String,
    /// What Nova is doing with it; `None` if nothing.
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// `active`, `stopped`, `shelved_offloaded`, …
    #[serde(default, rename = "OS-EXT-STS:vm_state")]
    pub vm_state: Option<String>,
    /// The host that it is on; `None` for none, or if we are no administrator.
    #[serde(default, rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// The node of that host.
    #[serde(default, rename = "OS-EXT-SRV-ATTR:hypervisor_hostname")]
    pub hypervisor_hostname: Option<String>,
    /// When it began to run, UTC without a zone: `2026-11-20T17:53:30.000000`.
    #[serde(default, rename = "OS-SRV-USG:launched_at")]
    pub launched_at: Option<String>,
    /// When it ended, as `launched_at`.
    #[serde(default, rename = "OS-SRV-USG:terminated_at")]
    pub terminated_at: Option<String>,
    /// When it was asked for: `2026-11-20T17:53:29Z`.
    #[serde(default)]
    pub created: Option<String>,
    /// When it was changed.
    #[serde(default)]
    pub updated: Option<String>,
    /// Whose it is.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Who made it.
    #[serde(default)]
    pub user_id: Option<String>,
    /// Its flavor as it was at boot.
    #[serde(default)]
    pub flavor: ServerFlavor,
    /// The tenant's key-value pairs.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Why it is in status `ERROR`.
    #[serde(default)]
    pub fault: Option<ServerFault>,
    /// Its addresses, by network.
    #[serde(default)]
    pub addresses: BTreeMap<String, Vec<ServerAddress>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerAddress {
    pub addr: String,
    /// 4 or 6.
    pub version: u8,
    /// `fixed` or `floating`.
    #[serde(default, rename = "OS-EXT-IPS:type")]
    pub kind: String,
}

impl Server {
    /// True for what Nova shows of a server while the database of its cell does not answer: that it
    /// was made, and status `UNKNOWN`. It has no host then, and is as alive as before.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.status == "UNKNOWN"
    }

    /// The address by which others reach it best: a floating one before a fixed one, then IPv4
    /// before IPv6. `None` as long as it has none.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        let all = self.addresses.values().flatten();
        let best = all.min_by_key(|one| (one.kind != "floating", one.version));
        best.map(|one| one.addr.as_str())
    }
}

/// A flavor within a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ServerFlavor {
    #[serde(default)]
    pub original_name: String,
    /// Virtual CPUs.
    #[serde(default)]
    pub vcpus: u64,
    /// MiB.
    #[serde(default)]
    pub ram: u64,
    /// GiB.
    #[serde(default)]
    pub disk: u64,
    /// GiB.
    #[serde(default)]
    pub ephemeral: u64,
    /// MiB.
    #[serde(default)]
    pub swap: u64,
    /// Empty also if a policy hides them.
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}

/// Why a server is in status `ERROR`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerFault {
    /// Nova's words.
    #[serde(default)]
    pub message: String,
}

/// Which servers to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFilter {
    /// Only those on this host (for administrators).
    pub host: Option<String>,
    /// Those of all projects (for administrators).
    pub all_tenants: bool,
    /// Only those that changed since, ISO 8601; deleted ones, too.
    pub changes_since: Option<String>,
    /// Only with this status.
    pub status: Option<String>,
}

impl ServerFilter {
    /// All servers of all projects on one host.
    #[must_use]
    pub fn on_host(host: &str) -> Self {
        Self {
            host: Some(host.to_owned()),
            all_tenants: true,
            ..Self::default()
        }
    }

    /// All servers of all projects.
    #[must_use]
    pub fn everywhere() -> Self {
        Self {
            all_tenants: true,
            ..Self::default()
        }
    }

    fn query(&self, marker: Option<Uuid>) -> String {
        let mut query = format!("limit={PAGE}");
        if self.all_tenants {
            query.push_str("&all_tenants=1");
        }
        let pairs = [
            ("host", &self.host),
            ("changes-since", &self.changes_since),
            ("status", &self.status),
        ];
        for (name, value) in pairs {
            if let Some(value) = value {
                query.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        if let Some(marker) = marker {
            query.push_str(&format!("&marker={marker}"));
        }
        query
    }
}

#[derive(Deserialize)]
struct OneServer {
    server: Server,
}

#[derive(Deserialize)]
struct Servers {
    servers: Vec<Server>,
    // Given as long as there are more; Nova may have a smaller page than ours.
    #[serde(default)]
    servers_links: Vec<Value>,
}

impl Compute {
    /// One server.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`] once it is deleted, [`OpenStackError::Unavailable`] (also while
    /// only a part of it can be seen) and the like.
    pub async fn server(&self, server: Uuid) -> Result<Server, OpenStackError> {
        let version = self.negotiated().await?;
        let ask = AdapterRequest::get(format!("/servers/{server}")).at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: OneServer = answer.json(&call)?;
        if found.server.is_partial() {
            return Err(OpenStackError::Unavailable {
                service: call.service.to_owned(),
                what: call.what(),
                problem: "the server's cell does not answer Nova's API".to_owned(),
                effect: RequestEffect::None,
            });
        }
        Ok(found.server)
    }

    /// All servers that the filter lets through, page by page. Of those in a cell that does not
    /// answer only [a part](Server::is_partial) can be seen.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn servers(&self, filter: &ServerFilter) -> Result<Vec<Server>, OpenStackError> {
        let version = self.negotiated().await?;
        let mut servers: Vec<Server> = Vec::new();
        let mut marker = None;
        for _ in 0..MAX_PAGES {
            let ask = AdapterRequest::get(format!("/servers/detail?{}", filter.query(marker)))
                .at(version);
            let (answer, call) = self.adapter.call(&ask).await?;
            let page: Servers = answer.json(&call)?;
            let last = page.servers.last().map(|server| server.id);
            let more = !page.servers_links.is_empty() && last.is_some() && last != marker;
            servers.extend(page.servers);
            if !more {
                return Ok(servers);
            }
            marker = last;
        }
        Ok(servers)
    }

    /// Deletes a server; it is gone when [`server`](Self::server) does not find it any more.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`], [`OpenStackError::Conflict`] (it is locked or in a state that
    /// forbids it), [`OpenStackError::Unavailable`] and the like.
    pub async fn delete(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        let version = self.negotiated().await?;
        let ask = AdapterRequest::new(Method::DELETE, format!("/servers/{server}")).at(version);
        let (answer, _) = self.adapter.call(&ask).await?;
        Ok(AcceptedAction {
            request_id: answer.request_id,
        })
    }

    /// Sets some keys of the metadata; others stay.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`], [`OpenStackError::Conflict`], [`OpenStackError::Forbidden`]
    /// (quota), and the like.
    pub async fn set_metadata(
        &self,
        server: Uuid,
        pairs: &BTreeMap<String, String>,
    ) -> Result<(), OpenStackError> {
        let version = self.negotiated().await?;
        let body = json!({"metadata": pairs});
        let ask =
            AdapterRequest::new(Method::POST, format!("/servers/{server}/metadata")).at(version);
        self.adapter.call(&ask.with(&body)).await.map(drop)
    }

    /// Removes one key of the metadata; `false` if it was not there, or the server is not.
    ///
    /// # Errors
    /// [`OpenStackError::Conflict`], [`OpenStackError::Unavailable`] and the like.
    pub async fn delete_metadata(&self, server: Uuid, key: &str) -> Result<bool, OpenStackError> {
        let version = self.negotiated().await?;
        let path = format!("/servers/{server}/metadata/{}", encoded(key));
        let ask = AdapterRequest::new(Method::DELETE, path).at(version);
        match self.adapter.call(&ask).await {
            Ok(_) => Ok(true),
            Err(OpenStackError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
