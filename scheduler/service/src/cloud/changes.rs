//! What has changed between two looks at a cloud, as events for watchers. Pure.

use ebbtide_model::{
    CloudEvent, Decision, DecisionId, Evacuation, EvacuationId, Host, HostHealth, Server, ServerId,
    ServerStatus, Timestamp,
};
use std::collections::BTreeMap;

/// A cloud at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CloudSnapshot {
    pub(super) servers: BTreeMap<ServerId, Server>,
    pub(super) evacuations: BTreeMap<EvacuationId, Evacuation>,
    pub(super) hosts: BTreeMap<String, (Host, HostHealth)>,
    /// The latest ones.
    pub(super) decisions: BTreeMap<DecisionId, Decision>,
}

/// The events that lead from one look to the next: decisions in the order in which they were made,
/// then servers, evacuations and hosts.
///
/// A server that is gone is `deleted`. Of hosts only what an operator or an outage changes counts,
/// not each heartbeat; a host that Nova does not have any more is removed.
pub(super) fn events(
    before: &CloudSnapshot,
    after: &CloudSnapshot,
    now: Timestamp,
) -> Vec<CloudEvent> {
    let mut events = Vec::new();
    let is_new = |decision: &&Decision| !before.decisions.contains_key(&decision.id);
    let mut news: Vec<&Decision> = after.decisions.values().filter(is_new).collect();
    news.sort_by_key(|decision| (decision.at, decision.id));
    for decision in news {
        events.push(CloudEvent::Decision(Box::new(decision.clone())));
    }
    for (id, server) in &after.servers {
        if before.servers.get(id) != Some(server) {
            events.push(CloudEvent::Server(Box::new(server.clone())));
        }
    }
    let gone = |(id, _): &(&ServerId, &Server)| !after.servers.contains_key(id);
    for (_, server) in before.servers.iter().filter(gone) {
        events.push(CloudEvent::Server(Box::new(Server {
            status: ServerStatus::Deleted,
            ended_at: Some(now),
            ..server.clone()
        })));
    }
    for (id, evacuation) in &after.evacuations {
        if before.evacuations.get(id) != Some(evacuation) {
            events.push(CloudEvent::Evacuation(Box::new(evacuation.clone())));
        }
    }
    for (name, (host, health)) in &after.hosts {
        let same = before.hosts.get(name).is_some_and(|(known, before)| {
            before == health && known.disabled_reason == host.disabled_reason
        });
        if !same {
            events.push(CloudEvent::Host(Box::new(host.clone()), *health));
        }
    }
    for (name, (host, _)) in &before.hosts {
        if !after.hosts.contains_key(name) {
            let removed = Host {
                removed_at: Some(now),
                ..host.clone()
            };
            events.push(CloudEvent::Host(Box::new(removed), HostHealth::Down));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::Explanation;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn server(id: u8, status: ServerStatus) -> Server {
        let value = serde_json::json!({
            "id": Uuid::from_u128(id.into()), "name": format!("s{id}"), "project_id": "p",
            "flavor": {"id": Uuid::nil(), "name": "f", "vcpus": 1, "ram_mb": 1, "disk_gb": 1},
            "status": status, "created_at": "2026-11-26T12:00:00Z",
        });
        serde_json::from_value(value).unwrap()
    }

    fn host(name: u8, seen: i64) -> Host {
        let value = serde_json::json!({
            "name": format!("h{name}"), "inventory": {}, "created_at": "2026-11-26T12:00:00Z",
        });
        let mut host: Host = serde_json::from_value(value).unwrap();
        host.last_seen = Some(Timestamp::from_millis(seen));
        host
    }

    fn decision(id: u8) -> Decision {
        let value = serde_json::json!({
            "id": Uuid::from_u128(id.into()), "at": "2026-11-26T12:00:00Z",
            "request": {
                "server_ids": [], "project_id": "p", "alternates": 0,
                "flavor": {"id": Uuid::nil(), "name": "f", "vcpus": 1, "ram_mb": 1, "disk_gb": 1},
            },
            "outcome": {"no_valid_host": {"reason": "none", "placed_before": 0, "dropped": [], "hosts": 1}},
            "explanation": serde_json::to_value(Explanation::default()).unwrap(),
        });
        let mut decision: Decision = serde_json::from_value(value).unwrap();
        // Later ids are earlier decisions.
        decision.at = Timestamp::from_millis(100 - i64::from(id));
        decision
    }

    fn look() -> impl Strategy<Value = CloudSnapshot> {
        let status = prop_oneof![
            Just(ServerStatus::Active),
            Just(ServerStatus::Evacuating),
            Just(ServerStatus::Stopped)
        ];
        let health = prop_oneof![
            Just(HostHealth::Up),
            Just(HostHealth::Down),
            Just(HostHealth::Disabled)
        ];
        let servers = prop::collection::btree_map(0u8..6, status, 0..6);
        let hosts = prop::collection::btree_map(0u8..4, (0i64..3, health), 0..4);
        // Of one id there is one decision.
        let decisions = prop::collection::btree_set(0u8..6, 0..6);
        (servers, hosts, decisions).prop_map(|(servers, hosts, decisions)| CloudSnapshot {
            decisions: decisions
                .into_iter()
                .map(|id| {
                    let decision = decision(id);
                    (decision.id, decision)
                })
                .collect(),
            servers: servers
                .into_iter()
                .map(|(id, status)| {
                    let server = server(id, status);
                    (server.id, server)
                })
                .collect(),
            evacuations: BTreeMap::new(),
            hosts: hosts
                .into_iter()
                .map(|(name, (seen, health))| {
                    let host = host(name, seen);
                    (host.name.clone(), (host, health))
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn a_watcher_that_applies_all_events_knows_the_cloud(before in look(), after in look()) {
            let now = Timestamp::from_millis(0);
            let mut servers = before.servers.clone();
            let health = |look: &CloudSnapshot| -> BTreeMap<String, HostHealth> {
                look.hosts.iter().map(|(name, (_, health))| (name.clone(), *health)).collect()
            };
            let mut hosts = health(&before);
            let mut decisions: Vec<Decision> = Vec::new();
            for event in events(&before, &after, now) {
                match event {
                    CloudEvent::Server(server) if server.status == ServerStatus::Deleted => {
                        prop_assert!(servers.remove(&server.id).is_some());
                    }
                    CloudEvent::Server(server) => drop(servers.insert(server.id, *server)),
                    CloudEvent::Host(host, _) if host.removed_at.is_some() => {
                        prop_assert!(hosts.remove(&host.name).is_some());
                    }
                    CloudEvent::Host(host, health) => drop(hosts.insert(host.name, health)),
                    CloudEvent::Decision(decision) => decisions.push(*decision),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            prop_assert_eq!(&servers, &after.servers);
            // Each new decision once, the earliest first. Old ones leave the look unnoticed.
            let mut new: Vec<Decision> = after.decisions.values().cloned().collect();
            new.retain(|decision| !before.decisions.contains_key(&decision.id));
            new.reverse();
            prop_assert_eq!(decisions, new);
            prop_assert_eq!(hosts, health(&after));
        }

        #[test]
        fn a_cloud_in_which_only_heartbeats_came_has_no_events(cloud in look()) {
            let mut later = cloud.clone();
            for (host, _) in later.hosts.values_mut() {
                host.last_seen = Some(Timestamp::from_millis(1_000));
            }
            prop_assert!(events(&cloud, &later, Timestamp::from_millis(0)).is_empty());
        }
    }
}
