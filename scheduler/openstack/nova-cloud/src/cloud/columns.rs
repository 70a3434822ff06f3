//! What Placement knows of root providers that are compute nodes, as columns by the host's place.

use ebbtide_nova::table::HostSet;
use std::collections::HashMap;
use std::hash::Hash;
use uuid::Uuid;

/// One resource class on one host. Amounts are limited to 32 bits, as in Placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassCell {
    /// Capacity minus all usage.
    pub(crate) free: i32,
    /// Capacity minus the usage of consumers that must not be evicted.
    pub(crate) free_normal: i32,
    pub(crate) min_unit: i32,
    pub(crate) max_unit: i32,
    pub(crate) step_size: i32,
}

/// A host without the class.
const NOTHING: ClassCell = ClassCell {
    free: i32::MIN,
    free_normal: i32::MIN,
    min_unit: 1,
    max_unit: 0,
    step_size: 1,
};

/// Which of the two states a query looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostStateKind {
    /// h_f: all consumers count.
    Full,
    /// h_n: only consumers that must not be evicted count.
    Normal,
}

/// Classes, traits and aggregates by host.
#[derive(Debug, Default)]
pub(crate) struct HostColumns {
    classes: HashMap<String, Vec<ClassCell>>,
    traits: HashMap<String, HostSet>,
    aggregates: HashMap<Uuid, HostSet>,
    /// Hosts whose traits (aggregates) were never read.
    pub(crate) traits_unknown: HostSet,
    pub(crate) aggregates_unknown: HostSet,
    /// Hosts of which only the aggregates that Nova has are known.
    pub(crate) aggregates_partial: HostSet,
    len: usize,
}

impl HostColumns {
    /// Extends the columns to `len` places.
    pub(crate) fn grow(&mut self, len: usize) {
        if len <= self.len {
            return;
        }
        self.len = len;
        self.classes
            .values_mut()
            .for_each(|cells| cells.resize(len, NOTHING));
        let sets = self.traits.values_mut().chain(self.aggregates.values_mut());
        sets.chain([
            &mut self.traits_unknown,
            &mut self.aggregates_unknown,
            &mut self.aggregates_partial,
        ])
        .for_each(|set| set.grow(len));
    }

    /// Sets a host's amounts of all classes.
    pub(crate) fn set_amounts<'a>(
        &mut self,
        at: usize,
        cells: impl Iterator<Item = (&'a str, ClassCell)>,
    ) {
        self.classes
            .values_mut()
            .for_each(|column| column[at] = NOTHING);
        for (class, cell) in cells {
            match self.classes.get_mut(class) {
                Some(column) => column[at] = cell,
                None => {
                    let mut column = vec![NOTHING; self.len];
                    column[at] = cell;
                    self.classes.insert(class.to_owned(), column);
                }
            }
        }
    }

    /// How much of a class consumers hold on a host that can be evicted.
    pub(crate) fn evictable(&self, class: &str, at: usize) -> i64 {
        let cell = self.classes.get(class).and_then(|cells| cells.get(at));
        cell.map_or(0, |cell| i64::from(cell.free_normal) - i64::from(cell.free))
    }

    /// Sets a host's traits; `None`: they were never read.
    pub(crate) fn set_traits<'a>(
        &mut self,
        at: usize,
        traits: Option<impl Iterator<Item = &'a String>>,
    ) {
        self.traits_unknown.put(at, traits.is_none());
        set_members(&mut self.traits, self.len, at, traits.into_iter().flatten());
    }

    /// Sets a host's aggregates; `None`: they were never read.
    pub(crate) fn set_aggregates<'a>(
        &mut self,
        at: usize,
        aggregates: Option<impl Iterator<Item = &'a Uuid>>,
    ) {
        self.aggregates_unknown.put(at, aggregates.is_none());
        set_members(
            &mut self.aggregates,
            self.len,
            at,
            aggregates.into_iter().flatten(),
        );
    }

    /// Removes a host.
    pub(crate) fn clear(&mut self, at: usize) {
        self.set_amounts(at, std::iter::empty());
        self.set_traits(at, Some(std::iter::empty()));
        self.set_aggregates(at, Some(std::iter::empty()));
        self.aggregates_partial.put(at, false);
    }

    /// Keeps the hosts that can give an amount to one consumer.
    pub(crate) fn keep_fitting(
        &self,
        hosts: &mut HostSet,
        class: &str,
        amount: i128,
        which: HostStateKind,
    ) {
        let (Some(column), Ok(amount)) = (self.classes.get(class), i32::try_from(amount)) else {
            *hosts = HostSet::none(self.len);
            return;
        };
        let gone: Vec<usize> = hosts
            .iter()
            .filter(|at| {
                let cell = &column[*at];
                let free = if which == HostStateKind::Full {
                    cell.free
                } else {
                    cell.free_normal
                };
                free < amount
                    || amount < cell.min_unit
                    || amount > cell.max_unit
                    || amount % cell.step_size != 0
            })
            .collect();
        gone.into_iter().for_each(|at| hosts.clear(at));
    }

    /// Why a host cannot give an amount to one consumer, in words; `None` if it can.
    pub(crate) fn why_not(&self, at: usize, class: &str, amount: i128) -> Option<String> {
        let cell = self.classes.get(class).and_then(|column| column.get(at));
        let Some(cell) = cell.filter(|cell| **cell != NOTHING) else {
            return Some(format!("it has no {class}"));
        };
        let ClassCell {
            free,
            min_unit,
            max_unit,
            step_size,
            ..
        } = *cell;
        if i128::from(free) < amount {
            return Some(format!("{class}: needs {amount}, {} free", free.max(0)));
        }
        if amount < i128::from(min_unit) || amount > i128::from(max_unit) {
            return Some(format!(
                "{class}: needs {amount}, one server gets {min_unit} to {max_unit}"
            ));
        }
        (amount % i128::from(step_size.max(1)) != 0)
            .then(|| format!("{class}: needs {amount}, given in steps of {step_size}"))
    }

    /// Whether a host has a trait.
    pub(crate) fn has_trait(&self, at: usize, name: &str) -> bool {
        self.traits.get(name).is_some_and(|set| set.has(at))
    }

    /// Whether any host has a trait.
    pub(crate) fn is_trait_used(&self, name: &str) -> bool {
        self.traits.contains_key(name)
    }

    /// Keeps the hosts that have a trait.
    pub(crate) fn keep_trait(&self, hosts: &mut HostSet, name: &str) {
        match self.traits.get(name) {
            Some(set) => hosts.keep(set),
            None => *hosts = HostSet::none(self.len),
        }
    }

    /// Removes the hosts that have a trait.
    pub(crate) fn drop_trait(&self, hosts: &mut HostSet, name: &str) {
        if let Some(set) = self.traits.get(name) {
            hosts.remove(set);
        }
    }

    /// The hosts in any of the given aggregates. A name that is not a UUID matches no host.
    pub(crate) fn in_any<'a>(&self, uuids: impl Iterator<Item = &'a String>) -> HostSet {
        let mut all = HostSet::none(self.len);
        for set in uuids.filter_map(|uuid| self.aggregates.get(&uuid.parse::<Uuid>().ok()?)) {
            all.join(set);
        }
        all
    }
}

fn set_members<'a, K: Hash + Eq + Clone + 'a>(
    sets: &mut HashMap<K, HostSet>,
    len: usize,
    at: usize,
    members: impl Iterator<Item = &'a K>,
) {
    sets.values_mut().for_each(|set| set.clear(at));
    for member in members {
        let set = sets
            .entry(member.clone())
            .or_insert_with(|| HostSet::none(len));
        set.set(at);
    }
    sets.retain(|_, set| !set.is_empty());
}

/// An amount as cells hold it.
pub(crate) fn narrow(amount: i64) -> i32 {
    i32::try_from(amount).unwrap_or(if amount < 0 { i32::MIN + 1 } else { i32::MAX })
}
