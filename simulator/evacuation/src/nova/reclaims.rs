//! Hosts that an outside owner takes back: a row of the ledger for each, at which every scheduler
//! looks. While there is one, preemptible instances leave the host and no new ones come.

use super::plan::grace_of;
use super::world::NovaWorld;
use crate::violation::Invariant;
use ebbtide_model::{Reclaim, ReclaimDeadline, ReclaimTerms, Seconds};
use ebbtide_preemption::{Preemption, PreemptionInput, Victim};
use uuid::Uuid;

impl NovaWorld {
    /// An owner takes a host back, or returns it. Without the ledger neither is possible.
    pub(super) fn toggle_reclaim(&mut self, a: u32, b: u32) {
        let host = self.host_of(a);
        if self.ledger.away {
            return;
        }
        if b.is_multiple_of(2) && self.ledger.reclaims.remove(&host).is_some() {
            return self.log(|_| format!("host-{host} is returned"));
        }
        let terms = ReclaimTerms {
            owner: "batch".to_owned(),
            reason: "a job".to_owned(),
            deadline: ReclaimDeadline::After(Seconds(1 + b % 90)),
            max_cost: None,
        };
        let now = self.now;
        let fresh = Reclaim::new(terms, None, now);
        self.ledger.reclaims.entry(host).or_insert(fresh);
        self.log(|_| format!("host-{host} is reclaimed"));
    }

    /// Whether an owner has the host: then Nova has its nova-compute disabled.
    pub(super) fn is_reclaimed(&self, host: usize) -> bool {
        self.ledger.reclaims.contains_key(&host)
    }

    /// Begins the evacuation of every instance that is to leave a reclaimed host, as this scheduler
    /// sees it.
    pub(super) fn evict_reclaimed(&mut self, who: usize) {
        if self.ledger.away || !self.schedulers[who].works() {
            return;
        }
        let instances = self.instances.iter();
        let leave: Vec<(Uuid, usize)> = instances
            .filter(|(id, instance)| self.may_leave(who, **id) && self.is_reclaimed(instance.host))
            .map(|(id, instance)| (*id, instance.host))
            .collect();
        for (server, host) in leave {
            if self.broken.is_some() || !self.schedulers[who].works() {
                return;
            }
            self.evict(who, server, host);
        }
    }

    fn evict(&mut self, who: usize, server: Uuid, host: usize) {
        let (id, now) = (self.new_id(), self.clock(who));
        let Some(lives_since) = self.instances.get(&server).map(|instance| instance.since) else {
            return;
        };
        let Some(reclaim) = self.ledger.reclaims.get(&host).cloned() else {
            return;
        };
        // A victim of a preemption whose row this scheduler has not seen yet may hold nothing.
        let Some(mut victim) = self.victim(server, host) else {
            return;
        };
        victim.grace = reclaim.grace(victim.grace, now);
        let since = lives_since.max(reclaim.since);
        let record = Preemption::of_reclaim(id, reclaim.terms.owner, victim, since, now);
        if self.end_alone(who, record) {
            let name = self.schedulers[who].name.clone();
            self.log(|s| format!("{name}: {} leaves for the owner of its host", s.of(server)));
        }
    }

    /// Tells the driver of a record that the host for whose owner its victims leave was returned.
    /// False if it cannot go on with the record.
    pub(super) fn look_for_return(&mut self, who: usize, id: Uuid) -> bool {
        if self.ledger.away {
            return true;
        }
        let Some(record) = self.schedulers[who].driven.get(&id).map(|d| &d.record) else {
            return false;
        };
        let hosts = &self.agents;
        let on = |victim: &Victim| hosts.iter().position(|agent| agent.name == victim.host);
        let host = record.victims.first().and_then(on);
        let returned = record.is_reclaim() && host.is_some_and(|host| !self.is_reclaimed(host));
        !returned || self.feed(who, id, &PreemptionInput::HostReturned).is_ok()
    }

    /// A victim for the owner of its host is preemptible, and its notice gives it no more time than
    /// its own grace period.
    pub(super) fn check_reclaimed(&mut self, victim: &Victim) {
        let server = victim.server.0;
        let normal = self.instances.get(&server).is_some_and(|i| !i.spot);
        if normal || victim.grace > grace_of(server) {
            let what = format!(
                "{} leaves a reclaimed host with {} of grace",
                self.event_log.of(server),
                victim.grace
            );
            self.fail(Invariant::NoEndForNothing, what);
        }
    }

    /// No server is evicted to place another one on a reclaimed host.
    pub(super) fn check_place(&mut self, instance: Uuid, host: usize) {
        if self.is_reclaimed(host) {
            let what = format!(
                "{} is placed on a reclaimed host",
                self.event_log.of(instance)
            );
            self.fail(Invariant::NoEndForNothing, what);
        }
    }

    /// A preemptible instance that stays on a reclaimed host.
    pub(super) fn staying_on_reclaimed_host(&self) -> Option<String> {
        let mut instances = self.instances.iter();
        instances.find_map(|(id, instance)| {
            let stays = instance.spot && self.is_reclaimed(instance.host);
            stays.then(|| format!("{} stays on a reclaimed host", self.event_log.of(*id)))
        })
    }
}
