//! Hosts that an outside owner takes back: what the calls of operators show and change.

use super::convert;
use super::request::parsed;
use crate::cloud::{Api, ListedServer};
use crate::error::ServiceError;
use ebbtide_engine::{HostEviction, HostReclaim};
use ebbtide_model::{
    Evacuation, ReclaimDeadline, ReclaimState, ReclaimTerms, Seconds, Server, ServerId,
    ServerStatus, Timestamp, names,
};
use ebbtide_proto::v1;
use ebbtide_runtime::clock;
use ebbtide_store::{EvacuationFilter, MAX_PAGE};
use std::collections::{BTreeSet, HashMap};

pub(super) fn terms(wire: &v1::ReclaimHostRequest) -> Result<ReclaimTerms, ServiceError> {
    let at: Option<Timestamp> = parsed("deadline", &wire.deadline)?;
    let deadline = match (wire.deadline_seconds, at) {
        (0, None) => ReclaimDeadline::None,
        (seconds, None) => ReclaimDeadline::After(Seconds(seconds)),
        (0, Some(at)) => ReclaimDeadline::At(at),
        _ => {
            return Err(ServiceError::Field {
                field: "deadline_seconds, deadline",
                problem: "set at most one of the two".to_owned(),
            });
        }
    };
    Ok(ReclaimTerms {
        owner: wire.owner.clone(),
        reason: wire.reason.clone(),
        deadline,
        max_cost: Some(wire.max_cost).filter(|most| *most != 0.0),
    })
}

/// How far the reclaim of a host with these servers and evacuations is, and how many servers leave.
/// A server that holds capacity and does not stay is on its way out, also if its owner deletes it
/// or its failed evacuation is repeated later. So is one whose agent has not yet reported its end:
/// Nova deletes the row of a server before that report is in the ledger.
fn state<'a>(
    eviction: &HostEviction,
    servers: impl IntoIterator<Item = &'a Server>,
    evacuations: &[Evacuation],
) -> (ReclaimState, usize) {
    let stays = |id: ServerId| eviction.stay.iter().any(|(stays, _)| *stays == id);
    let holds = |server: &&Server| {
        let is_cleared_up = server.status == ServerStatus::Deleting && server.ended_at.is_some();
        server.is_preemptible() && server.status.holds_room() && !is_cleared_up
    };
    let held = servers.into_iter().filter(holds).map(|server| server.id);
    let active = evacuations.iter().filter(|e| !e.state.is_final());
    let leaving: BTreeSet<ServerId> = held
        .chain(active.map(|evacuation| evacuation.victim_id))
        .filter(|id| !stays(*id))
        .chain(eviction.leave.iter().map(|(id, _)| *id))
        .collect();
    let stay = eviction.stay.iter().map(|(_, why)| *why);
    (ReclaimState::of(leaving.len(), stay), leaving.len())
}

impl Api {
    /// The reclaim of a host with everything that there is to see.
    pub(super) async fn shown_reclaim(
        &self,
        of: HostReclaim,
    ) -> Result<v1::HostReclaim, ServiceError> {
        let HostReclaim {
            host,
            reclaim,
            eviction,
        } = of;
        let servers = self.cloud.host(&host).await?;
        let servers = servers.map(|(_, servers)| servers).unwrap_or_default();
        let cloud_defaults = self.reclaims.cloud_defaults();
        let known: HashMap<ServerId, ListedServer> = servers
            .into_iter()
            .map(|listed| (listed.server.id, listed))
            .collect();
        let filter = EvacuationFilter {
            host: Some(host.clone()),
            limit: MAX_PAGE,
            ..EvacuationFilter::default()
        };
        let mut evacuations = self.cloud.evacuations(&filter).await?;
        evacuations.retain(|e| !e.state.is_final() || reclaim.has_begun(e));
        let servers = known.values().map(|listed| &listed.server);
        let (state, leaving) = state(&eviction, servers, &evacuations);
        let now = clock::now();
        let late = reclaim.deadline.is_some_and(|deadline| deadline < now);
        let text = |id: &ServerId, what: fn(&ListedServer) -> &String| {
            known
                .get(id)
                .map(|listed| what(listed).clone())
                .unwrap_or_default()
        };
        let name = |id: &ServerId| text(id, |listed| &listed.server.name);
        let project = |id: &ServerId| text(id, |listed| &listed.server.project_id);
        let planned = eviction.leave.iter().map(|(id, cost)| {
            let listed = known.get(id);
            let own = listed.map(|listed| listed.server.grace(cloud_defaults.grace));
            v1::PlannedEviction {
                server_id: id.to_string(),
                name: name(id),
                project_id: project(id),
                cost: *cost,
                grace_seconds: reclaim.grace(own.unwrap_or_default(), now).0,
            }
        });
        let staying = eviction.stay.iter().map(|(id, why)| v1::StayingServer {
            server_id: id.to_string(),
            name: name(id),
            project_id: project(id),
            reason: why.as_str().to_owned(),
            detail: why.to_string(),
            until: why.until().map(|at| at.to_string()).unwrap_or_default(),
        });
        Ok(v1::HostReclaim {
            planned: planned.collect(),
            staying: staying.collect(),
            owner: reclaim.terms.owner.clone(),
            reason: reclaim.terms.reason.clone(),
            since: reclaim.since.to_string(),
            deadline: reclaim
                .deadline
                .map(|at| at.to_string())
                .unwrap_or_default(),
            max_cost: reclaim.terms.max_cost.unwrap_or_default(),
            cost: reclaim.cost(),
            cost_unit: cloud_defaults.cost_unit.clone(),
            state: state.as_str().to_owned(),
            leaving: u32::try_from(leaving).unwrap_or(u32::MAX),
            overdue: late && state != ReclaimState::Free,
            evacuations: evacuations.iter().map(convert::evacuation).collect(),
            host,
        })
    }

    pub(super) async fn reclaim_of(&self, host: &str) -> Result<v1::HostReclaim, ServiceError> {
        let found = self.reclaims.reclaims(Some(host)).await?.pop();
        let found = found.ok_or_else(|| ServiceError::NotFound {
            what: "reclaimed host",
            name: names::shorten(host),
            next: "`ebbtide host reclaims` shows those that there are",
        })?;
        self.shown_reclaim(found).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::{EvacuationState, StayReason};
    use uuid::Uuid;

    fn server(n: u128, status: &str, preemptible: bool) -> Server {
        let value = serde_json::json!({
            "id": Uuid::from_u128(n), "name": "s", "project_id": "p", "status": status,
            "flavor": {"id": Uuid::nil(), "name": "f", "vcpus": 1, "ram_mb": 1, "disk_gb": 1,
                       "extra_specs": {"ebbtide:preemptible": preemptible.to_string()}},
            "created_at": "2026-11-26T12:00:00Z",
        });
        serde_json::from_value(value).unwrap()
    }

    fn evacuation(victim: u128, state: EvacuationState) -> Evacuation {
        let at = "2026-11-26T12:00:00Z";
        let value = serde_json::json!({
            "id": Uuid::from_u128(99), "victim_id": Uuid::from_u128(victim),
            "victim_project_id": "p", "host": "h", "behaviour": "terminate", "grace": 30,
            "cost": 0.0, "state": state, "attempts": 1, "give_up_at": at, "claimed_at": at,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_host_is_free_when_no_preemptible_server_holds_capacity() {
        let id = |n| ServerId(Uuid::from_u128(n));
        let none = HostEviction::default();
        let of = |eviction: &HostEviction, servers: &[Server]| state(eviction, servers, &[]).0;
        for status in ["active", "building", "evacuating", "deleting"] {
            let leaves = [server(1, status, true)];
            assert_eq!(of(&none, &leaves), ReclaimState::Leaving, "{status}");
            let normal = [server(1, status, false)];
            assert_eq!(of(&none, &normal), ReclaimState::Free, "{status}");
        }
        for status in ["stopped", "hibernated", "preempted"] {
            assert_eq!(of(&none, &[server(1, status, true)]), ReclaimState::Free);
        }
        let cleared_up = Server {
            ended_at: Some(Timestamp::default()),
            ..server(1, "deleting", true)
        };
        assert_eq!(of(&none, &[cleared_up]), ReclaimState::Free);
        let stays = HostEviction {
            stay: vec![(id(1), StayReason::Budget), (id(2), StayReason::Normal)],
            ..HostEviction::default()
        };
        let servers = [server(1, "active", true), server(2, "active", false)];
        assert_eq!(of(&stays, &servers), ReclaimState::Blocked);
        let more = [server(1, "active", true), server(3, "evacuating", true)];
        assert_eq!(of(&stays, &more), ReclaimState::Leaving);
        // Nova has deleted the server; its agent has not reported the end yet.
        let draining = evacuation(1, EvacuationState::Draining);
        let state_of = |all: &[Evacuation]| state(&none, &[], all);
        assert_eq!(
            state_of(std::slice::from_ref(&draining)),
            (ReclaimState::Leaving, 1)
        );
        for end in ["evacuated", "spared", "failed"] {
            let ended = evacuation(1, end.parse().unwrap());
            assert_eq!(state_of(&[ended]), (ReclaimState::Free, 0), "{end}");
        }
        let both = [server(1, "evacuating", true)];
        assert_eq!(state(&none, &both, &[draining]).1, 1, "one server");
        let spare = evacuation(1, EvacuationState::Draining);
        assert_eq!(
            state(&stays, &servers, &[spare]),
            (ReclaimState::Blocked, 0)
        );
        // On an OpenStack a stopped server may have to be deleted.
        let planned = HostEviction {
            leave: vec![(id(1), 1.0)],
            ..HostEviction::default()
        };
        assert_eq!(
            of(&planned, &[server(1, "stopped", true)]),
            ReclaimState::Leaving
        );
    }
}
