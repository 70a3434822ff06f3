//! Which instances can leave, and what a request needs to know about them.

use crate::state::DecisionState;
use crate::table::{InstanceRow, Slot};
use ebbtide_model::{GroupPolicy, ServerId};
use ebbtide_solver::EvictionCost;
use smallvec::SmallVec;

/// A preemptible instance that could leave, with its price.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) id: ServerId,
    pub(crate) slot: Slot,
    pub(crate) cost: EvictionCost,
    pub(crate) age_ms: u64,
}

/// What the request wants to know about instances of one shape.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShapeFacts {
    known: bool,
    /// What a victim frees, by position of the need.
    pub(crate) amounts: SmallVec<[i64; 4]>,
    pub(crate) vcpus: f64,
    pub(crate) memory_mb: f64,
}

/// True if an instance may be a victim of this request at all.
pub(crate) fn may_leave(state: &DecisionState<'_>, row: &InstanceRow) -> bool {
    let friend = state.ask.policy() == Some(GroupPolicy::Affinity)
        && row.group.is_some()
        && row.group == state.ask.group.map(|group| group.id);
    let spared = || {
        state
            .ask
            .eligible
            .is_some_and(|eligible| eligible.spares(row.id))
    };
    row.is_staying_preemptible() && !is_protected(state, row) && !friend && !spared()
}

/// True for a preemptible instance within its protected time.
pub(crate) fn is_protected(state: &DecisionState<'_>, row: &InstanceRow) -> bool {
    row.is_staying_preemptible()
        && row
            .protected_until
            .get()
            .is_some_and(|until| state.now < until)
}

/// Works the facts out at first sight.
pub(crate) fn learn(facts: &mut ShapeFacts, state: &DecisionState<'_>, shape: u32) {
    if facts.known {
        return;
    }
    let shape = state.table.shape(shape);
    let resources = shape.takes();
    *facts = ShapeFacts {
        known: true,
        amounts: state
            .ask
            .needs
            .iter()
            .map(|need| shape.freed(need.class))
            .collect(),
        vcpus: (resources.amount("VCPU") + resources.amount("PCPU")) as f64,
        memory_mb: resources.amount("MEMORY_MB") as f64,
    };
}
