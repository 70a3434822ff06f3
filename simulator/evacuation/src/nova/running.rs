//! What physically runs, whatever Placement shows.

use super::placement::amounts;
use super::world::NovaWorld;
use crate::Mutation;
use ebbtide_preemption::Preemption;
use uuid::Uuid;

impl NovaWorld {
    /// VCPUs of a host in which victims of open preemptions still run, and which Placement shows as
    /// free: what the victims had, less what they and the newcomers hold. Schedulers know it from
    /// the ledger, whose rows are older than anything that a deleted newcomer leaves behind.
    pub(super) fn unseen(&self, host: usize) -> u64 {
        if self.breaks(Mutation::RunningNotCounted) {
            return 0;
        }
        let rows = self.ledger.rows.values();
        rows.map(|row| self.unseen_of(host, &row.record)).sum()
    }

    fn unseen_of(&self, host: usize, record: &Preemption) -> u64 {
        let on_host = |(at, vcpus): (usize, u64)| (at == host).then_some(vcpus);
        let held = |id: Uuid| {
            let held = self.placement.consumers.get(&id);
            held.and_then(|h| on_host((h.host, h.vcpus))).unwrap_or(0)
        };
        // One that its owner has deleted runs no more, whatever its record knows.
        let survivors = record.survivors();
        let ran: u64 = survivors
            .filter(|v| self.instances.contains_key(&v.server.0))
            .filter_map(|v| amounts(&v.had).and_then(on_host))
            .sum();
        let kept: u64 = record.survivors().map(|v| held(v.server.0)).sum();
        let claimed: u64 = record.newcomers.iter().map(|n| held(n.instance)).sum();
        ran.saturating_sub(kept).saturating_sub(claimed)
    }

    /// What is free on a host in truth.
    pub(super) fn free(&self, host: usize) -> u64 {
        u64::try_from(self.balance(host)).unwrap_or(0)
    }

    /// The same; below zero where more runs than there is room for.
    pub(super) fn balance(&self, host: usize) -> i64 {
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let capacity = self.placement.capacity.get(host).copied().unwrap_or(0);
        signed(capacity) - signed(self.placement.used(host)) - signed(self.unseen(host))
    }

    /// Whether a host of a record's newcomers has more on it than it has room for.
    pub(super) fn is_overfull(&self, record: &Preemption) -> bool {
        let hosts = record.newcomers.iter().filter_map(|n| amounts(&n.claim));
        let mut hosts = hosts.map(|(host, _)| host);
        hosts.any(|host| self.balance(host) < 0)
    }

    /// Whether everything was deleted that a record makes room for.
    pub(super) fn are_newcomers_deleted(&self, who: usize, id: Uuid) -> bool {
        let Some(driven) = self.schedulers[who].driven.get(&id) else {
            return false;
        };
        let newcomers = &driven.record.newcomers;
        !newcomers.is_empty()
            && newcomers.iter().all(|newcomer| {
                let request = self.of.get(&newcomer.instance);
                request.is_some_and(|n| self.requests[*n].deleted)
            })
    }
}
