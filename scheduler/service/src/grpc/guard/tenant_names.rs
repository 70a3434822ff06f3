//! Resolves the names that a tenant uses to identifiers, among the tenant's own objects only.
//!
//! Names are looked up within the tenant's projects: two tenants may each have a server `web`, and
//! neither learns of the other's.

use super::Guard;
use crate::error::ServiceError;
use ebbtide_access::{AccessError, Caller};
use ebbtide_model::request::MAX_INSTANCES;
use ebbtide_model::{ServerGroup, ServerId, names};
use ebbtide_proto::v1;
use ebbtide_region::RegionError;
use ebbtide_store::ServerFilter;
use std::collections::HashMap;

/// Scheduler hints that name servers.
const SERVER_HINTS: [&str; 2] = ["same_host", "different_host"];
/// Most servers in the hints of one question: each is looked up.
const MOST_HINTED: usize = 32;

fn too_many(field: &'static str, count: usize, most: usize) -> ServiceError {
    ServiceError::Field {
        field,
        problem: format!("names {count} servers; at most {most} are accepted"),
    }
}

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
        let cloud = &self.handlers.api.cloud;
        if let Ok(id) = name.parse::<ServerId>() {
            return match cloud.server(id).await? {
                Some(listed) if who.sees(&listed.server.project_id) => Ok(id.to_string()),
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
            found.extend(cloud.servers(&filter).await?);
        }
        match found.as_slice() {
            [] => Err(no_server(name)),
            [one] => Ok(one.server.id.to_string()),
            several => Err(ServiceError::Region(RegionError::Ambiguous {
                what: "server",
                name: names::shorten(name),
                count: several.len(),
            })),
        }
    }

    /// The server groups that the caller may see.
    pub(super) async fn own_groups(&self, who: &Caller) -> Result<Vec<ServerGroup>, ServiceError> {
        let mut groups = self.handlers.api.cloud.groups().await?;
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

    /// Hints of a what-if. A tenant may name its own servers in them, and give no others: a
    /// question costs nothing, so an answer to `query`, for example, would measure what others use.
    pub(super) async fn own_hints(
        &self,
        who: &Caller,
        hints: &mut HashMap<String, v1::HintValues>,
    ) -> Result<(), ServiceError> {
        if !who.is_tenant() {
            return Ok(());
        }
        let named: usize = hints.values().map(|hint| hint.values.len()).sum();
        if named > MOST_HINTED {
            return Err(too_many("scheduler_hints", named, MOST_HINTED));
        }
        for (name, hint) in hints {
            if !SERVER_HINTS.contains(&name.as_str()) {
                return Err(AccessError::OperatorsField {
                    caller: who.to_string(),
                    field: "scheduler_hints",
                }
                .into());
            }
            for server in &mut hint.values {
                *server = self.own_server(who, server).await?;
            }
        }
        Ok(())
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
        if wire.server_ids.len() > MAX_INSTANCES {
            return Err(too_many("server_ids", wire.server_ids.len(), MAX_INSTANCES));
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
            let listed = self.handlers.api.cloud.server(known).await?;
            if listed.is_some_and(|listed| listed.server.project_id != wire.project_id) {
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
