//! The host table: both states of the cloud in one structure.
//!
//! For each host and resource class it keeps the capacity, what normal instances use, what
//! preemptible ones use, and what preemptible ones use that are leaving. What a preemptible
//! instance retains when it is evacuated counts as normal: no eviction frees it. The full state h_f
//! and the normal state h_n are subtractions, and every change is O(1) for each class that it
//! touches. It is laid out in columns, so that a filter reads only what it needs.
//!
//! Invariants, all checked by [`HostTable::check_consistency`]:
//! - Columns equal what the instances add up to.
//! - A host keeps its index while it is registered; indices of removed hosts are given out again.
//! - Hosts are in the order of their registration: `created_at`, then name. That is a property of
//!   the hosts and not of the calls, so a table that is loaded from a database after a restart has
//!   the same order.
//! - Nothing that is shown or decided depends on hash order or on the order in which instances were
//!   put.

mod aggregates;
mod blocked;
mod change;
mod check;
mod columns;
mod compact;
mod groups;
mod instance;
mod intern;
mod order;
mod phase_table;
mod rows;
mod summary;
mod usage;

pub use instance::{Instance, InstancePhase, InstanceView};
pub use summary::{CloudTotals, HostSummary, class_totals, sum_inventories};
pub use usage::{ClassUsage, HostCounts, HostUsage};

pub(crate) use aggregates::Aggregates;
pub(crate) use blocked::{BLOCK, Blocked};
pub(crate) use columns::{ClassColumns, CountColumns};
pub(crate) use compact::{CompactClass, LIMIT, WeightColumn, WeightColumns};
pub(crate) use groups::MemberCount;
pub(crate) use instance::{InstanceRow, InstanceSize};
pub(crate) use phase_table::{OTHER_SHAPE, PHASES, PhaseTable, WIDE};

use ebbtide_model::host_set::HostSet;
use ebbtide_model::{GroupId, Host, HostHealth, ResourceClass, ServerId, Timestamp, Trait};
use groups::GroupEntry;
use intern::Interner;
use rows::Rows;
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl $name {
            /// From a place in a column.
            #[allow(dead_code, reason = "one of the three is only ever given out")]
            pub(crate) fn new(at: usize) -> Self {
                Self(index_of(at))
            }

            /// Its place in the columns.
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// A host's place in the columns.
    HostIndex
);
index!(
    /// A resource class's place.
    ClassIndex
);
index!(
    /// An instance's place.
    Slot
);

/// A place as a 32-bit number. Four thousand million rows do not fit into memory, so the end is
/// never reached.
fn index_of(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What an instance has of one class, as columns are addressed.
#[derive(Debug, Clone, Copy)]
struct Amount {
    class: ClassIndex,
    takes: i64,
    /// The part of it that an evacuation leaves behind.
    retained: i64,
}

/// What an instance has of all classes.
type Amounts = SmallVec<[Amount; 4]>;

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// What is not a number about a host.
#[derive(Debug, Clone)]
struct HostRow {
    name: Box<str>,
    created_at: Timestamp,
    disabled: bool,
    down: bool,
    /// First the preemptible ones that are not leaving, then all others; in no particular order
    /// otherwise: sorted where order can be seen.
    instances: Vec<Slot>,
}

/// All hosts and instances of a region.
#[derive(Debug, Clone, Default)]
pub struct HostTable {
    host_numbers: HashMap<Box<str>, HostIndex>,
    hosts: Vec<HostRow>,
    free_hosts: Vec<HostIndex>,
    order: Vec<HostIndex>,
    /// By host: its place in `order`.
    rank: Vec<u32>,
    /// By block of hosts: the first place of any of them, or an earlier one that was given up.
    first_rank: Vec<u32>,
    /// Enabled and up.
    usable: HostSet,
    /// Registered.
    known: HostSet,
    trait_set: Vec<u32>,
    aggregate_set: Vec<u32>,
    counts: CountColumns,
    class_numbers: HashMap<ResourceClass, ClassIndex>,
    classes: Vec<ResourceClass>,
    columns: Vec<ClassColumns>,
    /// By class, as `columns`.
    compact: Vec<CompactClass>,
    weights: WeightColumns,
    /// The classes that weighers use: VCPU, MEMORY_MB, DISK_GB. `None` if no host has the class and
    /// no instance uses it.
    weighed: [Option<ClassIndex>; 3],
    phase_table: PhaseTable,
    instance_numbers: HashMap<ServerId, Slot>,
    instances: Rows,
    free_instances: Vec<Slot>,
    projects: Interner<String>,
    flavors: Interner<String>,
    shapes: Interner<InstanceSize>,
    /// By number of the shape.
    shape_amounts: Vec<Amounts>,
    trait_sets: Interner<BTreeSet<Trait>>,
    aggregates: Aggregates,
    groups: HashMap<GroupId, GroupEntry>,
}

impl HostTable {
    /// An empty cloud.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of the billing period for which this table keeps launch times ready, in seconds;
    /// an hour unless it is set. An engine with another period gives the same answers, but looks at
    /// every instance for each of them.
    pub fn set_billing_period(&mut self, seconds: u32) {
        let period_ms = i64::from(seconds.max(1)) * 1000;
        if period_ms == self.phase_table.period_ms() {
            return;
        }
        self.phase_table.set_period_ms(period_ms);
        for (at, host) in self.hosts.iter().enumerate() {
            let many = self.counts.preemptible[at] as usize;
            for (row, &slot) in host.instances[..many].iter().enumerate() {
                let instance = &self.instances[slot];
                let launched = instance.launched_at.millis();
                self.phase_table
                    .put(HostIndex::new(at), row, launched, instance.shape);
            }
        }
    }

    /// How many hosts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if there is no host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many instances there are, on all hosts together, those that are only retained included.
    #[must_use]
    pub fn instance_count(&self) -> usize {
        self.instance_numbers.len()
    }

    /// Inserts a host, or updates its inventory, traits, and whether it is disabled. A new host is
    /// up: its registration is a sign of life. Instances on it stay as they are, even if they no
    /// longer fit.
    pub fn put_host(&mut self, host: &Host) {
        let index = match self.find_host(&host.name) {
            Some(index) => {
                if self.hosts[index.at()].created_at != host.created_at {
                    self.leave_order(index);
                    self.hosts[index.at()].created_at = host.created_at;
                    self.enter_order(index);
                }
                self.trait_sets.release(self.trait_set[index.at()]);
                index
            }
            None => self.new_host(host),
        };
        self.trait_set[index.at()] = self.trait_sets.acquire(host.traits.clone());
        for class in host.inventory.keys() {
            self.class_index_or_new(class);
        }
        for (columns, class) in self.columns.iter_mut().zip(&self.classes) {
            columns.set_inventory(index, host.inventory.get(class));
        }
        self.follow_classes(index);
        self.hosts[index.at()].disabled = host.disabled_reason.is_some();
        self.update_usable(index);
    }

    /// Removes a host and whatever instances the table still has on it. True if it was known.
    pub fn remove_host(&mut self, name: &str) -> bool {
        let Some(index) = self.find_host(name) else {
            return false;
        };
        while let Some(&slot) = self.hosts[index.at()].instances.last() {
            let id = self.instances[slot].id;
            self.remove_instance(id);
        }
        self.leave_order(index);
        self.host_numbers.remove(name);
        self.trait_sets.release(self.trait_set[index.at()]);
        for columns in &mut self.columns {
            columns.set_inventory(index, None);
        }
        self.follow_classes(index);
        self.usable.clear(index.at());
        self.known.clear(index.at());
        self.free_hosts.push(index);
        true
    }

    /// Says whether a host may get new instances. Decided outside, because it needs a clock. True
    /// if the host is known.
    pub fn set_health(&mut self, name: &str, health: HostHealth) -> bool {
        let Some(index) = self.find_host(name) else {
            return false;
        };
        let row = &mut self.hosts[index.at()];
        (row.disabled, row.down) = match health {
            HostHealth::Up => (false, false),
            HostHealth::Down => (false, true),
            HostHealth::Disabled => (true, row.down),
        };
        self.update_usable(index);
        true
    }

    /// An instance; `None` if it is not there.
    #[must_use]
    pub fn instance(&self, id: ServerId) -> Option<InstanceView<'_>> {
        self.instance_numbers
            .get(&id)
            .map(|slot| self.view(&self.instances[*slot]))
    }

    /// Where an instance is kept.
    pub(crate) fn slot_of(&self, id: ServerId) -> Option<Slot> {
        self.instance_numbers.get(&id).copied()
    }

    /// The instances on a host, by id; none if the host is unknown.
    #[must_use]
    pub fn instances_on(&self, host: &str) -> Vec<InstanceView<'_>> {
        let slots = self.find_host(host).map_or(&[][..], |h| self.slots_on(h));
        let mut views: Vec<_> = slots
            .iter()
            .map(|slot| self.view(&self.instances[*slot]))
            .collect();
        views.sort_by_key(|v| v.id);
        views
    }

    fn new_host(&mut self, host: &Host) -> HostIndex {
        let row = HostRow {
            name: host.name.as_str().into(),
            created_at: host.created_at,
            disabled: false,
            down: false,
            instances: Vec::new(),
        };
        let index = match self.free_hosts.pop() {
            Some(index) => {
                self.hosts[index.at()] = row;
                index
            }
            None => {
                self.hosts.push(row);
                let slots = self.hosts.len();
                self.usable.grow(slots);
                self.known.grow(slots);
                self.rank.resize(slots, 0);
                self.first_rank.resize(slots.div_ceil(BLOCK), u32::MAX);
                self.weights.resize(slots);
                self.phase_table.resize(slots);
                self.compact.iter_mut().for_each(|c| c.resize(slots));
                self.trait_set.resize(slots, 0);
                self.aggregate_set.resize(slots, aggregates::NO_AGGREGATES);
                self.counts.resize(slots);
                self.columns.iter_mut().for_each(|c| c.resize(slots));
                HostIndex::new(slots - 1)
            }
        };
        self.aggregate_set[index.at()] = self.aggregates.set_of(&host.name);
        self.host_numbers.insert(host.name.as_str().into(), index);
        self.known.set(index.at());
        self.enter_order(index);
        index
    }

    fn enter_order(&mut self, index: HostIndex) {
        let key = self.order_key(index);
        let at = self
            .order
            .partition_point(|&other| self.order_key(other) < key);
        self.order.insert(at, index);
        self.rank_from(at);
    }

    fn leave_order(&mut self, index: HostIndex) {
        let key = self.order_key(index);
        let at = self
            .order
            .partition_point(|&other| self.order_key(other) < key);
        if self.order.get(at) == Some(&index) {
            self.order.remove(at);
            self.rank_from(at);
        }
    }

    fn rank_from(&mut self, at: usize) {
        for (place, host) in self.order.iter().enumerate().skip(at) {
            self.rank[host.at()] = index_of(place);
            let first = &mut self.first_rank[host.at() / BLOCK];
            *first = index_of(place).min(*first);
        }
    }

    fn order_key(&self, index: HostIndex) -> (Timestamp, &str) {
        let row = &self.hosts[index.at()];
        (row.created_at, &row.name)
    }

    fn update_usable(&mut self, index: HostIndex) {
        let usable = self.health(index) == HostHealth::Up;
        self.usable.put(index.at(), usable);
    }

    /// What is derived from a host's inventory and usage follows them.
    fn follow_classes(&mut self, index: HostIndex) {
        for (compact, truth) in self.compact.iter_mut().zip(&self.columns) {
            compact.follow(truth, index);
        }
        self.follow_weights(index);
    }

    fn class_index_or_new(&mut self, class: &ResourceClass) -> ClassIndex {
        if let Some(&index) = self.class_numbers.get(class) {
            return index;
        }
        let index = ClassIndex::new(self.classes.len());
        self.classes.push(class.clone());
        self.columns.push(ClassColumns::zeros(self.hosts.len()));
        let mut compact = CompactClass::default();
        compact.resize(self.hosts.len());
        self.compact.push(compact);
        for (place, name) in ["VCPU", "MEMORY_MB", "DISK_GB"].iter().enumerate() {
            if class.as_str() == *name {
                self.weighed[place] = Some(index);
            }
        }
        self.class_numbers.insert(class.clone(), index);
        index
    }

    fn acquire_project(&mut self, project_id: &str) -> u32 {
        self.projects.acquire(project_id.to_owned())
    }

    fn acquire_shape(&mut self, shape: InstanceSize) -> u32 {
        let amounts = shape
            .takes()
            .iter()
            .map(|(class, takes)| Amount {
                class: self.class_index_or_new(class),
                takes: signed(takes),
                retained: signed(shape.retained().get(class)),
            })
            .collect();
        let shape = self.shapes.acquire(shape);
        self.shape_amounts
            .resize(self.shapes.slots(), Amounts::new());
        self.shape_amounts[shape as usize] = amounts;
        shape
    }

    /// What is shown to weighers follows a host's numbers.
    fn follow_weights(&mut self, host: HostIndex) {
        let at = host.at();
        let class = |class: Option<ClassIndex>| class.map(|class| &self.columns[class.at()]);
        let [vcpu, memory, disk] = self.weighed;
        let ram = class(memory).map_or(0, |c| c.unsold(host)) as f64;
        let disk = class(disk).map_or(0, |c| c.unsold(host)) as f64 * 1024.0;
        let vcpus = class(vcpu).map_or(0.0, |c| c.stretched(host, 0));
        let weights = &mut self.weights;
        weights.ram.set(host, ram);
        weights.disk.set(host, disk);
        weights.vcpus.set(host, vcpus);
        weights
            .instances
            .set(host, f64::from(self.counts.instances[at]));
        weights.io_ops.set(host, f64::from(self.counts.io_ops[at]));
        weights
            .preemptible
            .set(host, f64::from(self.counts.preemptible[at]));
    }
}

/// What decisions read.
impl HostTable {
    /// All hosts, in the order of their registration.
    pub(crate) fn order(&self) -> &[HostIndex] {
        &self.order
    }

    pub(crate) fn find_host(&self, name: &str) -> Option<HostIndex> {
        self.host_numbers.get(name).copied()
    }

    pub(crate) fn host_name(&self, host: HostIndex) -> &str {
        &self.hosts[host.at()].name
    }

    pub(crate) fn health(&self, host: HostIndex) -> HostHealth {
        let row = &self.hosts[host.at()];
        match (row.disabled, row.down) {
            (true, _) => HostHealth::Disabled,
            (false, true) => HostHealth::Down,
            (false, false) => HostHealth::Up,
        }
    }

    pub(crate) fn is_usable(&self, host: HostIndex) -> bool {
        self.usable.has(host.at())
    }

    /// One more than the highest host index.
    pub(crate) fn host_slots(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn counts(&self) -> &CountColumns {
        &self.counts
    }

    /// The columns of a class; `None` if no host has it and no instance uses it.
    pub(crate) fn class(&self, class: &ResourceClass) -> Option<&ClassColumns> {
        self.class_numbers
            .get(class)
            .map(|index| &self.columns[index.at()])
    }

    pub(crate) fn class_index(&self, class: &ResourceClass) -> Option<ClassIndex> {
        self.class_numbers.get(class).copied()
    }

    /// The instances on a host, in no particular order.
    pub(crate) fn slots_on(&self, host: HostIndex) -> &[Slot] {
        &self.hosts[host.at()].instances
    }

    pub(crate) fn row(&self, slot: Slot) -> &InstanceRow {
        &self.instances[slot]
    }

    pub(crate) fn view_of(&self, slot: Slot) -> InstanceView<'_> {
        self.view(&self.instances[slot])
    }

    /// What decisions read of a class, by its index.
    pub(crate) fn compact(&self, class: ClassIndex) -> &CompactClass {
        &self.compact[class.at()]
    }

    /// What weighers read.
    pub(crate) fn weights(&self) -> &WeightColumns {
        &self.weights
    }

    /// Launch times of those that could leave.
    pub(crate) fn phase_table(&self) -> &PhaseTable {
        &self.phase_table
    }

    /// The place of a host in the order of registration.
    pub(crate) fn rank(&self, host: HostIndex) -> u32 {
        self.rank[host.at()]
    }

    /// No host of a block has a place before this in the order of registration.
    pub(crate) fn first_rank(&self, block: usize) -> u32 {
        self.first_rank[block]
    }

    /// The hosts that are enabled and up.
    pub(crate) fn usable(&self) -> &HostSet {
        &self.usable
    }

    /// The registered hosts.
    pub(crate) fn known(&self) -> &HostSet {
        &self.known
    }

    /// The preemptible instances on a host that are not leaving, in the order of its phase_table.
    pub(crate) fn candidates_on(&self, host: HostIndex) -> &[Slot] {
        &self.slots_on(host)[..self.counts.preemptible[host.at()] as usize]
    }

    /// The name of a flavor that an instance has.
    pub(crate) fn flavor_name(&self, number: u32) -> &str {
        self.flavors.get(number)
    }

    /// The number of a project; `None` if it has no instance.
    pub(crate) fn find_project(&self, project_id: &str) -> Option<u32> {
        self.projects.find(project_id)
    }

    /// One more than the highest number of a shape.
    pub(crate) fn shape_slots(&self) -> usize {
        self.shapes.slots()
    }

    /// What instances of a shape take and retain.
    pub(crate) fn shape(&self, shape: u32) -> &InstanceSize {
        self.shapes.get(shape)
    }

    /// What the end of an instance of a shape frees of a class; nothing for a number that is not in
    /// use.
    pub(crate) fn shape_frees(&self, shape: usize, class: ClassIndex) -> i32 {
        let amounts = self.shape_amounts.get(shape).into_iter().flatten();
        amounts
            .filter(|amount| amount.class == class)
            .map(change::freed_by)
            .sum()
    }

    pub(crate) fn trait_set(&self, host: HostIndex) -> u32 {
        self.trait_set[host.at()]
    }

    pub(crate) fn traits(&self, set: u32) -> &BTreeSet<Trait> {
        self.trait_sets.get(set)
    }

    /// One more than the highest number of a trait set.
    pub(crate) fn trait_set_slots(&self) -> usize {
        self.trait_sets.slots()
    }
}
