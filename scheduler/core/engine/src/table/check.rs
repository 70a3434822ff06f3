//! The slow truth: everything is added up again from the instances and compared with what was kept
//! incrementally.

use super::change::freed_by;
use super::groups::GroupEntry;
use super::{ClassColumns, CountColumns, HostIndex, HostTable, InstancePhase, index_of, signed};
use std::collections::{BTreeMap, HashMap};

impl HostTable {
    /// Recomputes every sum and compares. For tests, and for a service that wants to be sure after
    /// a restart.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check_consistency(&self) -> Result<(), String> {
        self.check_hosts()?;
        self.check_instances()?;
        self.check_sums()?;
        self.check_derived()?;
        self.check_interned()
    }

    fn check_hosts(&self) -> Result<(), String> {
        let sorted = self
            .order
            .windows(2)
            .all(|w| self.order_key(w[0]) < self.order_key(w[1]));
        if !sorted {
            return Err("hosts are not in the order of their registration".to_owned());
        }
        if self.order.len() != self.host_numbers.len()
            || self.order.len() + self.free_hosts.len() != self.hosts.len()
        {
            return Err("host slots do not add up".to_owned());
        }
        for &host in &self.order {
            let name = self.host_name(host);
            if self.find_host(name) != Some(host) {
                return Err(format!("host {name} is not found under its name"));
            }
            if self.aggregate_set(host) != self.aggregates.set_of(name) {
                return Err(format!(
                    "host {name} is in another aggregate set than it should be"
                ));
            }
            if self.is_usable(host) != (self.health(host) == ebbtide_model::HostHealth::Up) {
                return Err(format!("host {name} has a stale health"));
            }
        }
        Ok(())
    }

    fn check_instances(&self) -> Result<(), String> {
        if self.instance_numbers.len() + self.free_instances.len() != self.instances.len() {
            return Err("instance slots do not add up".to_owned());
        }
        let mut seen = 0;
        for (at, host) in self.hosts.iter().enumerate() {
            let many = self.counts.preemptible[at] as usize;
            for (position, &slot) in host.instances.iter().enumerate() {
                let row = self.row(slot);
                let at_home = row.host == HostIndex::new(at)
                    && row.position == index_of(position)
                    && row.is_staying_preemptible() == (position < many);
                if !at_home || self.instance_numbers.get(&row.id) != Some(&slot) {
                    return Err(format!("instance {} is not where it says", row.id));
                }
                seen += 1;
            }
        }
        if seen == self.instance_numbers.len() {
            Ok(())
        } else {
            Err(format!(
                "{seen} instances on hosts, {} known",
                self.instance_numbers.len()
            ))
        }
    }

    fn check_sums(&self) -> Result<(), String> {
        let mut counts = CountColumns::default();
        counts.resize(self.hosts.len());
        let mut columns: Vec<ClassColumns> = self
            .columns
            .iter()
            .map(|_| ClassColumns::zeros(self.hosts.len()))
            .collect();
        let mut groups: HashMap<_, GroupEntry> = HashMap::new();
        for slot in self.instance_numbers.values() {
            let row = self.row(*slot);
            counts.add(row, true);
            let shape = self.shapes.get(row.shape);
            if shape.retained().at_most(shape.takes()) != *shape.retained() {
                return Err(format!("instance {} retains what it does not take", row.id));
            }
            for (class, takes) in shape.takes().iter() {
                let index = self
                    .class_index(class)
                    .ok_or_else(|| format!("class {class} is used and unknown"))?;
                let retained = shape.retained().get(class);
                columns[index.at()].add(row, signed(takes), signed(retained));
            }
            if let Some(group) = row.group.filter(|_| row.phase != InstancePhase::Retained) {
                groups.entry(group).or_default().add(row, true);
            }
        }
        if counts != self.counts {
            return Err("the numbers of instances differ from the instances".to_owned());
        }
        for ((kept, mut fresh), class) in self.columns.iter().zip(columns).zip(&self.classes) {
            // Inventories do not come from the instances.
            fresh.capacity.clone_from(&kept.capacity);
            fresh.total.clone_from(&kept.total);
            fresh.reserved.clone_from(&kept.reserved);
            fresh.ratio.clone_from(&kept.ratio);
            if *kept != fresh {
                return Err(format!("the sums of {class} differ from the instances"));
            }
        }
        for (id, kept) in &self.groups {
            let fresh = groups.remove(id).unwrap_or_default();
            if kept.members != fresh.members {
                return Err(format!(
                    "the members of server group {id} differ from the instances"
                ));
            }
        }
        if groups.is_empty() {
            Ok(())
        } else {
            Err("a server group with members is lost".to_owned())
        }
    }

    fn check_derived(&self) -> Result<(), String> {
        for (place, &host) in self.order.iter().enumerate() {
            if self.rank(host) != index_of(place) {
                return Err(format!("host {} has another rank", self.host_name(host)));
            }
        }
        let mut fresh = self.compact.clone();
        let mut weights = self.clone();
        for (at, _) in self.hosts.iter().enumerate() {
            let host = HostIndex::new(at);
            for (compact, truth) in fresh.iter_mut().zip(&self.columns) {
                compact.follow(truth, host);
            }
            weights.follow_weights(host);
            self.check_phases(host)?;
        }
        if fresh != self.compact || fresh.iter().any(|class| !class.is_consistent()) {
            return Err("the compact columns differ from the long ones".to_owned());
        }
        if format!("{:?}", weights.weights) != format!("{:?}", self.weights) {
            return Err("the weighers' columns differ from the long ones".to_owned());
        }
        Ok(())
    }

    fn check_phases(&self, host: HostIndex) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what} of host {} is stale", self.host_name(host)));
        let candidates = self.candidates_on(host);
        let mut latest = i64::MIN;
        let phases = self.phase_table.of_host(host, index_of(candidates.len()));
        let phases: Vec<(u16, u16)> = phases.collect();
        if phases.len() != candidates.len() {
            return wrong("the number of phases");
        }
        for (&slot, &(phase, shape)) in candidates.iter().zip(&phases) {
            let row = self.row(slot);
            let launched = row.launched_at.millis();
            latest = latest.max(launched.unwrap_or(i64::MAX));
            let same = launched.is_none_or(|millis| self.phase_table.phase_of(millis) == phase);
            if !same || u32::from(shape) != row.shape {
                return wrong("a lane");
            }
        }
        if !self.phase_table.is_latest(host, Some(latest)) {
            return wrong("the latest launch");
        }
        for (class, compact) in self.compact.iter().enumerate() {
            let amounts = candidates.iter().flat_map(|&slot| {
                let amounts = &self.shape_amounts[self.row(slot).shape as usize];
                amounts.iter().filter(|amount| amount.class.at() == class)
            });
            let largest = amounts.map(freed_by).max().unwrap_or(0);
            if compact.largest.get(host.at()) != largest {
                return wrong("the largest preemptible instance");
            }
        }
        Ok(())
    }

    fn check_interned(&self) -> Result<(), String> {
        let mut projects: BTreeMap<u32, u32> = BTreeMap::new();
        let mut shapes: BTreeMap<u32, u32> = BTreeMap::new();
        let mut flavors: BTreeMap<u32, u32> = BTreeMap::new();
        for slot in self.instance_numbers.values() {
            let row = self.row(*slot);
            *projects.entry(row.project).or_default() += 1;
            *shapes.entry(row.shape).or_default() += 1;
            *flavors.entry(row.flavor).or_default() += 1;
        }
        let mut traits: BTreeMap<u32, u32> = BTreeMap::new();
        for &host in &self.order {
            *traits.entry(self.trait_set(host)).or_default() += 1;
        }
        let counted = (0..index_of(self.projects.slots()))
            .all(|n| self.projects.count(n) == projects.get(&n).copied().unwrap_or(0))
            && (0..index_of(self.shapes.slots()))
                .all(|n| self.shapes.count(n) == shapes.get(&n).copied().unwrap_or(0))
            && (0..index_of(self.flavors.slots()))
                .all(|n| self.flavors.count(n) == flavors.get(&n).copied().unwrap_or(0))
            && (0..index_of(self.trait_sets.slots()))
                .all(|n| self.trait_sets.count(n) == traits.get(&n).copied().unwrap_or(0));
        if counted {
            Ok(())
        } else {
            Err("interned values are miscounted".to_owned())
        }
    }
}
