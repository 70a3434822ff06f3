//! Resolves the names that a tenant uses to identifiers, among the tenant's own objects only.
//!
//! Names are looked up within the tenant's projects: two tenants may each have a server `web`, and
//! neither learns of the other's.

use super::Guard;
use crate::error::ServiceError;
use crate::region_actor::not_read;
use ebbtide_access::{AccessError, Caller};
use ebbtide_model::{ServerGroup, ServerId, names};
use ebbtide_proto::v1;
use ebbtide_region::{Region, RegionError};
use ebbtide_store::ServerFilter;

fn no_server(name: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "server",
        name: names::shorten(name),
        next: "`ebbtide server list --deleted` shows those that are gone, too",
    }
}

impl Guard {
    /// The identifier of a server that the caller may see. For callers that are not tenants, the
    /// name is returned as it is.
    pub(super) async fn own_server(
        &self,
        who: &Caller,
        name: &str,
    ) -> Result<String, ServiceError> {
        if !who.is_tenant() {
            return Ok(name.to_owned());
        }
        let store = &self.handlers.api.store;
        if let Ok(id) = name.parse::<ServerId>() {
            let found = store.server(id).await.map_err(|e| not_read(&e))?;
            return match found {
                Some(server) if who.sees(&server.project_id) => Ok(id.to_string()),
                _ => Err(no_server(name)),
            };
        }
        let mut found = Vec::new();
        for project in &who.projects {
            let filter = ServerFilter {
                project_id: Some(project.clone()),
                name: Some(name.to_owned()),
                limit: 2,
                ..ServerFilter::default()
            };
            found.extend(store.servers(&filter).await.map_err(|e| not_read(&e))?);
        }
        match found.as_slice() {
            [] => Err(no_server(name)),
            [one] => Ok(one.id.to_string()),
            several => Err(ServiceError::Region(RegionError::Ambiguous {
                what: "server",
                name: names::shorten(name),
                count: several.len(),
            })),
        }
    }

    /// The server groups that the caller may see.
    pub(super) async fn own_groups(&self, who: &Caller) -> Result<Vec<ServerGroup>, ServiceError> {
        let mut groups = self.handlers.api.region_actor.read(Region::groups).await?;
        groups.retain(|group| who.sees(&group.project_id));
        Ok(groups)
    }

    /// The identifier of a server group that the caller may see.
    pub(super) async fn own_group(&self, who: &Caller, name: &str) -> Result<String, ServiceError> {
        if !who.is_tenant() {
            return Ok(name.to_owned());
        }
        let groups = self.own_groups(who).await?;
        let id = name.parse().ok();
        let mut fitting = groups
            .iter()
            .filter(|group| group.name == name || Some(group.id) == id);
        match (fitting.next(), fitting.count()) {
            (None, _) => Err(ServiceError::NotFound {
                what: "server group",
                name: names::shorten(name),
                next: "`ebbtide server group list` shows what there is",
            }),
            (Some(one), 0) => Ok(one.id.to_string()),
            (Some(_), more) => Err(ServiceError::Region(RegionError::Ambiguous {
                what: "server group",
                name: names::shorten(name),
                count: more + 1,
            })),
        }
    }

    /// A placement request in the caller's project, with objects of the caller only.
    pub(super) async fn own_request(
        &self,
        who: &Caller,
        request: Option<v1::PlacementRequest>,
        what: &'static str,
    ) -> Result<Option<v1::PlacementRequest>, ServiceError> {
        let Some(mut wire) = request else {
            return Ok(None);
        };
        wire.project_id = who.project(&wire.project_id, what)?;
        // Charge the instances before anything is looked up for them.
        let instances = wire.server_ids.len().max(wire.count as usize);
        self.handlers.gate.charge(who, instances)?;
        if !who.is_tenant() {
            return Ok(Some(wire));
        }
        // As in Nova: only operators may name hosts.
        for (field, hosts) in [
            ("force_hosts", &wire.force_hosts),
            ("ignore_hosts", &wire.ignore_hosts),
        ] {
            if !hosts.is_empty() {
                let caller = who.to_string();
                return Err(AccessError::OperatorsField { caller, field }.into());
            }
        }
        if !wire.group.is_empty() {
            wire.group = self.own_group(who, &wire.group).await?;
        }
        for id in &wire.server_ids {
            // A repeated request returns the servers of the first one, so they have to be the
            // caller's.
            let Ok(known) = id.parse::<ServerId>() else {
                continue;
            };
            let server = self.handlers.api.store.server(known).await;
            let server = server.map_err(|e| not_read(&e))?;
            if server.is_some_and(|server| server.project_id != wire.project_id) {
                return Err(RegionError::Exists {
                    what: "server",
                    name: id.clone(),
                    next: "leave the ids out, or make new ones",
                }
                .into());
            }
        }
        Ok(Some(wire))
    }
}
