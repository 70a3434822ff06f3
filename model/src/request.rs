//! Requests to the engine: capacity for one or more equal instances.

use crate::{Flavor, GroupId, ModelError, ServerId, names};
use serde::{Deserialize, Serialize};

/// Most instances in one request. Nova has no limit of its own; operators' quotas are far below.
pub const MAX_INSTANCES: usize = 1000;
/// Most hosts named in one request.
pub const MAX_HOST_LIST: usize = 10_000;

/// A request for capacity, all or nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlacementRequest {
    /// The servers to place, in order. Not empty, no duplicates.
    pub server_ids: Vec<ServerId>,
    /// The requesting project.
    pub project_id: String,
    /// The flavor of each server.
    pub flavor: Flavor,
    /// Only hosts of this zone.
    #[serde(default)]
    pub availability_zone: Option<String>,
    /// The server group that they join.
    #[serde(default)]
    pub group_id: Option<GroupId>,
    /// Hosts that must not be used. Compared without case, as Nova does.
    #[serde(default)]
    pub ignore_hosts: Vec<String>,
    /// The only hosts that may be used. All other filters but capacity are skipped for them, as
    /// Nova does for an administrator's forced host. Compared without case.
    #[serde(default)]
    pub force_hosts: Vec<String>,
    /// How many alternates to name for each instance.
    #[serde(default)]
    pub alternates: u32,
}

fn range(what: &str, value: usize, allowed: String) -> ModelError {
    ModelError::Range {
        what: what.to_owned(),
        value: value.to_string(),
        allowed,
    }
}

/// Checks the project and the servers of a request: their number and duplicates.
///
/// # Errors
/// What is wrong, named.
pub fn check_servers(project_id: &str, server_ids: &[ServerId]) -> Result<(), ModelError> {
    names::check_name("project", project_id)?;
    let n = server_ids.len();
    if n == 0 || n > MAX_INSTANCES {
        let allowed = format!("1 to {MAX_INSTANCES}");
        return Err(range("number of instances", n, allowed));
    }
    let mut ids = server_ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != n {
        let allowed = format!("as many as instances ({n})");
        return Err(range("different server ids", ids.len(), allowed));
    }
    Ok(())
}

impl PlacementRequest {
    /// Checks sizes, names and duplicates. Does not check the flavor's extra specs: see
    /// [`Flavor::properties`].
    ///
    /// # Errors
    /// What is wrong, named.
    pub fn check(&self) -> Result<(), ModelError> {
        check_servers(&self.project_id, &self.server_ids)?;
        for (what, hosts) in [
            ("ignore_hosts", &self.ignore_hosts),
            ("force_hosts", &self.force_hosts),
        ] {
            if hosts.len() > MAX_HOST_LIST {
                let allowed = format!("at most {MAX_HOST_LIST}");
                return Err(range(what, hosts.len(), allowed));
            }
            hosts
                .iter()
                .try_for_each(|host| names::check_host_name(host))?;
        }
        if let Some(zone) = &self.availability_zone {
            names::check_name("availability zone", zone)?;
        }
        Ok(())
    }
}
