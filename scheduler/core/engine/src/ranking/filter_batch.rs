//! What filters that are plugins are shown about the hosts: the columns of weighers, on the state
//! on which the request is filtered.

use super::columns::Batch;
use super::{RankedCandidate, Tier, facts};
use crate::state::DecisionState;
use crate::table::{HostIndex, InstancePhase, InstanceRow};
use ebbtide_model::ResourceClass;
use ebbtide_weigher_api::{
    Column, Details, Fact, FactColumn, HostBatch, HostFilter, PreemptibleRows,
};

/// The columns and facts that one filter reads.
pub(crate) struct FilterBatch {
    len: usize,
    batch: Batch,
    /// h_n has no preemptible instances: the group of each host is empty.
    no_ages: Option<Vec<u32>>,
}

impl FilterBatch {
    pub(crate) fn new(
        state: &DecisionState<'_>,
        hosts: &[HostIndex],
        filter: &dyn HostFilter,
    ) -> Self {
        let place = |host: &HostIndex| RankedCandidate {
            host: *host,
            tier: Tier::Room,
            eviction: None,
        };
        let places: Vec<RankedCandidate> = hosts.iter().map(place).collect();
        let mut needed = [false; Column::COUNT];
        for column in filter.needs() {
            needed[column.index()] = true;
        }
        let is_full = state.ask.preemptible();
        let ages = filter.needs_preemptibles();
        let mut batch = Batch::new(state, &places, &needed, ages && is_full);
        batch.add_facts(state, &places, filter.facts().iter());
        if !is_full {
            let needed = Column::ALL.into_iter().filter(|c| needed[c.index()]);
            needed.for_each(|column| {
                let values = &mut batch.columns[column.index()];
                without_preemptible(state, hosts, column, values);
            });
            for (fact, column) in &mut batch.facts {
                if let (Fact::Used(class), FactColumn::Numbers(numbers)) = (&*fact, column) {
                    *numbers = facts::used_normal(state.table, hosts, class);
                }
            }
        }
        Self {
            len: hosts.len(),
            batch,
            no_ages: (ages && !is_full).then(|| vec![0; hosts.len() + 1]),
        }
    }

    pub(crate) fn view(&self) -> HostBatch<'_> {
        let none = self.no_ages.as_ref().map(|offsets| PreemptibleRows {
            offsets,
            age_seconds: &[],
        });
        HostBatch {
            len: self.len,
            columns: &self.batch.columns,
            preemptibles: none.or_else(|| self.batch.preemptibles()),
            details: Details {
                facts: &self.batch.facts,
                ..Details::default()
            },
        }
    }
}

/// Turns a column of h_f into that of h_n: what preemptible instances hold and would give back is
/// free, and they are not counted.
fn without_preemptible(
    state: &DecisionState<'_>,
    hosts: &[HostIndex],
    column: Column,
    values: &mut [f64],
) {
    let mut add = |more: &dyn Fn(HostIndex) -> f64| {
        for (value, host) in values.iter_mut().zip(hosts) {
            *value += more(*host);
        }
    };
    let frees = |class: &ResourceClass, unit: f64| {
        let columns = state.table.class(class);
        move |host: HostIndex| {
            let freed = columns.map_or(0, |c| c.free_normal(host) - c.free_full(host));
            freed as f64 * unit
        }
    };
    let count = |host: HostIndex, counts: &dyn Fn(&InstanceRow) -> bool| {
        let slots = state.table.slots_on(host).iter();
        let rows = slots.map(|slot| state.table.row(*slot));
        rows.filter(|row| row.preemptible && counts(row)).count() as f64
    };
    let is_working =
        |row: &InstanceRow| matches!(row.phase, InstancePhase::Building | InstancePhase::Leaving);
    match column {
        Column::FreeRamMb => add(&frees(&ResourceClass::memory_mb(), 1.0)),
        Column::FreeDiskMb => add(&frees(&ResourceClass::disk_gb(), 1024.0)),
        Column::FreeVcpus => add(&frees(&ResourceClass::vcpu(), 1.0)),
        Column::NumInstances => {
            add(&|host| -count(host, &|row| row.phase != InstancePhase::Retained));
        }
        Column::NumIoOps => {
            let victims = |host| state.pending(host).map_or(0, |p| p.victims.len()) as f64;
            add(&|host| -count(host, &is_working) - victims(host));
        }
        Column::NumPreemptible => values.fill(0.0),
        // Members of the request's group count of any owner, as in the built-in filters;
        // h_n itself; and what no instance changes.
        Column::GroupMembers
        | Column::NormalRoom
        | Column::PreemptionNeeded
        | Column::EvictionCost
        | Column::EvictionVictims
        | Column::FailedBuilds
        | Column::HypervisorVersion
        | Column::FreePciDevices
        | Column::CellPreference => {}
    }
}
