//! Records with everything in them, from a number.

use crate::databases::at;
use ebbtide_model::decision::{
    DroppedHost, FilterCount, FilterStep, InstanceExplanation, RankedHost, Weight,
};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::server::ServerFailure;
use ebbtide_model::*;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

pub(crate) fn id<T: From<Uuid>>(kind: u8, n: u64) -> T {
    T::from(Uuid::from_u128((u128::from(kind) << 120) | u128::from(n)))
}

pub(crate) fn server_id(n: u64) -> ServerId {
    id(1, n)
}

pub(crate) fn decision_id(n: u64) -> DecisionId {
    id(2, n)
}

pub(crate) fn evacuation_id(n: u64) -> EvacuationId {
    id(3, n)
}

pub(crate) fn flavor(n: u64) -> Flavor {
    Flavor {
        id: id(4, n),
        name: format!("p1.größe-{n}"),
        vcpus: 2,
        ram_mb: 4096,
        disk_gb: 20,
        extra_specs: BTreeMap::from([
            ("ebbtide:preemptible".to_owned(), "true".to_owned()),
            ("ebbtide:price_per_hour".to_owned(), "0.031".to_owned()),
        ]),
    }
}

pub(crate) fn server(n: u64) -> Server {
    Server {
        id: server_id(n),
        name: format!("web-{n}"),
        project_id: format!("project-{}", n % 3),
        flavor: flavor(1),
        group_id: Some(id(5, 1)),
        availability_zone: Some("nova".to_owned()),
        host: Some(format!("host-{}", n % 4)),
        status: ServerStatus::Active,
        external: false,
        decision_id: Some(decision_id(n)),
        evacuation_id: None,
        created_at: at(n as i64),
        launched_at: Some(at(n as i64 + 5)),
        ended_at: None,
        fault: Some(ServerFailure {
            code: "EB-X-001".to_owned(),
            message: "it hiccuped".to_owned(),
            at: at(3),
        }),
        ignore_hosts: vec!["host-9".to_owned()],
        force_hosts: Vec::new(),
        refused_hosts: vec!["host-8".to_owned()],
        max_price: None,
        left_hosts: BTreeMap::from([("host-8".to_owned(), at(7))]),
        last_message_at: Some(at(n as i64 + 4)),
        reported_at: None,
        starts: n as u32,
        comeback: None,
    }
}

pub(crate) fn gone(n: u64, ended: i64) -> Server {
    Server {
        status: ServerStatus::Preempted,
        ended_at: Some(at(ended)),
        ..server(n)
    }
}

pub(crate) fn evacuation(n: u64) -> Evacuation {
    Evacuation {
        id: evacuation_id(n),
        victim_id: server_id(n),
        victim_name: String::new(),
        victim_project_id: format!("project-{}", n % 3),
        victim_group_id: None,
        victim_starts: 1,
        host: format!("host-{}", n % 4),
        cause: EvacuationCause::Preemption,
        reclaim_owner: None,
        preemptor_id: Some(server_id(n + 1000)),
        decision_id: Some(decision_id(n)),
        behaviour: InterruptionBehaviour::Hibernate,
        grace: Seconds(30),
        // Not exact in binary: must come back bit for bit.
        cost: 0.1 + 0.2 + n as f64 / 7.0,
        state: EvacuationState::Notified,
        attempts: 1,
        give_up_at: at(n as i64 + 90),
        spare_requested: false,
        reason: None,
        claimed_at: at(n as i64),
        notified_at: Some(at(n as i64 + 1)),
        draining_at: None,
        deadline_at: None,
        ended_at: None,
    }
}

pub(crate) fn finished(n: u64, ended: i64) -> Evacuation {
    Evacuation {
        state: EvacuationState::Evacuated,
        ended_at: Some(at(ended)),
        ..evacuation(n)
    }
}

pub(crate) fn victim(n: u64) -> Victim {
    let mut resources = Resources::new();
    resources.set(ResourceClass::vcpu(), 2).unwrap();
    Victim {
        server_id: server_id(n),
        name: format!("web-{n}"),
        project_id: "project-7".to_owned(),
        resources,
        age_seconds: 1234.567,
        cost: 1.0 / 3.0,
    }
}

/// A decision for the servers; its explanation has `hosts` hosts.
pub(crate) fn decision(n: u64, servers: &[ServerId], hosts: usize) -> Decision {
    let ranked = |place: usize| RankedHost {
        host: format!("host-{place}"),
        chosen: place == 0,
        eviction_cost: place.is_multiple_of(2).then_some(0.7),
        victims: vec![victim(place as u64)],
        weight: -1e-300 + place as f64 / 9.0,
        weights: vec![Weight {
            weigher: "ram".to_owned(),
            raw: 1e17 + 1.0,
            normalised: 1.0 / 3.0,
            multiplier: 1.0,
        }],
    };
    Decision {
        id: decision_id(n),
        at: at(n as i64),
        request: PlacementRequest {
            server_ids: servers.to_vec(),
            project_id: format!("project-{}", n % 3),
            flavor: flavor(1),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 2,
        },
        outcome: DecisionOutcome::Placed(
            servers
                .iter()
                .map(|&server_id| Placement {
                    server_id,
                    host: "host-0".to_owned(),
                    victims: vec![victim(n + 500)],
                    waits_for_room: true,
                    alternates: vec!["host-1".to_owned()],
                })
                .collect(),
        ),
        explanation: Explanation {
            policy: "tiered".to_owned(),
            cost_module: "partial-hour".to_owned(),
            filtered_on: "normal".to_owned(),
            seed: u64::MAX,
            instances: vec![InstanceExplanation {
                filters: vec![FilterStep {
                    filter: "capacity".to_owned(),
                    before: 10,
                    after: 4,
                    dropped: vec![DroppedHost {
                        host: "host-5".to_owned(),
                        reason: "too small".to_owned(),
                    }],
                }],
                ranking: (0..hosts).map(ranked).collect(),
                ranked: hosts as u32,
            }],
            optimal: true,
            gap: 0.0,
            surcharge: 0.0,
            warnings: Vec::new(),
        },
        trace: RequestTrace {
            request_id: format!("req-{}", n / 2),
            user_id: "user-1".to_owned(),
            scheduler: "scheduler-1".to_owned(),
            runs: 2,
            comparison: (n % 2 == 1).then(|| {
                Box::new(Comparison {
                    verdict: ComparisonVerdict::Different,
                    hosts: vec!["host-8".to_owned(), String::new()],
                    reason: "its weight is 1 less".to_owned(),
                    requests_beside: 3,
                })
            }),
            refused_claims: vec![RefusedClaim {
                server_id: server_id(n),
                host: "host-9".to_owned(),
                reason: "Placement – 拒否".to_owned(),
            }],
            times: vec![PartTime {
                part: "whole".to_owned(),
                micros: u64::MAX,
            }],
        },
    }
}

pub(crate) fn refusal(n: u64, servers: &[ServerId]) -> Decision {
    Decision {
        outcome: DecisionOutcome::NoValidHost(NoValidHost {
            reason: "all full".to_owned(),
            placed_before: 0,
            dropped: vec![FilterCount {
                filter: "capacity".to_owned(),
                dropped: 10,
            }],
            hosts: 10,
        }),
        ..decision(n, servers, 1)
    }
}

pub(crate) fn message(n: u64) -> OutboxMessage {
    OutboxMessage {
        id: id(6, n),
        host: format!("host-{}", n % 4),
        // Every byte there is: a message is not text.
        body: (0..=255).chain(n.to_le_bytes()).collect(),
        evacuation_id: n.is_multiple_of(2).then(|| evacuation_id(n)),
        created_at: at(n as i64),
    }
}

pub(crate) fn host(n: u64) -> Host {
    Host {
        name: format!("host-{n}"),
        inventory: BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(64)),
            (ResourceClass::memory_mb(), Inventory::of(262_144)),
        ]),
        traits: BTreeSet::from(["HW_CPU_X86_AVX2".parse().unwrap()]),
        disabled_reason: Some("Wartung – 維修".to_owned()),
        reclaim: None,
        agent_session: Some(Uuid::from_u128(n.into())),
        removed_at: None,
        last_seen: Some(at(99)),
        storage: Some("nfs-1".to_owned()),
        created_at: at(n as i64),
    }
}

pub(crate) fn aggregate(n: u64) -> Aggregate {
    Aggregate {
        id: id(7, n),
        name: format!("rack-{n}"),
        hosts: BTreeSet::from(["host-1".to_owned()]),
        metadata: BTreeMap::from([("availability_zone".to_owned(), "az1".to_owned())]),
    }
}

pub(crate) fn group(n: u64) -> ServerGroup {
    ServerGroup {
        id: id(5, n),
        name: format!("quorum-{n}"),
        project_id: "project-1".to_owned(),
        policy: GroupPolicy::AntiAffinity,
        max_server_per_host: 2,
    }
}

pub(crate) fn budget(scope: BudgetScope) -> DisruptionBudget {
    DisruptionBudget {
        scope,
        max_victims: 3,
        window: Seconds(3600),
    }
}

pub(crate) fn put_server(server: Server) -> Change {
    Change::PutServer(Box::new(server))
}

pub(crate) fn put_evacuation(evacuation: Evacuation) -> Change {
    Change::PutEvacuation(Box::new(evacuation))
}

pub(crate) fn put_decision(decision: Decision) -> Change {
    Change::PutDecision(Box::new(decision))
}

/// A life of server `n`.
pub(crate) fn life(n: u64, ended: i64) -> PastLife {
    PastLife {
        server_id: server_id(n),
        starts: n as u32,
        name: format!("web-{n}"),
        project_id: format!("project-{}", n % 3),
        flavor: flavor(1).name,
        preemptible: true,
        price_per_hour: "0.031".parse().unwrap(),
        max_lifetime: Some(Seconds(86_400)),
        host: format!("host-{}", n % 4),
        zone: "nova".to_owned(),
        launched_at: at(n as i64),
        ended_at: at(ended),
        end: LifeEnd::Preempted,
    }
}

/// What flavor `n` costs from a moment on.
pub(crate) fn price(n: u64, from: i64) -> PricePoint {
    PricePoint {
        flavor_id: id(4, n),
        flavor: flavor(n).name,
        at: at(from),
        price: "0.0125".parse().unwrap(),
        supply: 7,
        demand: from as u64,
    }
}

pub(crate) fn put_life(life: PastLife) -> Change {
    Change::PutLife(Box::new(life))
}

pub(crate) fn put_host(host: Host) -> Change {
    Change::PutHost(Box::new(host))
}

pub(crate) fn everything() -> Vec<Change> {
    vec![
        put_host(host(2)),
        put_host(host(1)),
        Change::PutAggregate(aggregate(1)),
        Change::PutFlavor(flavor(1)),
        Change::PutGroup(group(1)),
        Change::PutBudget(budget(BudgetScope::Project("project-1".to_owned()))),
        Change::PutBudget(budget(BudgetScope::Group(id(5, 1)))),
        put_server(server(1)),
        put_decision(decision(1, &[server_id(1)], 3)),
        put_evacuation(evacuation(1)),
        put_life(life(1, 9)),
        Change::PutPrice(price(1, 5)),
        Change::PutPrice(price(1, 7)),
        Change::Enqueue(message(2)),
        Change::Enqueue(message(1)),
    ]
}
