//! Converts Nova's servers and hypervisors to the agent's types.

use super::{judge, notice};
use crate::driver::{HostFacts, Occupancy, ServerView};
use ebbtide_model::message::HostedState;
use ebbtide_model::{Inventory, ResourceClass, Resources, ServerId, Timestamp};
use ebbtide_openstack::compute::{Hypervisor, Server};
use std::collections::BTreeMap;

/// Its state. A server counts as running unless it certainly is not.
pub(super) fn state(server: &Server) -> HostedState {
    match server.status.as_str() {
        "SHUTOFF" | "SHELVED" | "SOFT_DELETED" => HostedState::Stopped,
        // A suspended guest's memory is on disk.
        "SUSPENDED" | "SHELVED_OFFLOADED" => HostedState::Hibernated,
        _ => HostedState::Running,
    }
}

pub(super) fn view(server: &Server) -> ServerView {
    ServerView {
        server_id: ServerId(server.id),
        state: state(server),
        released: notice::released(&server.metadata),
        // Nova's databases have it.
        facts: None,
    }
}

/// Its launch time; Nova writes no zone and means UTC.
pub(super) fn launched_at(server: &Server) -> Option<Timestamp> {
    let text = server.launched_at.as_deref()?;
    let zoned = text.ends_with('Z') || text.contains('+');
    if zoned {
        text.parse().ok()
    } else {
        format!("{text}Z").parse().ok()
    }
}

/// What it holds of this host.
pub(super) fn occupancy(server: &Server, host: &str) -> Occupancy {
    // Nova clears the host a moment after the status.
    let offloaded = server.status == "SHELVED_OFFLOADED";
    if !offloaded && !judge::is_on(server, host) {
        return Occupancy::Absent;
    }
    let state = state(server);
    let flavor = &server.flavor;
    let mut holds = Resources::new();
    let mut hold = |class, amount| {
        // An amount out of range is ignored: what a server holds is only compared, never added up.
        let _ = holds.set(class, amount);
    };
    if !offloaded {
        hold(
            ResourceClass::disk_gb(),
            flavor.disk.saturating_add(flavor.ephemeral),
        );
        if state == HostedState::Running {
            hold(ResourceClass::vcpu(), flavor.vcpus);
            hold(ResourceClass::memory_mb(), flavor.ram);
        }
    }
    let since = launched_at(server).unwrap_or_default();
    Occupancy::Present {
        state,
        holds,
        since,
    }
}

/// The properties of each host. Ratios and reserved amounts are left to Placement, because no
/// decision uses them here.
pub(super) fn hosts(hypervisors: &[Hypervisor]) -> BTreeMap<String, HostFacts> {
    let mut hosts: BTreeMap<String, HostFacts> = BTreeMap::new();
    for hypervisor in hypervisors {
        let facts = hosts.entry(hypervisor.service.host.clone()).or_default();
        let amounts = [
            (ResourceClass::vcpu(), hypervisor.vcpus),
            (ResourceClass::memory_mb(), hypervisor.memory_mb),
            (ResourceClass::disk_gb(), hypervisor.local_gb),
        ];
        for (class, amount) in amounts {
            // Only some drivers have several nodes for each host; their amounts are added up. A
            // host without its own disk reports 0.
            let amount = u64::try_from(amount).unwrap_or(0);
            let sum = facts
                .inventory
                .get(&class)
                .map_or(0, |known| known.total)
                .saturating_add(amount);
            let inventory = Inventory::of(sum);
            if sum > 0 && inventory.check(&class).is_ok() {
                facts.inventory.insert(class, inventory);
            }
        }
    }
    hosts
}
