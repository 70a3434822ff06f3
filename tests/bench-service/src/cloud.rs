//! The cloud: hosts that are heartbeats, and preemptible servers that are taken over as if they had
//! been running.

use crate::BenchOptions;
use anyhow::{Result, bail};
use ebbtide_bench::seeded::SeededNumbers;
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, OutgoingMessage, QueuePrefix};
use ebbtide_integration_tests::Region;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_model::message::{Body, Heartbeat, Message};
use ebbtide_model::{Inventory, MessageId, ResourceClass, Timestamp};
use ebbtide_proto::v1;
use ebbtide_runtime::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::JoinSet;
use uuid::Uuid;

/// What normal requests ask for.
pub(crate) const NORMAL: &str = "small";
/// What fills the hosts of the preempting case.
const PREEMPTIBLE: &str = "spot.small";
/// Preemptible servers on each host of the preempting case; it holds no more.
const SLOTS: u64 = 4;
/// Servers that each host of the ordinary case holds: more than any run can place.
const ROOM: u64 = 500;
/// Messages on their way to the broker at once, and calls on their way to the scheduler.
const IN_FLIGHT: usize = 64;
/// Interval of progress messages, in servers. Registering and filling take a while.
const TELL_EVERY: usize = 5000;

fn host_name(number: u32) -> String {
    format!("host-{number:06}")
}

fn heartbeat(number: u32, slots: u64) -> Result<OutgoingMessage> {
    let inventory = BTreeMap::from([
        (ResourceClass::vcpu(), Inventory::of(2 * slots)),
        (ResourceClass::memory_mb(), Inventory::of(4000 * slots)),
        (ResourceClass::disk_gb(), Inventory::of(40 * slots)),
    ]);
    let message = Message {
        id: MessageId(Uuid::from_u128(1 << 100 | u128::from(number))),
        source: "/bench".to_owned(),
        time: clock::now(),
        body: Body::Heartbeat(Heartbeat {
            host: host_name(number),
            session: Uuid::from_u128(u128::from(number) + 1),
            sequence: 1,
            inventory,
            traits: BTreeSet::new(),
            servers: Vec::new(),
            storage: None,
        }),
    };
    Ok(OutgoingMessage::cloud_event(
        message.id.0,
        message.to_bytes()?,
    ))
}

/// Sends one heartbeat of each host and declares its agent's queue, as an agent does when it
/// starts; waits until all are registered, and makes the flavors.
pub(crate) async fn register(region: &Region, options: &BenchOptions) -> Result<()> {
    let config = AmqpConfig::new(vec![region.broker_url().parse()?], "bench");
    let bus = Arc::new(AmqpBus::connect(config, PATIENCE).await?);
    let prefix = QueuePrefix::new(region.prefix())?;
    let slots = if options.preempting { SLOTS } else { ROOM };
    let mut sending = JoinSet::new();
    for number in 0..options.hosts {
        if sending.len() >= IN_FLIGHT
            && let Some(sent) = sending.join_next().await
        {
            sent??;
        }
        let (bus, queue, beat) = (
            Arc::clone(&bus),
            prefix.scheduler(),
            heartbeat(number, slots)?,
        );
        let agent = prefix.agent(&host_name(number))?;
        sending.spawn(async move {
            bus.declare(&agent).await?;
            bus.publish(&queue, &beat).await
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent??;
    }
    bus.close().await;
    let mut admin = region.admin().await?;
    let mut scheduler = region.scheduler().await?;
    let mut before = 0;
    loop {
        let up = scheduler
            .region_summary(v1::RegionSummaryRequest {})
            .await?
            .into_inner();
        let there = up.hosts_up;
        if there >= options.hosts {
            break;
        }
        if there > before {
            complain!("  {there} of {}", options.hosts);
        }
        before = there;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    for (name, preemptible) in [(NORMAL, false), (PREEMPTIBLE, true)] {
        let specs = preemptible.then(|| ("ebbtide:preemptible".to_owned(), "true".to_owned()));
        let flavor = v1::Flavor {
            name: name.to_owned(),
            vcpus: 2,
            ram_mb: 4000,
            disk_gb: 40,
            extra_specs: specs.into_iter().collect(),
            ..Default::default()
        };
        let flavor = Some(flavor);
        admin
            .create_flavor(v1::CreateFlavorRequest { flavor })
            .await?;
    }
    Ok(())
}

/// Fills every host with preemptible servers of mixed ages.
pub(crate) async fn fill(region: &Region, options: &BenchOptions) -> Result<()> {
    let admin = region.admin().await?;
    let mut seeded = SeededNumbers::new(1, 0);
    let mut adopting = JoinSet::new();
    let mut done = 0_usize;
    for number in (0..options.hosts).flat_map(|n| (0..SLOTS).map(move |_| n)) {
        if adopting.len() >= IN_FLIGHT
            && let Some(adopted) = adopting.join_next().await
        {
            adopted??;
            done += 1;
            if done.is_multiple_of(TELL_EVERY) {
                complain!("  {done} of {}", u64::from(options.hosts) * SLOTS);
            }
        }
        let age = i64::try_from(seeded.below(24 * 3_600_000)).unwrap_or(0);
        let launched = Timestamp::from_millis(clock::now().as_millis() - age);
        let request = v1::AdoptServerRequest {
            name: format!("spot-{number}"),
            project_id: format!("project-{}", seeded.below(50)),
            flavor: PREEMPTIBLE.to_owned(),
            host: host_name(number),
            launched_at: launched.to_string(),
            ..Default::default()
        };
        let mut admin = admin.clone();
        adopting.spawn(async move { admin.adopt_server(request).await.map(|_| ()) });
    }
    while let Some(adopted) = adopting.join_next().await {
        adopted??;
    }
    // Every further normal request must preempt. If this check fails, the benchmark does not
    // measure preemption.
    let mut scheduler = region.scheduler().await?;
    let request = v1::PlacementRequest {
        count: 1,
        flavor: NORMAL.to_owned(),
        ..Default::default()
    };
    let answer = scheduler
        .what_if(v1::WhatIfRequest {
            request: Some(request),
            ..Default::default()
        })
        .await?
        .into_inner();
    let victims = answer.decision.map_or(0, |decision| {
        decision
            .placements
            .iter()
            .map(|p| p.victims.len())
            .sum::<usize>()
    });
    if victims == 0 {
        bail!("the cloud is not saturated: a request finds room without victims");
    }
    Ok(())
}
