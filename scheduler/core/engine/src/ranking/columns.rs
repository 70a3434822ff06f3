//! What weighers are shown about the hosts, as flat columns.

use super::{RankedCandidate, Tier, facts};
use crate::state::DecisionState;
use crate::table::HostIndex;
use ebbtide_model::ResourceClass;
use ebbtide_weigher_api::{Column, Fact, FactColumn, PreemptibleRows};

/// The columns that the weighers in use need, and the ages of preemptible instances if a weigher
/// needs them.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) columns: [Vec<f64>; Column::COUNT],
    offsets: Vec<u32>,
    ages: Vec<f64>,
    pub(super) facts: Vec<(Fact, FactColumn)>,
}

impl Batch {
    /// Works out the columns of which `needed` says so, and the ages if `ages` does.
    pub(crate) fn new(
        state: &DecisionState<'_>,
        places: &[RankedCandidate],
        needed: &[bool; Column::COUNT],
        ages: bool,
    ) -> Self {
        let columns = std::array::from_fn(|index| {
            let column = Column::ALL[index];
            if needed[index] {
                fill(state, places, column)
            } else {
                Vec::new()
            }
        });
        let mut batch = Self {
            columns,
            offsets: Vec::new(),
            ages: Vec::new(),
            facts: Vec::new(),
        };
        if ages {
            batch.add_ages(state, places);
        }
        batch
    }

    /// Adds the facts that the weighers read, each once.
    pub(super) fn add_facts<'f>(
        &mut self,
        state: &DecisionState<'_>,
        places: &[RankedCandidate],
        facts: impl Iterator<Item = &'f Fact>,
    ) {
        let mut hosts: Vec<HostIndex> = Vec::new();
        for fact in facts {
            if hosts.is_empty() {
                hosts.extend(places.iter().map(|place| place.host));
            }
            if !self.facts.iter().any(|(known, _)| known == fact) {
                let column = facts::column(state.table, &hosts, fact);
                self.facts.push((fact.clone(), column));
            }
        }
    }

    /// The rows, if they were asked for.
    pub(super) fn preemptibles(&self) -> Option<PreemptibleRows<'_>> {
        (!self.offsets.is_empty()).then_some(PreemptibleRows {
            offsets: &self.offsets,
            age_seconds: &self.ages,
        })
    }

    fn add_ages(&mut self, state: &DecisionState<'_>, places: &[RankedCandidate]) {
        self.offsets.push(0);
        for place in places {
            let start = self.ages.len();
            for &slot in state.table.slots_on(place.host) {
                let row = state.table.row(slot);
                if row.is_staying_preemptible() && !state.is_taken(slot) {
                    self.ages.push(row.age_millis(state.now) as f64 / 1000.0);
                }
            }
            if state.ask.preemptible() {
                let placed = state.pending(place.host).map_or(0, |p| p.placed);
                self.ages.extend((0..placed).map(|_| 0.0));
            }
            // Sums of floats depend on the order, and the table keeps none.
            self.ages[start..].sort_unstable_by(f64::total_cmp);
            self.offsets
                .push(u32::try_from(self.ages.len()).unwrap_or(u32::MAX));
        }
    }
}

fn fill(state: &DecisionState<'_>, places: &[RankedCandidate], column: Column) -> Vec<f64> {
    let each = |value: &dyn Fn(&RankedCandidate) -> f64| places.iter().map(value).collect();
    let counts = state.table.counts();
    let placed = |host: HostIndex| state.pending(host).map_or(0, |p| p.placed) as f64;
    let victims = |host: HostIndex| state.pending(host).map_or(0, |p| p.victims.len()) as f64;
    match column {
        Column::FreeRamMb => unsold(state, places, &ResourceClass::memory_mb(), 1.0),
        Column::FreeDiskMb => unsold(state, places, &ResourceClass::disk_gb(), 1024.0),
        Column::FreeVcpus => free_vcpus(state, places),
        Column::NumInstances => {
            each(&|p| f64::from(counts.instances[p.host.at()]) + placed(p.host))
        }
        // As Nova's HostState: what was just placed will be built, what was just chosen will leave.
        Column::NumIoOps => {
            each(&|p| f64::from(counts.io_ops[p.host.at()]) + placed(p.host) + victims(p.host))
        }
        Column::GroupMembers => each(&|p| f64::from(state.members_on(p.host).all())),
        Column::NumPreemptible => each(&|p| {
            let added = if state.ask.preemptible() {
                placed(p.host)
            } else {
                0.0
            };
            f64::from(counts.preemptible[p.host.at()]) - victims(p.host) + added
        }),
        Column::PreemptionNeeded => each(&|p| if p.tier == Tier::Room { 0.0 } else { 1.0 }),
        Column::EvictionCost => each(&|p| p.eviction.as_ref().map_or(0.0, |e| e.cost.to_units())),
        Column::EvictionVictims => {
            each(&|p| p.eviction.as_ref().map_or(0.0, |e| e.victims.len() as f64))
        }
        Column::NormalRoom => places.iter().map(|p| normal_room(state, p.host)).collect(),
        // Hosts of a region do not report these. The same number for all hosts: a weigher that
        // reads one of them decides nothing.
        Column::FailedBuilds
        | Column::HypervisorVersion
        | Column::FreePciDevices
        | Column::CellPreference => vec![0.0; places.len()],
    }
}

/// What was just placed takes of a class, on each host.
fn placed<'a>(
    state: &'a DecisionState<'_>,
    class: &ResourceClass,
) -> impl Fn(HostIndex) -> i64 + 'a {
    let need = state.ask.needs.iter().find(|need| need.class == class);
    let amount = need.map_or(0, |need| need.amount);
    move |host| state.pending(host).map_or(0, |p| p.placed) * amount
}

/// How many instances of the request's size fit into h_n.
fn normal_room(state: &DecisionState<'_>, host: HostIndex) -> f64 {
    let placed = match state.ask.preemptible() {
        true => 0,
        false => state.pending(host).map_or(0, |p| p.placed),
    };
    let rooms = state.ask.needs.iter().filter(|need| need.amount > 0);
    let rooms = rooms.map(|need| {
        let free = need.columns.map_or(0, |c| c.free_normal(host));
        (free / need.amount - placed).max(0)
    });
    rooms.min().unwrap_or(0) as f64
}

/// total − used, without the allocation ratio, as Nova's `free_ram_mb` and `free_disk_mb`.
fn unsold(
    state: &DecisionState<'_>,
    places: &[RankedCandidate],
    class: &ResourceClass,
    unit: f64,
) -> Vec<f64> {
    let (columns, placed) = (state.table.class(class), placed(state, class));
    let free = |host| columns.map_or(0, |c| c.unsold(host)) - placed(host);
    places.iter().map(|p| free(p.host) as f64 * unit).collect()
}

/// total × ratio − used, in floating point, as Nova's CPUWeigher.
fn free_vcpus(state: &DecisionState<'_>, places: &[RankedCandidate]) -> Vec<f64> {
    let class = ResourceClass::vcpu();
    let (columns, placed) = (state.table.class(&class), placed(state, &class));
    let free = |host| columns.map_or(0.0, |c| c.stretched(host, placed(host)));
    places.iter().map(|p| free(p.host)).collect()
}
