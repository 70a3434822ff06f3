//! Plans against brute force over all places and all sets of victims.

use crate::kit::{self, NOW, cloud_of, fresh, instance, request, server, settle};
use ebbtide_nova::model::{InstanceGroup, Options};
use ebbtide_nova_cloud::{CloudSettings, NoPlanReason};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};

/// A server: host, CPUs, minutes of age, and what it is.
#[derive(Debug, Clone)]
struct Server {
    host: usize,
    vcpus: i64,
    minutes: i64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Preemptible,
    /// Preemptible and told to go, but still there.
    Leaving,
    Locked,
    /// Being resized.
    Busy,
    /// Of a flavor that guarantees so many minutes.
    Guaranteed(i64),
}

fn server_of(hosts: usize) -> impl Strategy<Value = Server> {
    let kind = prop_oneof![
        6 => Just(Kind::Preemptible),
        2 => Just(Kind::Normal),
        1 => select(vec![Kind::Leaving, Kind::Locked, Kind::Busy]),
        3 => (1_i64..200).prop_map(Kind::Guaranteed),
    ];
    (0..hosts, 1_i64..5, 1_i64..200, kind).prop_map(|(host, vcpus, minutes, kind)| Server {
        host,
        vcpus,
        minutes,
        kind,
    })
}

/// Whether a server can be a victim: its guaranteed time ends to the microsecond.
fn may_leave(server: &Server) -> bool {
    match server.kind {
        Kind::Preemptible => true,
        Kind::Guaranteed(minutes) => server.minutes >= minutes,
        _ => false,
    }
}

/// The cheapest plan: cost in seconds of started hours, then number of victims. `None`: there is
/// none.
fn cheapest(
    hosts: &[i64],
    servers: &[Server],
    vcpus: i64,
    many: usize,
    policy: Option<&str>,
    members: &[usize],
) -> Option<(i64, usize)> {
    let movable: Vec<usize> = (0..servers.len())
        .filter(|at| may_leave(&servers[*at]))
        .filter(|at| policy != Some("affinity") || !members.contains(at))
        .collect();
    let mut best = None;
    for code in 0..hosts.len().pow(many as u32) {
        let places: Vec<usize> = (0..many as u32)
            .map(|n| code / hosts.len().pow(n) % hosts.len())
            .collect();
        let with_members: BTreeSet<usize> = members.iter().map(|at| servers[*at].host).collect();
        let allowed = match policy {
            Some("anti-affinity") => {
                let different: BTreeSet<usize> = places.iter().copied().collect();
                different.len() == many && different.is_disjoint(&with_members)
            }
            Some("affinity") => {
                places.iter().all(|host| *host == places[0])
                    && (members.is_empty() || with_members.contains(&places[0]))
            }
            _ => true,
        };
        if !allowed {
            continue;
        }
        for set in 0..1_u32 << movable.len() {
            let leaves = |at: usize| {
                movable
                    .iter()
                    .position(|m| *m == at)
                    .is_some_and(|bit| set >> bit & 1 == 1)
            };
            let fits = hosts.iter().enumerate().all(|(host, capacity)| {
                let stays =
                    (0..servers.len()).filter(|at| servers[*at].host == host && !leaves(*at));
                let used: i64 = stays.map(|at| servers[at].vcpus).sum();
                let claimed = places.iter().filter(|place| **place == host).count() as i64 * vcpus;
                claimed == 0 || used + claimed <= *capacity
            });
            if fits {
                let gone = movable.iter().filter(|at| leaves(**at));
                let cost = gone.clone().map(|at| servers[*at].minutes % 60 * 60).sum();
                let way = (cost, gone.count());
                best = Some(best.map_or(way, |best: (i64, usize)| best.min(way)));
            }
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1200))]

    #[test]
    fn a_plan_is_the_cheapest_of_all(
        (hosts, servers) in prop::collection::vec(2_i64..9, 1..4)
            .prop_flat_map(|hosts| { let n = hosts.len(); (Just(hosts), prop::collection::vec(server_of(n), 0..8)) }),
        vcpus in 1_i64..6,
        many in 1_usize..4,
        policy in select(vec![None, None, Some("anti-affinity"), Some("affinity")]),
        members in prop::collection::btree_set(0_usize..8, 0..2),
    ) {
        // Drops servers that do not fit on their host.
        let mut servers = servers;
        let mut used = vec![0; hosts.len()];
        servers.retain(|server| {
            let fits = used[server.host] + server.vcpus <= hosts[server.host];
            if fits { used[server.host] += server.vcpus; }
            fits
        });
        let members: Vec<usize> = members.into_iter().filter(|at| *at < servers.len()).collect();
        let mut cloud = cloud_of(&hosts, Options::default(), CloudSettings::default());
        for (number, own) in (0..).zip(&servers) {
            let mut record = instance(number, own.host as u128, own.vcpus, own.minutes, own.kind != Kind::Normal);
            record.locked = own.kind == Kind::Locked;
            record.task_state = (own.kind == Kind::Busy).then(|| "resize_prep".to_owned());
            if let Kind::Guaranteed(minutes) = own.kind {
                let seconds = (minutes * 60).to_string();
                let specs = [("ebbtide:preemptible", "true"), ("ebbtide:protected_seconds", seconds.as_str())];
                record.flavor = kit::flavor(own.vcpus, &specs);
            }
            settle(&mut cloud, record);
            cloud.set_leaving(server(number), own.kind == Kind::Leaving);
        }
        let (mut spec, call) = request(vcpus, many as u128);
        spec.instance_group = policy.map(|policy| InstanceGroup {
            uuid: "g".to_owned(),
            policy: policy.to_owned(),
            rules: BTreeMap::new(),
            members: members.iter().map(|at| server(*at as u128).to_string()).collect(),
            hosts: members.iter().map(|at| kit::host_name(servers[*at].host as u128)).collect(),
        });
        let asked = cloud.ask(&mut spec).unwrap();
        let planned = cloud.plan(&spec, &call, &asked, NOW, &Default::default());
        let expected = cheapest(&hosts, &servers, vcpus, many, policy, &members);
        let plan = match planned {
            Err(no) => {
                prop_assert_eq!(expected, None, "{:?}: {}", no.reason, no.text);
                prop_assert_ne!(no.reason, NoPlanReason::Preemptible);
                return Ok(());
            }
            Ok(plan) => plan,
        };
        prop_assert!(plan.optimal);
        prop_assert_eq!(Some((plan.cost.round() as i64, plan.victims.len())), expected);
        let number = |uuid: uuid::Uuid| servers.iter().enumerate().position(|(at, _)| server(at as u128) == uuid).unwrap();
        for victim in &plan.victims {
            let own = &servers[number(victim.uuid)];
            prop_assert!(may_leave(own), "{:?}", own);
            prop_assert_eq!(&victim.host.host, &kit::host_name(own.host as u128));
            prop_assert_eq!(victim.generation, Some(1));
        }
        // Every instance has a host, and what is left there is not negative.
        let uuids: Vec<_> = plan.instances.iter().map(|instance| instance.uuid).collect();
        prop_assert_eq!(uuids, (0..many as u128).map(fresh).collect::<Vec<_>>());
        let of_instances: BTreeSet<_> = plan.instances.iter().flat_map(|i| i.victims.iter().copied()).collect();
        let of_plan: BTreeSet<_> = plan.victims.iter().map(|victim| victim.uuid).collect();
        prop_assert_eq!(of_instances, of_plan);
        for (host, capacity) in hosts.iter().enumerate() {
            let name = kit::host_name(host as u128);
            let gone = |at: usize| plan.victims.iter().any(|victim| victim.uuid == server(at as u128));
            let stays = servers.iter().enumerate().filter(|(at, own)| own.host == host && !gone(*at));
            let stays: i64 = stays.map(|(_, own)| own.vcpus).sum();
            let claimed = plan.instances.iter().filter(|i| i.host.host == name).count() as i64 * vcpus;
            prop_assert!(claimed == 0 || stays + claimed <= *capacity);
        }
    }
}
