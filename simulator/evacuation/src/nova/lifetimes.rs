//! Maximum lifetimes: every scheduler looks, and the ledger decides which one begins.

use super::drive::ActivePreemption;
use super::ledger::LedgerWrite;
use super::plan::grace_of;
use super::world::NovaWorld;
use crate::violation::Invariant;
use ebbtide_evacuation::notice_at;
use ebbtide_model::{EvacuationCause, Seconds};
use ebbtide_preemption::{Preemption, Victim};
use std::collections::VecDeque;
use uuid::Uuid;

/// How much the clock of a scheduler may be ahead: a notice comes that much early.
const SKEW_MILLIS: i64 = 2000;
/// A life that is over for so long, without faults, has no end.
const OVERDUE: Seconds = Seconds(300);

impl NovaWorld {
    /// How long a preemptible instance may live: longer than its grace period.
    pub(super) fn lifetime_of(&self, instance: Uuid, spot: bool) -> Option<Seconds> {
        let limited = self.has_lifetimes && spot && !instance.as_u128().is_multiple_of(3);
        limited
            .then(|| Seconds(grace_of(instance).0 + [20, 45, 70][instance.as_u128() as usize % 3]))
    }

    /// Begins the evacuation of every instance whose notice is due, as this scheduler sees it.
    pub(super) fn end_lifetimes(&mut self, who: usize) {
        if !self.has_lifetimes || !self.schedulers[who].works() {
            return;
        }
        let now = self.clock(who);
        let due: Vec<(Uuid, usize)> = self
            .instances
            .iter()
            .filter(|(id, _)| !self.schedulers[who].leaving.contains(id))
            .filter_map(|(id, instance)| {
                let at = notice_at(instance.since, instance.lifetime?, grace_of(*id));
                (at <= now).then_some((*id, instance.host))
            })
            .collect();
        for (server, host) in due {
            if self.broken.is_some() || !self.schedulers[who].works() {
                return;
            }
            self.end_lifetime(who, server, host);
        }
    }

    fn end_lifetime(&mut self, who: usize, server: Uuid, host: usize) {
        let id = self.new_id();
        let Some(since) = self.instances.get(&server).map(|instance| instance.since) else {
            return;
        };
        // A victim of a preemption whose row this scheduler has not seen yet may hold nothing.
        let Some(victim) = self.victim(server, host) else {
            return;
        };
        let cause = EvacuationCause::MaxLifetime;
        let record = Preemption::without_newcomers(id, cause, victim, since, self.clock(who));
        if self.end_alone(who, record) {
            let name = self.schedulers[who].name.clone();
            self.log(|s| format!("{name}: the lifetime of {} is over", s.of(server)));
        }
    }

    /// Writes a record without newcomers into the ledger and drives it. False if it is not there,
    /// or not known to be.
    pub(super) fn end_alone(&mut self, who: usize, record: Preemption) -> bool {
        let id = record.id;
        let victims = record.victims.iter().map(|victim| victim.server.0);
        self.schedulers[who].leaving.extend(victims);
        let written = self.ledger.insert(self.schedulers[who].owner(), &record);
        self.note_lost_answer(&record, &record);
        match written {
            LedgerWrite::Updated(_) => {
                let driven = ActivePreemption {
                    version: 1,
                    record,
                    caller: None,
                    adopted_at: None,
                    doubtful: false,
                    pending: VecDeque::new(),
                    unwritten: false,
                };
                self.schedulers[who].driven.insert(id, driven);
                true
            }
            // A row whose answer was lost is adopted; otherwise it is tried again after the next
            // look at the ledger.
            LedgerWrite::Away => {
                self.schedulers[who].rests = true;
                false
            }
            _ => false,
        }
    }

    /// A notice without a newcomer goes only to an instance that has lived as long as it may.
    pub(super) fn check_age(&mut self, victim: &Victim) {
        let Some(instance) = self.instances.get(&victim.server.0) else {
            return;
        };
        let age = self.now.millis_since(instance.since) + SKEW_MILLIS;
        let least = instance.lifetime.map(|most| {
            let at = notice_at(instance.since, most, victim.grace);
            at.millis_since(instance.since)
        });
        if least.is_none_or(|least| age < least) {
            let what = format!(
                "{} has a notice for its age, and may live",
                self.event_log.of(victim.server.0)
            );
            self.fail(Invariant::NoEndForNothing, what);
        }
    }

    /// An instance that lives on long after its life was to end.
    pub(super) fn overdue_lifetime(&self) -> Option<String> {
        let mut instances = self.instances.iter();
        instances.find_map(|(id, instance)| {
            let end = instance.since.plus(instance.lifetime?).plus(OVERDUE);
            (end <= self.now).then(|| format!("{} lives on for ever", self.event_log.of(*id)))
        })
    }
}
