//! Hosts that are a heartbeat each, without an agent: to look at a region with many hosts.

use anyhow::Result;
use ebbtide_bus::{Bus, OutgoingMessage, QueuePrefix};
use ebbtide_model::message::{Body, Heartbeat, Message};
use ebbtide_model::{Inventory, MessageId, ResourceClass};
use ebbtide_runtime::clock;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Sends one heartbeat of each host: `silent-00001` and so on, of the size of the paper's hosts.
///
/// # Errors
/// The bus does not take a message.
pub(crate) async fn register(bus: &dyn Bus, prefix: &QueuePrefix, hosts: u32) -> Result<()> {
    for number in 1..=hosts {
        let host = format!("silent-{number:05}");
        // What the scheduler sends to the host has to go somewhere.
        bus.declare(&prefix.agent(&host)?).await?;
        let message = heartbeat(host, number);
        let bytes = message.to_bytes()?;
        let message = OutgoingMessage::cloud_event(message.id.0, bytes);
        bus.publish(&prefix.scheduler(), &message).await?;
    }
    Ok(())
}

fn heartbeat(host: String, number: u32) -> Message {
    Message {
        id: MessageId(Uuid::from_u128(1 << 100 | u128::from(number))),
        source: "/demo".to_owned(),
        time: clock::now(),
        body: Body::Heartbeat(Heartbeat {
            host,
            session: Uuid::from_u128(u128::from(number)),
            sequence: 1,
            inventory: BTreeMap::from([
                (ResourceClass::vcpu(), Inventory::of(8)),
                (ResourceClass::memory_mb(), Inventory::of(16_000)),
                (ResourceClass::disk_gb(), Inventory::of(160)),
            ]),
            traits: BTreeSet::new(),
            servers: Vec::new(),
            storage: None,
        }),
    }
}
