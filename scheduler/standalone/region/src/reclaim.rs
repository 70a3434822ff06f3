//! Hosts that an outside owner takes back.
//!
//! The reclaim is part of the host's record. While it is there, the host takes no new servers, and
//! every preemptible server leaves as soon as it may: at the request, or at a later tick. A host
//! that is returned spares the victims that have not been acted upon ([`Region::reconcile`]).

use crate::evacuate::EvacuationReason;
use crate::transition::Transition;
use crate::{Region, RegionError};
use ebbtide_engine::HostReclaim;
use ebbtide_model::record::Change;
use ebbtide_model::{
    CloudEvent, EvacuationCause, Reclaim, ReclaimTerms, ReclaimedHost, ServerId, StayReason,
    Timestamp, names,
};

impl Region {
    /// What a reclaim with these terms would do now. Changes nothing.
    ///
    /// # Errors
    /// As the reclaim itself.
    pub fn preview_reclaim(
        &self,
        host: &str,
        terms: ReclaimTerms,
        now: Timestamp,
    ) -> Result<HostReclaim, RegionError> {
        let reclaim = self.wanted_reclaim(host, terms, now)?;
        self.reclaim_of(host, reclaim, now)
    }

    /// The reclaims that are in force, by host.
    ///
    /// # Errors
    /// The cost module failed.
    pub fn reclaims(&self, now: Timestamp) -> Result<Vec<HostReclaim>, RegionError> {
        let reclaimed = self.hosts.values().filter_map(|entry| {
            let reclaim = entry.host.reclaim.as_deref()?;
            Some((&entry.host.name, reclaim))
        });
        let all = reclaimed.map(|(host, reclaim)| self.reclaim_of(host, reclaim.clone(), now));
        all.collect()
    }

    /// The reclaim of one host; `None`: the host is not reclaimed.
    ///
    /// # Errors
    /// [`RegionError::NotFound`]; the cost module failed.
    pub fn reclaim(&self, host: &str, now: Timestamp) -> Result<Option<HostReclaim>, RegionError> {
        let reclaim = self.reclaim_in_force(host)?.cloned();
        let of = |reclaim| self.reclaim_of(host, reclaim, now);
        reclaim.map(of).transpose()
    }

    fn reclaim_in_force(&self, host: &str) -> Result<Option<&Reclaim>, RegionError> {
        match self.hosts.get(host) {
            Some(entry) => Ok(entry.host.reclaim.as_deref()),
            None => Err(RegionError::unknown_host(host)),
        }
    }

    fn wanted_reclaim(
        &self,
        host: &str,
        terms: ReclaimTerms,
        now: Timestamp,
    ) -> Result<Reclaim, RegionError> {
        terms.check(now)?;
        match self.reclaim_in_force(host)? {
            Some(known) => Ok(known.renewed(host, terms, now)?),
            None => {
                let entry = self.hosts.get(host);
                let disabled = entry.and_then(|entry| entry.host.disabled_reason.clone());
                Ok(Reclaim::new(terms, disabled, now))
            }
        }
    }

    fn reclaim_of(
        &self,
        host: &str,
        reclaim: Reclaim,
        now: Timestamp,
    ) -> Result<HostReclaim, RegionError> {
        let down_after = self.config.host_down_seconds.as_millis();
        let entry = self.hosts.get(host);
        let is_reachable = entry.is_some_and(|entry| entry.is_reachable(now, down_after));
        let hold = |id: ServerId| match self.servers.get(&id) {
            Some(server) if self.is_being_spared(server) => Some(StayReason::BeingSpared),
            _ => (!is_reachable).then_some(StayReason::HostSilent),
        };
        let budgets = self.remaining_budgets(now);
        let eviction = self
            .engine
            .empty_host(&self.table, host, &budgets, &reclaim, now, hold)?;
        Ok(HostReclaim {
            host: host.to_owned(),
            reclaim,
            eviction,
        })
    }

    pub(crate) fn reclaim_host(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        terms: ReclaimTerms,
    ) -> Result<HostReclaim, RegionError> {
        let wanted = self.preview_reclaim(host, terms, transition.now)?;
        Ok(self.evict_reclaimed(transition, wanted))
    }

    /// Ends the reclaim of a host. A host without one stays as it is, so that repeating it is safe.
    /// With `keep_disabled` the host stays disabled.
    pub(crate) fn return_host(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        keep_disabled: bool,
    ) -> Result<(), RegionError> {
        let Some(reclaim) = self.reclaim_in_force(host)?.cloned() else {
            return Ok(());
        };
        let kept = || keep_disabled.then(|| reclaim.returned_reason());
        let reason = reclaim.disabled_before.clone().or_else(kept);
        self.set_reclaim(transition, host, None, reason);
        // Its victims are spared when the step settles the host.
        transition.touch(host);
        Ok(())
    }

    /// Writes the reclaim of a host, and why it is disabled.
    fn set_reclaim(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        reclaim: Option<Reclaim>,
        disabled: Option<String>,
    ) {
        let down_after = self.config.host_down_seconds.as_millis();
        let now = transition.now;
        let set = self
            .hosts
            .set_reclaim(host, reclaim, disabled, now, down_after);
        let Some((record, health)) = set else {
            return;
        };
        let record = Box::new(record.clone());
        self.table.set_health(host, health);
        self.improvements += 1;
        transition.change(host);
        let change = Change::PutHost(record.clone());
        transition.effects.changes.push(change);
        let event = CloudEvent::Host(record, health);
        transition.effects.events.push(event);
    }

    /// Writes a reclaim and begins the evacuation of every server that leaves now. Returns what is
    /// left: the servers that stay.
    fn evict_reclaimed(
        &mut self,
        transition: &mut Transition<'_>,
        mut wanted: HostReclaim,
    ) -> HostReclaim {
        let leave = std::mem::take(&mut wanted.eviction.leave);
        for (id, cost) in &leave {
            wanted.reclaim.charge(*id, *cost);
        }
        let entry = self.hosts.get(&wanted.host);
        if entry.and_then(|entry| entry.host.reclaim.as_deref()) != Some(&wanted.reclaim) {
            let reason = wanted.reclaim.disabled_reason();
            let reclaim = Some(wanted.reclaim.clone());
            self.set_reclaim(transition, &wanted.host, reclaim, Some(reason));
        }
        for (id, cost) in leave {
            let Some(server) = self.servers.get(&id).cloned() else {
                continue;
            };
            let own = server.grace(self.config.default_grace_seconds);
            let why = EvacuationReason {
                reclaim_owner: Some(wanted.reclaim.terms.owner.clone()),
                cost,
                grace: Some(wanted.reclaim.grace(own, transition.now)),
                ..EvacuationReason::alone(EvacuationCause::Reclaim)
            };
            self.begin_evacuation(transition, server, why);
        }
        wanted
    }

    /// Evicts servers that may leave by now: their protected time is over, a budget allows more
    /// victims, or their host is heard again.
    pub(crate) fn look_after_reclaims(&mut self, transition: &mut Transition<'_>) {
        let reclaimed = self.hosts.values().filter(|e| e.host.reclaim.is_some());
        let hosts: Vec<String> = reclaimed.map(|entry| entry.host.name.clone()).collect();
        for host in hosts {
            match self.reclaim(&host, transition.now) {
                Ok(Some(wanted)) => {
                    self.evict_reclaimed(transition, wanted);
                }
                Ok(None) => {}
                Err(error) => transition.ignored(format!("reclaim of host {host}: {error}")),
            }
        }
    }

    /// True if the host of an evacuation is to be emptied for an owner that still has it.
    pub(crate) fn is_reclaimed(&self, host: &str) -> bool {
        let entry = self.hosts.get(host);
        entry.is_some_and(|entry| entry.host.reclaim.is_some())
    }

    /// Notes an operator's wish to disable a reclaimed host: it holds when the host is returned.
    /// False: the host is not reclaimed.
    ///
    /// # Errors
    /// The operator wants to enable it.
    pub(crate) fn disable_reclaimed(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        reason: Option<&String>,
    ) -> Result<bool, RegionError> {
        let entry = self.hosts.get(host);
        let known = entry.and_then(|entry| entry.host.reclaim.as_deref().cloned());
        let Some(mut reclaim) = known else {
            return Ok(false);
        };
        let Some(reason) = reason else {
            return Err(RegionError::Reclaimed(ReclaimedHost {
                host: names::shorten(host),
                owner: reclaim.terms.owner,
                next: "`ebbtide host return` ends the reclaim and enables the host",
            }));
        };
        reclaim.disabled_before = Some(reason.clone());
        let shown = reclaim.disabled_reason();
        self.set_reclaim(transition, host, Some(reclaim), Some(shown));
        Ok(true)
    }
}
