//! The invariants, checked after every input.

use super::world::SimulatedRegion;
use crate::{InputKind, RegionInput};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::Change;
use ebbtide_model::{Evacuation, EvacuationCause, EvacuationId, Server, ServerId, ServerStatus};
use std::collections::BTreeMap;

/// Checks the invariants after the changes of an input are durable.
pub(super) fn after_input(world: &SimulatedRegion) {
    region_is_sound(world);
    notices_follow_claims(world);
}

fn fail(world: &SimulatedRegion, what: &str) -> ! {
    let story: Vec<&str> = world.story.iter().map(String::as_str).collect();
    panic!("{what}\n\nwhat happened:\n{}", story.join("\n"));
}

/// Memory and database are equal, and both keep the invariants.
pub(super) fn region_is_sound(world: &SimulatedRegion) {
    let region = &world.region;
    if let Err(difference) = region.check_consistency() {
        fail(world, &difference);
    }
    memory_is_what_is_durable(world);
}

fn memory_is_what_is_durable(world: &SimulatedRegion) {
    let region = &world.region;
    let durable = world
        .database
        .servers
        .values()
        .filter(|s| !s.status.is_gone());
    let durable: BTreeMap<ServerId, &Server> = durable.map(|s| (s.id, s)).collect();
    let memory: BTreeMap<ServerId, &Server> = region.servers.values().map(|s| (s.id, s)).collect();
    if durable != memory {
        fail(
            world,
            &format!("servers differ\n durable: {durable:?}\n memory: {memory:?}"),
        );
    }
    let without_timer = |e: &Evacuation| Evacuation {
        give_up_at: e.claimed_at,
        ..e.clone()
    };
    let durable = world
        .database
        .evacuations
        .values()
        .filter(|e| !e.state.is_final());
    let durable: BTreeMap<EvacuationId, Evacuation> =
        durable.map(|e| (e.id, without_timer(e))).collect();
    let memory: BTreeMap<EvacuationId, Evacuation> = region
        .evacuations
        .active()
        .filter_map(|id| region.evacuations.get(&id))
        .map(|e| (e.id, without_timer(e)))
        .collect();
    if durable != memory {
        fail(
            world,
            &format!("evacuations differ\n durable: {durable:?}\n memory: {memory:?}"),
        );
    }
}

/// A victim gets its notice only after the claim on its capacity is durable.
fn notices_follow_claims(world: &SimulatedRegion) {
    for change in &world.last_changes {
        let Change::Enqueue(message) = change else {
            continue;
        };
        let body = Message::from_bytes(&message.body)
            .expect("what we send can be read")
            .body;
        let Body::Notice(notice) = body else { continue };
        // A step may withdraw a notice in the same transaction, and then no agent gets it.
        if !world.database.outbox.iter().any(|m| m.id == message.id) {
            continue;
        }
        let Some(evacuation) = world.database.evacuations.get(&notice.evacuation_id) else {
            fail(
                world,
                &format!("notice of {}, which is not durable", notice.evacuation_id),
            );
        };
        let preemptor = evacuation.preemptor_id;
        let preemptor = preemptor.and_then(|id| world.database.servers.get(&id));
        let claims = match evacuation.cause {
            EvacuationCause::Preemption => preemptor.is_some_and(|p| {
                p.status == ServerStatus::Waiting && p.host.as_deref() == Some(&message.host)
            }),
            EvacuationCause::MaxLifetime | EvacuationCause::OutOfBid => true,
            EvacuationCause::Headroom => false,
            EvacuationCause::Reclaim => {
                let host = world.database.hosts.get(&message.host);
                host.is_some_and(|host| host.reclaim.is_some())
            }
        };
        if !claims || evacuation.state.is_final() || evacuation.spare_requested {
            fail(
                world,
                &format!("notice of {} without a claim", evacuation.id),
            );
        }
        let written = world
            .last_changes
            .iter()
            .any(|c| matches!(c, Change::PutEvacuation(e) if e.id == evacuation.id));
        if !written {
            fail(
                world,
                &format!("notice of {} in a transaction of its own", evacuation.id),
            );
        }
    }
}

/// A refused input changes nothing in memory.
pub(super) fn nothing_was_changed(world: &SimulatedRegion) {
    region_is_sound(world);
}

/// No host has observed a broken invariant.
pub(super) fn hosts_are_sound(world: &SimulatedRegion) {
    for host in world.hosts.values() {
        if let Some(broken) = host.broken.first() {
            fail(world, broken);
        }
    }
}

/// After all problems have ended and time has passed, no work is left, and the hosts run what the
/// region expects.
pub(super) fn everything_is_over(world: &SimulatedRegion) {
    let region = &world.region;
    if !world.database.outbox.is_empty() {
        fail(
            world,
            &format!("{} messages were never sent", world.database.outbox.len()),
        );
    }
    if let Some(e) = world
        .database
        .evacuations
        .values()
        .find(|e| !e.state.is_final())
    {
        fail(
            world,
            &format!("evacuation {} is {} for ever", e.id, e.state),
        );
    }
    for server in region.servers.values() {
        let rests = matches!(
            server.status,
            ServerStatus::Active
                | ServerStatus::Error
                | ServerStatus::Stopped
                | ServerStatus::Hibernated
                | ServerStatus::Reserved
        );
        if !rests {
            fail(
                world,
                &format!("server {} is {} for ever", server.id, server.status),
            );
        }
    }
    for host in world.hosts.values() {
        for id in host.guests.keys().filter(|id| host.runs(**id)) {
            let known = region.servers.get(id);
            let here = known.is_some_and(|s| {
                s.status == ServerStatus::Active && s.host.as_ref() == Some(&host.name)
            });
            if !here {
                fail(
                    world,
                    &format!("{id} runs on {}; the region has {known:?}", host.name),
                );
            }
        }
    }
    for server in region
        .servers
        .values()
        .filter(|s| s.status == ServerStatus::Active)
    {
        if !server.external && !world.runs(server.id) {
            fail(world, &format!("{} is active and does not run", server.id));
        }
    }
}

// ---- text for the log of a failed test ----

pub(super) fn short(input: &impl RegionInput) -> String {
    match input.kind() {
        InputKind::Report(message) => short_body(&message.body),
        InputKind::Placement(_) | InputKind::Command => {
            let words = format!("{input:?}");
            words.chars().take(160).collect()
        }
        InputKind::Published(id) => format!("published {id}"),
        InputKind::Tick => "tick".to_owned(),
    }
}

pub(super) fn short_body(body: &Body) -> String {
    match body {
        Body::Heartbeat(m) => {
            let servers: Vec<String> = m
                .servers
                .iter()
                .map(|h| format!("{}:{:?}", tail(h.server_id), h.state))
                .collect();
            format!("heartbeat {} #{} {servers:?}", m.host, m.sequence)
        }
        other => format!("{other:?}"),
    }
}

fn tail(id: ServerId) -> String {
    let text = id.to_string();
    text.get(text.len() - 6..).unwrap_or_default().to_owned()
}

pub(super) fn short_change(change: &Change) -> Option<String> {
    match change {
        Change::PutServer(s) => Some(format!("server {} {} on {:?}", s.id, s.status, s.host)),
        Change::PutEvacuation(e) => Some(format!(
            "evacuation {} of {} {} for {} spare={} {:?}",
            e.id,
            e.victim_id,
            e.state,
            e.preemptor_id.map(|id| id.to_string()).unwrap_or_default(),
            e.spare_requested,
            e.reason
        )),
        Change::Enqueue(m) => {
            let body = Message::from_bytes(&m.body)
                .expect("what we send can be read")
                .body;
            Some(format!("outbox {} {}: {}", m.id, m.host, short_body(&body)))
        }
        _ => None,
    }
}
