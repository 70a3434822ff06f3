//! Host aggregates. Hosts in the same aggregates share one *aggregate set*, so whatever depends on
//! metadata (zone, extra specs, multipliers) is worked out once a set and not once a host.

use super::{HostIndex, HostTable, index_of};
use ebbtide_model::{Aggregate, aggregate::DEFAULT_ZONE};
use std::collections::{BTreeMap, HashMap};

/// The number of the set of hosts that are in no aggregate.
pub(super) const NO_AGGREGATES: u32 = 0;

/// All aggregates, and which host is in which.
#[derive(Debug, Clone)]
pub(crate) struct Aggregates {
    all: Vec<Aggregate>,
    /// Sets of positions in `all`; the first is the empty set.
    sets: Vec<Vec<u32>>,
    /// Host name to set; hosts that are not in it are in no aggregate. A host may be named before
    /// it registers.
    of_host: HashMap<String, u32>,
}

impl Default for Aggregates {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            sets: vec![Vec::new()],
            of_host: HashMap::new(),
        }
    }
}

impl Aggregates {
    /// Works the sets out anew.
    fn new(aggregates: &[Aggregate]) -> Self {
        let mut of_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (position, aggregate) in aggregates.iter().enumerate() {
            for host in &aggregate.hosts {
                of_name.entry(host).or_default().push(index_of(position));
            }
        }
        let mut known = Self {
            all: aggregates.to_vec(),
            ..Self::default()
        };
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        for (host, set) in of_name {
            let number = *numbers.entry(set).or_insert_with_key(|set| {
                known.sets.push(set.clone());
                index_of(known.sets.len() - 1)
            });
            known.of_host.insert(host.to_owned(), number);
        }
        known
    }

    pub(super) fn set_of(&self, host: &str) -> u32 {
        self.of_host.get(host).copied().unwrap_or(NO_AGGREGATES)
    }

    pub(crate) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// The aggregates of a set.
    pub(crate) fn in_set(&self, set: u32) -> impl Iterator<Item = &Aggregate> {
        self.sets[set as usize]
            .iter()
            .map(|&position| &self.all[position as usize])
    }

    /// The availability zones of a set; the default zone if it has none.
    pub(crate) fn zones(&self, set: u32) -> Vec<&str> {
        let zones: Vec<&str> = self
            .in_set(set)
            .filter_map(Aggregate::availability_zone)
            .collect();
        if zones.is_empty() {
            vec![DEFAULT_ZONE]
        } else {
            zones
        }
    }
}

impl HostTable {
    /// Replaces all aggregates. They may name hosts that are not registered yet.
    pub fn set_aggregates(&mut self, aggregates: &[Aggregate]) {
        self.aggregates = Aggregates::new(aggregates);
        for position in 0..self.order.len() {
            let host = self.order[position];
            self.aggregate_set[host.at()] = self.aggregates.set_of(self.host_name(host));
        }
    }

    /// All aggregates, as they were given.
    #[must_use]
    pub fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates.all
    }

    /// All aggregates, by set.
    pub(crate) fn aggregate_sets(&self) -> &Aggregates {
        &self.aggregates
    }

    /// The aggregate set of a host.
    pub(crate) fn aggregate_set(&self, host: HostIndex) -> u32 {
        self.aggregate_set[host.at()]
    }
}
