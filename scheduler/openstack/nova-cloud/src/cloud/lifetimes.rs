//! Servers of flavors with a maximum lifetime.

use super::Cloud;
use crate::plan::PlannedVictim;
use ebbtide_evacuation::notice_at;
use ebbtide_model::{InterruptionBehaviour, Seconds, Timestamp};
use uuid::Uuid;

impl Cloud {
    /// Servers whose notice is due because of their maximum lifetime, the longest due first. Locked
    /// ones, those in a task and those that are leaving already are not among them.
    #[must_use]
    pub fn lifetimes_due(&self, now: Timestamp) -> Vec<Uuid> {
        self.lifetimes.due(now).into_iter().map(|id| id.0).collect()
    }

    /// When the next notice is due that is not due yet.
    #[must_use]
    pub fn next_lifetime(&self, now: Timestamp) -> Option<Timestamp> {
        self.lifetimes.next_after(now)
    }

    /// When a server's present life began: its launch, or a later start that was told with
    /// [`Self::set_started`].
    #[must_use]
    pub fn lives_since(&self, uuid: Uuid) -> Option<Timestamp> {
        let launched = self.instances.get(&uuid)?.record.launched_at?;
        let started = self.started.get(&uuid).copied().unwrap_or(launched);
        Some(super::follow::millis(launched.max(started)))
    }

    /// Tells that a server's owner has started it after it was stopped, in microseconds since 1970.
    pub fn set_started(&mut self, uuid: Uuid, started: i64) {
        if self.instances.contains_key(&uuid) {
            self.started.insert(uuid, started);
            self.follow_lifetime(uuid);
            self.count_again(uuid);
        }
    }

    /// A preemptible server as a victim: what it holds and how it leaves. `None` if it is leaving
    /// already, or is not known to hold anything on its host.
    #[must_use]
    pub fn victim(&self, uuid: Uuid, cost: f64) -> Option<PlannedVictim> {
        let instance = self.instances.get(&uuid)?;
        let (provider, _) = instance.counted.as_ref()?;
        let terms = instance.terms.as_ref()?;
        let place = self.nodes.get(provider)?.place?;
        let entry = self.consumers.get(&uuid)?;
        Some(PlannedVictim {
            uuid,
            name: instance.record.name.clone(),
            flavor: instance.record.flavor.name.clone(),
            host: self.host_at(place),
            allocations: entry.allocations.clone(),
            keeps: self.kept_allocations(terms, &entry.allocations),
            generation: entry.generation,
            project_id: instance.record.project_id.clone(),
            user_id: instance.record.user_id.clone(),
            interruption: terms.interruption,
            grace: terms.grace.unwrap_or(self.settings.grace),
            launched_at: instance.record.launched_at,
            cost,
            frees: Vec::new(),
        })
    }

    /// Whether a server can get a notice because its life is over: it is on a host, not locked, in
    /// no task, not leaving, and has not ended in the way in which it is to end.
    #[must_use]
    pub fn may_end(&self, uuid: Uuid) -> bool {
        let Some(instance) = self.instances.get(&uuid) else {
            return false;
        };
        let on_host = instance.record.host.is_some();
        let ends_here = on_host && instance.is_free_to_go() && !instance.has_stopped();
        ends_here && !self.leaving.contains(&uuid)
    }

    /// Whether a server may still leave a host, as a plan has it: it is there, not locked, in no
    /// task, and not leaving.
    #[must_use]
    pub fn may_leave(&self, uuid: Uuid, host: &str) -> bool {
        let known = self.instances.get(&uuid);
        known.is_some_and(|instance| {
            instance.record.host.as_deref() == Some(host) && instance.is_free_to_go()
        }) && !self.leaving.contains(&uuid)
    }

    /// A server as the victim of its maximum lifetime or of its maximum price. A move would not end
    /// its life, so one that would be migrated live is stopped.
    #[must_use]
    pub fn victim_of_end(&self, uuid: Uuid) -> Option<PlannedVictim> {
        let mut victim = self.victim(uuid, 0.0)?;
        if victim.interruption == InterruptionBehaviour::LiveMigrate {
            victim.interruption = InterruptionBehaviour::Stop;
            let terms = self.instances.get(&uuid)?.terms.clone()?;
            let terms = crate::flavor::PreemptibleTerms {
                interruption: victim.interruption,
                ..terms
            };
            victim.keeps = self.kept_allocations(&terms, &victim.allocations);
        }
        Some(victim)
    }

    /// The longest that a server may live; `None` for one without a limit. A limit that is not
    /// longer than the grace period leaves no time to live and counts as not said; the flavor's own
    /// grace period was compared when its keys were read.
    fn max_lifetime(&self, uuid: Uuid) -> Option<(Seconds, Seconds)> {
        let terms = self.instances.get(&uuid)?.terms.as_ref()?;
        let grace = terms.grace.unwrap_or(self.settings.grace);
        let most = terms.max_lifetime.filter(|most| *most > grace)?;
        Some((most, grace))
    }

    /// When a server's life ends.
    pub(super) fn end_of_life(&self, uuid: Uuid) -> Option<Timestamp> {
        let (most, _) = self.max_lifetime(uuid)?;
        Some(self.lives_since(uuid)?.plus(most))
    }

    /// Updates the entry of a server in the index of lifetimes.
    pub(super) fn follow_lifetime(&mut self, uuid: Uuid) {
        let at = self.notice_of_lifetime(uuid);
        self.lifetimes.put(uuid.into(), at);
    }

    fn notice_of_lifetime(&self, uuid: Uuid) -> Option<Timestamp> {
        let (most, grace) = self.max_lifetime(uuid)?;
        if !self.may_end(uuid) {
            return None;
        }
        Some(notice_at(self.lives_since(uuid)?, most, grace))
    }
}

impl super::CloudInstance {
    /// Whether the server has ended already in the way in which it is to end.
    pub(super) fn has_stopped(&self) -> bool {
        let stops = self.terms.as_ref().is_some_and(|terms| {
            matches!(
                terms.interruption,
                InterruptionBehaviour::Stop | InterruptionBehaviour::LiveMigrate
            )
        });
        // An agent takes a suspended server for a stopped one.
        let state = self.record.vm_state.as_deref();
        stops && matches!(state, Some("stopped" | "suspended"))
    }
}
