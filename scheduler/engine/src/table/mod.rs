//! The host table: both states of the cloud in one structure.
//!
//! For each host and resource class it keeps the capacity, what normal instances use, what preemptible ones use, and what
//! preemptible ones use that are leaving. What a preemptible instance retains when it is evacuated counts as normal: no
//! eviction frees it. The full state h_f and the normal state h_n are subtractions, and every change is
//! O(1) for each class that it touches. It is laid out in columns, so that a filter reads only what it needs.
//!
//! Invariants, all checked by [`HostTable::check_consistency`]:
//! - Columns equal what the instances add up to.
//! - A host keeps its index while it is registered; indices of removed hosts are given out again.
//! - Hosts are in the order of their registration: `created_at`, then name. That is a property of the hosts and not of the
//!   calls, so a table that is loaded from a database after a restart has the same order.
//! - Nothing that is shown or decided depends on hash order or on the order in which instances were put.

mod aggregates;
mod check;
mod columns;
mod groups;
mod instance;
mod intern;
mod usage;

pub use instance::{Instance, InstanceView, Phase};
pub use usage::{ClassTotals, ClassUsage, HostUsage, HostView};

pub(crate) use aggregates::Aggregates;
pub(crate) use columns::{ClassColumns, CountColumns};
pub(crate) use groups::MemberCount;
pub(crate) use instance::{InstanceRow, Shape};

use crate::EngineError;
use ebbtide_model::{GroupId, Host, HostHealth, ResourceClass, ServerId, Timestamp, Trait};
use groups::GroupEntry;
use intern::Interner;
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl $name {
            /// From a place in a column.
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

/// A place as a 32-bit number. Four thousand million rows do not fit into memory, so the end is never reached.
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
    /// In no particular order: sorted where order can be seen.
    instances: Vec<Slot>,
}

/// All hosts and instances of a region.
#[derive(Debug, Clone, Default)]
pub struct HostTable {
    host_numbers: HashMap<Box<str>, HostIndex>,
    hosts: Vec<HostRow>,
    free_hosts: Vec<HostIndex>,
    order: Vec<HostIndex>,
    /// Enabled and up.
    usable: Vec<bool>,
    trait_set: Vec<u32>,
    aggregate_set: Vec<u32>,
    counts: CountColumns,
    class_numbers: HashMap<ResourceClass, ClassIndex>,
    classes: Vec<ResourceClass>,
    columns: Vec<ClassColumns>,
    instance_numbers: HashMap<ServerId, Slot>,
    instances: Vec<InstanceRow>,
    free_instances: Vec<Slot>,
    projects: Interner<String>,
    shapes: Interner<Shape>,
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

    /// Inserts a host, or updates its inventory, traits, and whether it is disabled. A new host is up: its registration is
    /// a sign of life. Instances on it stay as they are, even if they no longer fit.
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
        self.hosts[index.at()].disabled = host.disabled_reason.is_some();
        self.update_usable(index);
    }

    /// Removes a host and whatever instances the table still has on it. True if it was known.
    pub fn remove_host(&mut self, name: &str) -> bool {
        let Some(index) = self.find_host(name) else {
            return false;
        };
        while let Some(&slot) = self.hosts[index.at()].instances.last() {
            let id = self.instances[slot.at()].id;
            self.remove_instance(id);
        }
        self.leave_order(index);
        self.host_numbers.remove(name);
        self.trait_sets.release(self.trait_set[index.at()]);
        for columns in &mut self.columns {
            columns.set_inventory(index, None);
        }
        self.usable[index.at()] = false;
        self.free_hosts.push(index);
        true
    }

    /// Says whether a host may get new instances. Decided outside, because it needs a clock. True if the host is known.
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

    /// Inserts an instance, or replaces it: its host may be another one than before.
    ///
    /// # Errors
    /// [`EngineError::UnknownHost`]; the table is then as it was.
    pub fn put_instance(&mut self, instance: &Instance) -> Result<(), EngineError> {
        let Some(host) = self.find_host(&instance.host) else {
            return Err(EngineError::UnknownHost {
                instance: instance.id,
                host: instance.host.clone(),
            });
        };
        self.remove_instance(instance.id);
        let row = InstanceRow {
            id: instance.id,
            name: instance.name.as_str().into(),
            project: self.projects.acquire(instance.project_id.clone()),
            host,
            shape: self.acquire_shape(Shape::of(instance)),
            group: instance.group_id,
            launched_at: instance.launched_at,
            protected_until: instance.protected_until,
            price_per_hour: instance.price_per_hour,
            priority: instance.priority,
            preemptible: instance.preemptible,
            phase: instance.phase,
            position: index_of(self.hosts[host.at()].instances.len()),
        };
        self.account(&row, true);
        let slot = match self.free_instances.pop() {
            Some(slot) => {
                self.instances[slot.at()] = row;
                slot
            }
            None => {
                self.instances.push(row);
                Slot::new(self.instances.len() - 1)
            }
        };
        self.hosts[host.at()].instances.push(slot);
        self.instance_numbers.insert(instance.id, slot);
        Ok(())
    }

    /// Removes an instance. True if it was there.
    pub fn remove_instance(&mut self, id: ServerId) -> bool {
        let Some(slot) = self.instance_numbers.remove(&id) else {
            return false;
        };
        let mut row = self.instances[slot.at()].clone();
        self.account(&row, false);
        self.projects.release(row.project);
        self.shapes.release(row.shape);
        let list = &mut self.hosts[row.host.at()].instances;
        let position = row.position as usize;
        list.swap_remove(position);
        if let Some(&moved) = list.get(position) {
            self.instances[moved.at()].position = row.position;
        }
        // The slot may stay free for long: what it held on the heap goes now.
        row.name = Box::default();
        self.instances[slot.at()] = row;
        self.free_instances.push(slot);
        true
    }

    /// An instance; `None` if it is not there.
    #[must_use]
    pub fn instance(&self, id: ServerId) -> Option<InstanceView<'_>> {
        self.instance_numbers
            .get(&id)
            .map(|slot| self.view(&self.instances[slot.at()]))
    }

    /// The instances on a host, by id; none if the host is unknown.
    #[must_use]
    pub fn instances_on(&self, host: &str) -> Vec<InstanceView<'_>> {
        let slots = self.find_host(host).map_or(&[][..], |h| self.slots_on(h));
        let mut views: Vec<_> = slots
            .iter()
            .map(|slot| self.view(&self.instances[slot.at()]))
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
                self.usable.resize(slots, false);
                self.trait_set.resize(slots, 0);
                self.aggregate_set.resize(slots, aggregates::NO_AGGREGATES);
                self.counts.resize(slots);
                self.columns.iter_mut().for_each(|c| c.resize(slots));
                HostIndex::new(slots - 1)
            }
        };
        self.aggregate_set[index.at()] = self.aggregates.set_of(&host.name);
        self.host_numbers.insert(host.name.as_str().into(), index);
        self.enter_order(index);
        index
    }

    fn enter_order(&mut self, index: HostIndex) {
        let key = self.order_key(index);
        let at = self
            .order
            .partition_point(|&other| self.order_key(other) < key);
        self.order.insert(at, index);
    }

    fn leave_order(&mut self, index: HostIndex) {
        let key = self.order_key(index);
        let at = self
            .order
            .partition_point(|&other| self.order_key(other) < key);
        if self.order.get(at) == Some(&index) {
            self.order.remove(at);
        }
    }

    fn order_key(&self, index: HostIndex) -> (Timestamp, &str) {
        let row = &self.hosts[index.at()];
        (row.created_at, &row.name)
    }

    fn update_usable(&mut self, index: HostIndex) {
        self.usable[index.at()] = self.health(index) == HostHealth::Up;
    }

    fn class_index_or_new(&mut self, class: &ResourceClass) -> ClassIndex {
        if let Some(&index) = self.class_numbers.get(class) {
            return index;
        }
        let index = ClassIndex::new(self.classes.len());
        self.classes.push(class.clone());
        self.columns.push(ClassColumns::zeros(self.hosts.len()));
        self.class_numbers.insert(class.clone(), index);
        index
    }

    fn acquire_shape(&mut self, shape: Shape) -> u32 {
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

    /// Adds an instance to every sum, or with `false` takes it out again.
    fn account(&mut self, row: &InstanceRow, present: bool) {
        let sign = if present { 1 } else { -1 };
        for amount in &self.shape_amounts[row.shape as usize] {
            let column = &mut self.columns[amount.class.at()];
            column.add(row, sign * amount.takes, sign * amount.retained);
        }
        self.counts.add(row, present);
        self.count_member(row, present);
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
        self.usable[host.at()]
    }

    /// One more than the highest host index.
    pub(crate) fn host_slots(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn counts(&self) -> &CountColumns {
        &self.counts
    }

    /// The columns of a class; `None` if no host has it and nobody uses it.
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
        &self.instances[slot.at()]
    }

    pub(crate) fn view_of(&self, slot: Slot) -> InstanceView<'_> {
        self.view(&self.instances[slot.at()])
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
    pub(crate) fn shape(&self, shape: u32) -> &Shape {
        self.shapes.get(shape)
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
