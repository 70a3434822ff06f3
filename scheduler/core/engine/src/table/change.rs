//! Instances come and go.

use super::phase_table::WIDE;
use super::{
    Amount, HostIndex, HostTable, InstanceRow, InstanceSize, Slot, index_of,
    instance::CompactTimestamp,
};
use crate::{EngineError, Instance};
use ebbtide_model::ServerId;

impl HostTable {
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
            project: self.acquire_project(&instance.project_id),
            host,
            shape: self.acquire_shape(InstanceSize::of(instance)),
            flavor: self.flavors.acquire(instance.flavor.clone()),
            ends_at: CompactTimestamp::new(instance.ends_at),
            group: instance.group_id,
            launched_at: CompactTimestamp::new(instance.launched_at),
            protected_until: CompactTimestamp::new(instance.protected_until),
            price_per_hour: instance.price_per_hour,
            max_price: instance.max_price,
            priority: instance.priority,
            preemptible: instance.preemptible,
            phase: instance.phase,
            position: 0,
        };
        let slot = match self.free_instances.pop() {
            Some(slot) => {
                self.instances[slot] = row;
                slot
            }
            None => self.instances.push(row),
        };
        self.instance_numbers.insert(instance.id, slot);
        self.enter(slot);
        self.account(slot, true);
        Ok(())
    }

    /// Removes an instance. True if it was there.
    pub fn remove_instance(&mut self, id: ServerId) -> bool {
        let Some(slot) = self.instance_numbers.remove(&id) else {
            return false;
        };
        self.leave(slot);
        self.account(slot, false);
        let row = &mut self.instances[slot];
        // The slot may stay free for long: what it held on the heap goes now.
        row.name = Box::default();
        let (project, shape, flavor) = (row.project, row.shape, row.flavor);
        self.projects.release(project);
        self.flavors.release(flavor);
        self.shapes.release(shape);
        self.free_instances.push(slot);
        true
    }

    /// Puts an instance into its host's list, before it is counted.
    fn enter(&mut self, slot: Slot) {
        let row = &self.instances[slot];
        let (host, first) = (row.host, row.is_staying_preemptible());
        let (launched, shape) = (row.launched_at.millis(), row.shape);
        let list = &mut self.hosts[host.at()].instances;
        let mut at = list.len();
        list.push(slot);
        if first {
            let boundary = self.counts.preemptible[host.at()] as usize;
            list.swap(boundary, at);
            let other = list[at];
            self.instances[other].position = index_of(at);
            at = boundary;
            self.phase_table.put(host, at, launched, shape);
            for amount in &self.shape_amounts[shape as usize] {
                let largest = &mut self.compact[amount.class.at()].largest;
                let freed = freed_by(amount);
                if freed > largest.get(host.at()) {
                    largest.set(host.at(), freed);
                }
            }
        }
        self.instances[slot].position = index_of(at);
    }

    /// Takes an instance out of its host's list, before it is no longer counted.
    fn leave(&mut self, slot: Slot) {
        let row = &self.instances[slot];
        let (host, first, shape) = (row.host, row.is_staying_preemptible(), row.shape);
        let launched = row.launched_at.millis();
        let mut at = row.position as usize;
        let list = &mut self.hosts[host.at()].instances;
        let mut left = self.counts.preemptible[host.at()] as usize;
        if first {
            left -= 1;
            let moved = list[left];
            list.swap(at, left);
            let row = &mut self.instances[moved];
            row.position = index_of(at);
            self.phase_table
                .put(host, at, row.launched_at.millis(), row.shape);
            at = left;
        }
        list.swap_remove(at);
        if let Some(&moved) = list.get(at) {
            self.instances[moved].position = index_of(at);
        }
        if first {
            let start = host.at() / WIDE * WIDE;
            let others = self.counts.preemptible.iter().enumerate().skip(start);
            let most = others
                .take(WIDE)
                .map(|(other, &n)| {
                    if other == host.at() {
                        index_of(left)
                    } else {
                        n
                    }
                })
                .max();
            self.phase_table.shrink(host, most.unwrap_or(0));
            self.forget(host, left, launched, shape);
        }
    }

    /// What was the largest on a host may be so no longer: the first `left` of its list are those
    /// that could still leave.
    fn forget(&mut self, host: HostIndex, left: usize, launched: Option<i64>, shape: u32) {
        let stay = &self.hosts[host.at()].instances[..left];
        if self.phase_table.is_latest(host, launched) {
            let launched = stay.iter().map(|&slot| {
                self.instances[slot]
                    .launched_at
                    .millis()
                    .unwrap_or(i64::MAX)
            });
            self.phase_table
                .set_latest(host, largest(launched, i64::MAX).unwrap_or(i64::MIN));
        }
        for amount in &self.shape_amounts[shape as usize] {
            let column = &mut self.compact[amount.class.at()].largest;
            let gone = freed_by(amount);
            if column.get(host.at()) == gone {
                let amounts = stay.iter().map(|&slot| {
                    self.shape_amounts[self.instances[slot].shape as usize]
                        .iter()
                        .find(|other| other.class == amount.class)
                        .map_or(0, freed_by)
                });
                column.set(host.at(), largest(amounts, gone).unwrap_or(0));
            }
        }
    }

    /// Adds an instance to every sum, or with `false` takes it out again.
    fn account(&mut self, slot: Slot, present: bool) {
        let row = &self.instances[slot];
        let sign = if present { 1 } else { -1 };
        for amount in &self.shape_amounts[row.shape as usize] {
            let at = amount.class.at();
            self.columns[at].add(row, sign * amount.takes, sign * amount.retained);
            self.compact[at].follow(&self.columns[at], row.host);
        }
        self.counts.add(row, present);
        let (host, group) = (row.host, row.group);
        if let Some(id) = group {
            self.groups.entry(id).or_default().add(row, present);
            self.drop_group_if_empty(id);
        }
        self.follow_weights(host);
    }
}

/// What the end of an instance frees of a class. Amounts are below 2^31.
pub(super) fn freed_by(amount: &Amount) -> i32 {
    i32::try_from(amount.takes - amount.retained).unwrap_or(i32::MAX)
}

/// The largest of some numbers, none of which is above `most`.
fn largest<T: Ord + Copy>(numbers: impl Iterator<Item = T>, most: T) -> Option<T> {
    let mut best = None;
    for number in numbers {
        best = best.max(Some(number));
        if number == most {
            break;
        }
    }
    best
}
