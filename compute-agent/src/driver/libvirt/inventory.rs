//! What the host has: the hypervisor's word, corrected by the operator's. Pure.

use super::records::Note;
use super::settings::LibvirtSettings;
use super::snapshot::Snapshot;
use crate::driver::{DriverError, HostFacts};
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{Inventory, ResourceClass, Resources, ServerId};
use std::collections::BTreeMap;

/// What the flavor may ask for; anything else this driver cannot give.
const CLASSES: [&str; 3] = ["VCPU", "MEMORY_MB", "DISK_GB"];

/// What the host has and is. What domains of others hold is reserved: it cannot be given, and the
/// scheduler has to know.
pub(super) fn facts(settings: &LibvirtSettings, snapshot: &Snapshot, disk_gib: u64) -> HostFacts {
    let said = [
        (ResourceClass::vcpu(), snapshot.cpus),
        (ResourceClass::memory_mb(), snapshot.memory_mib),
        (ResourceClass::disk_gb(), disk_gib),
    ];
    let inventory = said.into_iter().map(|(class, total)| {
        let mut inventory = Inventory::of(total);
        if let Some(correction) = settings.inventory.get(&class) {
            correction.apply(&mut inventory);
        }
        let foreign: u64 = snapshot.foreign.iter().map(|holds| holds.get(&class)).sum();
        // With overcommit, a processor of a foreign machine takes only its share of the inventory.
        let taken = (foreign as f64 / inventory.allocation_ratio).ceil() as u64;
        inventory.reserved = inventory
            .reserved
            .saturating_add(taken)
            .min(inventory.total);
        (class, inventory)
    });
    HostFacts {
        inventory: inventory.collect(),
        traits: settings.traits.clone(),
        storage: settings.storage.as_ref().map(|s| s.name.clone()),
    }
}

/// What a server holds: processors and memory as the hypervisor says, its disk as was asked for.
pub(super) fn holds(snapshot: &Snapshot, server_id: ServerId, note: Option<&Note>) -> Resources {
    let domain = snapshot.servers.get(&server_id);
    let mut holds = domain.map(|domain| domain.holds()).unwrap_or_default();
    if let (Some(_), Some(note)) = (domain, note) {
        let class = ResourceClass::disk_gb();
        let amount = note.start.resources.get(&class);
        // The amount comes out of another `Resources`, so it is within the range.
        let _ = holds.set(class, amount);
    }
    holds
}

/// Whether a server has room. `others` is what all other servers hold, and those that are being
/// started.
///
/// # Errors
/// [`DriverError::NoRoom`], [`DriverError::Unsupported`].
pub(super) fn check_room(
    start: &Start,
    facts: &HostFacts,
    others: &BTreeMap<ServerId, Resources>,
) -> Result<(), DriverError> {
    for (class, asked) in start.resources.iter() {
        if asked > 0 && !CLASSES.contains(&class.as_str()) {
            return Err(DriverError::Unsupported {
                driver: super::NAME,
                what: "start the server",
                detail: format!("{class} cannot be given to a guest by this driver"),
            });
        }
        let capacity = facts.inventory.get(class).map_or(0, Inventory::capacity);
        let used: u64 = others.values().map(|holds| holds.get(class)).sum();
        let free = capacity.saturating_sub(used);
        if asked > free {
            return Err(DriverError::NoRoom {
                detail: format!("{class}: {asked} asked for, {free} of {capacity} free"),
            });
        }
    }
    for class in [ResourceClass::vcpu(), ResourceClass::memory_mb()] {
        if start.resources.get(&class) == 0 {
            return Err(DriverError::Unsupported {
                driver: super::NAME,
                what: "start the server",
                detail: format!("flavor {} has no {class}", start.flavor),
            });
        }
    }
    Ok(())
}

/// A start order for a domain of ours about which nothing is noted: what can be known of it.
pub(super) fn adopted(snapshot: &Snapshot, server_id: ServerId) -> Start {
    let domain = snapshot.servers.get(&server_id);
    let mut resources = domain.map(|domain| domain.holds()).unwrap_or_default();
    if domain.is_none_or(|domain| domain.state() != HostedState::Running) {
        resources = Resources::new();
    }
    Start {
        server_id,
        name: super::names::domain(server_id),
        project_id: String::new(),
        flavor: String::new(),
        resources,
        preemptible: false,
        attempt: 0,
        resume: false,
        storage: None,
    }
}
