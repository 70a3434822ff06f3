//! A victim as a record has it, from the plan and from what it holds in Placement.

use crate::preemption::{Holding, Victim, VictimState};
use ebbtide_model::{EvacuationId, ServerId, Timestamp};
use ebbtide_nova_cloud::PlannedVictim;
use ebbtide_openstack::placement::ConsumerAllocations;
use serde_json::{Value, json};

/// The record of a planned victim. `None`: it holds nothing any more, so no swap may name it.
pub(crate) fn victim(planned: &PlannedVictim, held: &ConsumerAllocations) -> Option<Victim> {
    let generation = held.consumer_generation?.0;
    if held.allocations.is_empty() {
        return None;
    }
    let had = Holding {
        allocations: json_of(held),
        mappings: None,
        project_id: held
            .project_id
            .clone()
            .unwrap_or_else(|| planned.project_id.clone()),
        user_id: held
            .user_id
            .clone()
            .unwrap_or_else(|| planned.user_id.clone()),
        generation: Some(generation),
    };
    let keeps = (!planned.keeps.is_empty()).then(|| Holding {
        allocations: planned
            .keeps
            .iter()
            .map(|(provider, of)| (provider.to_string(), json!({"resources": of})))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        ..had.clone()
    });
    Some(Victim {
        server: ServerId(planned.uuid),
        name: planned.name.clone(),
        cost: planned.cost,
        evacuation: EvacuationId(ebbtide_runtime::ids::new()),
        host: planned.host.host.clone(),
        had,
        generation,
        keeps,
        behaviour: planned.interruption,
        grace: planned.grace,
        flavor: planned.flavor.clone(),
        launched_at: planned
            .launched_at
            .map(|micros| Timestamp::from_millis(micros / 1000)),
        released: false,
        state: VictimState::Claimed,
    })
}

/// What a consumer holds, in the form of a candidate.
pub(crate) fn json_of(held: &ConsumerAllocations) -> Value {
    held.allocations
        .iter()
        .map(|(provider, of)| (provider.to_string(), json!({"resources": of.resources})))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
