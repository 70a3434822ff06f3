//! The table as this request has changed it so far.
//!
//! A request for several instances places them one after another; each sees the places and victims
//! of those before it. These changes are kept beside the table, which does not change during a
//! decision. Before the first instance is placed they are empty, and reading the table through them
//! costs one comparison.

use crate::checked_request::{CheckedRequest, ResourceDemand};
use crate::table::{HostIndex, InstanceRow, MemberCount, Slot};
use crate::{Budgets, HostTable};
use ebbtide_model::{GroupId, Timestamp};
use ebbtide_solver::NO_BUDGET;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// What this request has done to one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlacedInstances {
    /// Instances of the request that were placed here.
    pub(crate) placed: i64,
    /// Instances that have to leave for them.
    pub(crate) victims: Vec<Slot>,
    /// What the victims give back, by position of the need.
    freed: SmallVec<[i64; 4]>,
}

/// Table, request, and what was done so far.
#[derive(Debug)]
pub(crate) struct DecisionState<'a> {
    pub(crate) table: &'a HostTable,
    pub(crate) ask: &'a CheckedRequest<'a>,
    pub(crate) now: Timestamp,
    pending: BTreeMap<HostIndex, PlacedInstances>,
    taken: BTreeSet<Slot>,
    limits: Limits,
}

/// The disruption budgets that are left, numbered as the victim search wants them.
#[derive(Debug, Clone, Default)]
struct Limits {
    remaining: Vec<u32>,
    of_project: BTreeMap<u32, u32>,
    of_group: BTreeMap<GroupId, u32>,
}

impl Limits {
    fn new(table: &HostTable, budgets: &Budgets) -> Self {
        let mut limits = Self::default();
        for (project, remaining) in budgets.projects() {
            // The budget of a project without instances limits nothing.
            if let Some(number) = table.find_project(project) {
                limits.of_project.insert(number, limits.next_key());
                limits.remaining.push(remaining);
            }
        }
        for (group, remaining) in budgets.groups() {
            limits.of_group.insert(group, limits.next_key());
            limits.remaining.push(remaining);
        }
        limits
    }

    fn next_key(&self) -> u32 {
        u32::try_from(self.remaining.len()).unwrap_or(NO_BUDGET)
    }

    /// The budgets that the loss of an instance counts against.
    fn keys(&self, row: &InstanceRow) -> [u32; 2] {
        let project = self.of_project.get(&row.project);
        let group = row.group.and_then(|id| self.of_group.get(&id));
        [
            project.copied().unwrap_or(NO_BUDGET),
            group.copied().unwrap_or(NO_BUDGET),
        ]
    }
}

impl<'a> DecisionState<'a> {
    pub(crate) fn new(
        table: &'a HostTable,
        ask: &'a CheckedRequest<'a>,
        budgets: &Budgets,
        now: Timestamp,
    ) -> Self {
        Self {
            table,
            ask,
            now,
            pending: BTreeMap::new(),
            taken: BTreeSet::new(),
            limits: Limits::new(table, budgets),
        }
    }

    /// Places `count` instances on a host, for which `victims` have to leave.
    pub(crate) fn place(&mut self, host: HostIndex, count: i64, victims: &[Slot]) {
        let pending = self.pending.entry(host).or_default();
        pending.placed += count;
        self.add_victims(host, victims);
    }

    /// Puts other victims into the place of those that were chosen on a host.
    pub(crate) fn replace_victims(&mut self, host: HostIndex, victims: &[Slot]) {
        self.drop_victims(host);
        self.add_victims(host, victims);
    }

    /// Takes all victims on a host back, with what they count against budgets.
    pub(crate) fn drop_victims(&mut self, host: HostIndex) {
        let Some(pending) = self.pending.get_mut(&host) else {
            return;
        };
        pending.freed.clear();
        for slot in std::mem::take(&mut pending.victims) {
            self.taken.remove(&slot);
            for key in self.limits.keys(self.table.row(slot)) {
                if let Some(remaining) = self.limits.remaining.get_mut(key as usize) {
                    *remaining = remaining.saturating_add(1);
                }
            }
        }
    }

    fn add_victims(&mut self, host: HostIndex, victims: &[Slot]) {
        let pending = self.pending.entry(host).or_default();
        pending.freed.resize(self.ask.needs.len(), 0);
        for &slot in victims {
            let row = self.table.row(slot);
            let shape = self.table.shape(row.shape);
            for (freed, need) in pending.freed.iter_mut().zip(&self.ask.needs) {
                *freed += shape.freed(need.class);
            }
            for key in self.limits.keys(row) {
                if let Some(remaining) = self.limits.remaining.get_mut(key as usize) {
                    *remaining = remaining.saturating_sub(1);
                }
            }
            pending.victims.push(slot);
            self.taken.insert(slot);
        }
    }

    /// What was done to a host; `None` if nothing.
    pub(crate) fn pending(&self, host: HostIndex) -> Option<&PlacedInstances> {
        if self.pending.is_empty() {
            None
        } else {
            self.pending.get(&host)
        }
    }

    /// The hosts that something was done to.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (HostIndex, &PlacedInstances)> {
        self.pending.iter().map(|(&host, pending)| (host, pending))
    }

    /// How many changes the request has made: two states of it with the same number are the same.
    pub(crate) fn changes(&self) -> usize {
        let each = self.pending.values();
        each.map(|p| usize::try_from(p.placed).unwrap_or(0) + p.victims.len())
            .sum()
    }

    /// How many instances of the request were placed on a host.
    pub(crate) fn placed_on(&self, host: HostIndex) -> i64 {
        self.pending(host).map_or(0, |p| p.placed)
    }

    /// Free in h_n.
    pub(crate) fn free_normal(&self, host: HostIndex, need: &ResourceDemand<'_>) -> i64 {
        let placed = if self.ask.preemptible() {
            0
        } else {
            self.placed_on(host)
        };
        need.columns.map_or(0, |c| c.free_normal(host)) - placed * need.amount
    }

    /// Free in h_f. A victim still takes its room.
    pub(crate) fn free_full(&self, host: HostIndex, need: &ResourceDemand<'_>) -> i64 {
        need.columns.map_or(0, |c| c.free_full(host)) - self.placed_on(host) * need.amount
    }

    /// Free capacity once all instances that are leaving are gone. `position` is that of the need.
    pub(crate) fn free_future(
        &self,
        host: HostIndex,
        position: usize,
        need: &ResourceDemand<'_>,
    ) -> i64 {
        let free = need.columns.map_or(0, |c| c.free_future(host));
        match self.pending(host) {
            None => free,
            Some(p) => free - p.placed * need.amount + p.freed.get(position).copied().unwrap_or(0),
        }
    }

    /// What is missing for `count` more instances once all instances that are leaving are gone, by
    /// position of the need. Zero or below: nothing is missing.
    pub(crate) fn deficit(&self, host: HostIndex, count: i64) -> SmallVec<[i64; 4]> {
        let missing = |(position, need): (usize, &ResourceDemand<'_>)| {
            count * need.amount - self.free_future(host, position, need)
        };
        self.ask.needs.iter().enumerate().map(missing).collect()
    }

    /// Members of the request's group on a host, those that were just placed included.
    pub(crate) fn members_on(&self, host: HostIndex) -> MemberCount {
        let Some(group) = self.ask.group else {
            return MemberCount::default();
        };
        let there = self
            .table
            .members(group.id)
            .and_then(|m| m.get(&host))
            .copied();
        let mut count = there.unwrap_or_default();
        if let Some(pending) = self.pending(host) {
            let own = |slot: &&Slot| self.table.row(**slot).group == Some(group.id);
            let leaving = u32::try_from(pending.victims.iter().filter(own).count());
            let leaving = leaving.unwrap_or(u32::MAX);
            count.staying = count.staying.saturating_sub(leaving);
            count.leaving = count.leaving.saturating_add(leaving);
            let placed = u32::try_from(pending.placed).unwrap_or(u32::MAX);
            count.staying = count.staying.saturating_add(placed);
        }
        count
    }

    /// True if an instance is a victim of this request already.
    pub(crate) fn is_taken(&self, slot: Slot) -> bool {
        !self.taken.is_empty() && self.taken.contains(&slot)
    }

    /// True if no budget can bind.
    pub(crate) fn unlimited(&self) -> bool {
        self.limits.remaining.is_empty()
    }

    /// What is left of each budget.
    pub(crate) fn limits(&self) -> &[u32] {
        &self.limits.remaining
    }

    /// The budgets that the loss of an instance counts against.
    pub(crate) fn budget_keys(&self, row: &InstanceRow) -> [u32; 2] {
        self.limits.keys(row)
    }
}
