//! How many commits and placements a second a database takes.
//!
//! ```text
//! cargo run --release -p ebbtide-store --example commit_rate -- sqlite:/tmp/rate.db [full|normal]
//! [SECONDS]
//! ```
//!
//! The database should be a fresh one; SQLite makes it. A placement is what the service writes for
//! a request of one instance: the server, and the decision with an explanation of 10 hosts (about 4
//! kB). In the last row every fifth placement preempts, and also writes an evacuation, its victim
//! and a notice.

#![allow(clippy::print_stdout)] // A program for people.

use ebbtide_model::decision::{InstanceExplanation, RankedHost, Weight};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::*;
use ebbtide_runtime::clock;
use ebbtide_store::{Durability, Store, StoreConfig};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .ok_or("the first argument is the database URL")?;
    let mut config = StoreConfig::new(&url)?;
    config.durability = match arguments.next().as_deref() {
        None | Some("full") => Durability::Full,
        Some("normal") => Durability::Normal,
        Some(other) => return Err(format!("{other:?} is neither full nor normal").into()),
    };
    let seconds = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let duration = Duration::from_secs(seconds);
    let store = Store::open(&config).await?;
    let lease = store
        .acquire_lease("commit_rate", Timestamp::from_millis(0), Seconds(3600))
        .await?;
    println!(
        "{} {:?}, {seconds} s a row",
        config.url.current(),
        config.durability
    );
    println!(
        "{:>10} {:>10} {:>12} {:>12} {:>12}",
        "batch", "commits/s", "placements/s", "median", "99 %"
    );
    let mut next = 0;
    for (batch, preempting) in [(1, false), (10, false), (100, false), (100, true)] {
        let mut times = Vec::new();
        let started = clock::instant();
        while started.elapsed() < duration {
            let changes: Vec<Change> = (next..next + batch)
                .flat_map(|n| placement(n, preempting && n % 5 == 0))
                .collect();
            next += batch;
            let before = clock::instant();
            store.commit(&lease, &changes).await?;
            times.push(before.elapsed());
        }
        // Making the records is not the store's work.
        let total: Duration = times.iter().sum();
        times.sort_unstable();
        let rate = times.len() as f64 / total.as_secs_f64();
        println!(
            "{:>10} {rate:>10.0} {:>12.0} {:>12.2?} {:>12.2?}",
            format!("{batch}{}", if preempting { " preempt" } else { "" }),
            rate * batch as f64,
            times[times.len() / 2],
            times[times.len() * 99 / 100],
        );
    }
    let before = clock::instant();
    let snapshot = store.load(Timestamp::from_millis(0)).await?;
    println!(
        "load: {} servers in {:.2?}",
        snapshot.servers.len(),
        before.elapsed()
    );
    store.close().await;
    Ok(())
}

/// Identifiers in no order, as random ones are: each lands on another page of the index.
fn id<T: From<Uuid>>(kind: u64, n: u64) -> T {
    let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    T::from(Uuid::from_u64_pair(scattered, kind << 56 | n))
}

fn flavor() -> Flavor {
    Flavor {
        id: id(9, 1),
        name: "m1.small".to_owned(),
        vcpus: 1,
        ram_mb: 2048,
        disk_gb: 20,
        extra_specs: BTreeMap::from([("ebbtide:preemptible".to_owned(), "true".to_owned())]),
    }
}

fn server(n: u64, kind: u64, status: ServerStatus) -> Server {
    Server {
        id: id(kind, n),
        name: format!("server-{n}"),
        project_id: format!("project-{}", n % 50),
        flavor: flavor(),
        group_id: None,
        availability_zone: None,
        host: Some(format!("compute-{}", n % 1000)),
        status,
        external: false,
        decision_id: Some(id(2, n)),
        evacuation_id: None,
        created_at: Timestamp::from_millis(1_771_000_000_000 + n as i64),
        launched_at: None,
        ended_at: None,
        fault: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        refused_hosts: Vec::new(),
        max_price: None,
        left_hosts: BTreeMap::new(),
        last_message_at: None,
        reported_at: None,
        starts: 0,
        comeback: None,
    }
}

fn placement(n: u64, preempting: bool) -> Vec<Change> {
    let at = Timestamp::from_millis(1_771_000_000_000 + n as i64);
    let ranked = |place: u64| RankedHost {
        host: format!("compute-{}", (n + place) % 1000),
        chosen: place == 0,
        eviction_cost: Some(0.0),
        victims: Vec::new(),
        weight: 1.0 / (place + 1) as f64,
        weights: ["ram", "cpu", "disk", "io_ops"]
            .map(|weigher| Weight {
                weigher: weigher.to_owned(),
                raw: (n * place) as f64 / 7.0,
                normalised: 1.0 / 3.0,
                multiplier: 1.0,
            })
            .into(),
    };
    let decision = Decision {
        id: id(2, n),
        at,
        request: PlacementRequest {
            server_ids: vec![id(1, n)],
            project_id: format!("project-{}", n % 50),
            flavor: flavor(),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 2,
        },
        outcome: DecisionOutcome::Placed(vec![Placement {
            server_id: id(1, n),
            host: format!("compute-{}", n % 1000),
            victims: Vec::new(),
            waits_for_room: preempting,
            alternates: vec!["compute-1".to_owned(), "compute-2".to_owned()],
        }]),
        explanation: Explanation {
            policy: "tiered".to_owned(),
            instances: vec![InstanceExplanation {
                filters: Vec::new(),
                ranking: (0..10).map(ranked).collect(),
                ranked: 1000,
            }],
            optimal: true,
            ..Explanation::default()
        },
        trace: RequestTrace::default(),
    };
    let mut changes = vec![
        Change::PutServer(Box::new(server(n, 1, ServerStatus::Building))),
        Change::PutDecision(Box::new(decision)),
    ];
    if preempting {
        let evacuation = Evacuation {
            id: id(3, n),
            victim_id: id(4, n),
            victim_name: String::new(),
            victim_project_id: "project-1".to_owned(),
            victim_group_id: None,
            victim_starts: 1,
            host: format!("compute-{}", n % 1000),
            cause: EvacuationCause::Preemption,
            reclaim_owner: None,
            preemptor_id: Some(id(1, n)),
            decision_id: Some(id(2, n)),
            behaviour: InterruptionBehaviour::Terminate,
            grace: Seconds(30),
            cost: 0.25,
            state: EvacuationState::Claimed,
            attempts: 0,
            give_up_at: at,
            spare_requested: false,
            reason: None,
            claimed_at: at,
            notified_at: None,
            draining_at: None,
            deadline_at: None,
            ended_at: None,
        };
        let message = OutboxMessage {
            id: id(5, n),
            host: evacuation.host.clone(),
            body: vec![b'x'; 900],
            evacuation_id: Some(evacuation.id),
            created_at: at,
        };
        changes.extend([
            Change::PutServer(Box::new(server(n, 4, ServerStatus::Evacuating))),
            Change::PutEvacuation(Box::new(evacuation)),
            Change::Enqueue(message),
        ]);
    }
    changes
}
