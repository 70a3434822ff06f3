//! Compares the restored records with what the hosts have. Changes nothing.

use super::step::{
    PlannedStep, ReportedServer, ReportedServers, Work, discard_step, place_of, word,
};
use super::{ReconcileAction, ReconcileStep, Reconciliation, RestoredRegion};
use crate::{Disagreement, Region, orphaned_start};
use ebbtide_model::message::HostedState;
use ebbtide_model::{Evacuation, Timestamp};
use std::collections::BTreeSet;

impl Region {
    /// What [`ReconcileRegion`](super::ReconcileRegion) would do now.
    #[must_use]
    pub fn reconciliation(&self, now: Timestamp, without: &BTreeSet<String>) -> Reconciliation {
        let Some(held) = &self.restored else {
            return Reconciliation {
                hosts: self.hosts.len(),
                ..Reconciliation::default()
            };
        };
        let mut steps: Vec<ReconcileStep> = self
            .reconcile_steps(held, now, without)
            .into_iter()
            .map(|step| step.shown)
            .collect();
        steps.sort();
        let hosts = self.hosts.iter();
        let heard = hosts.filter(|(_, entry)| entry.last_heartbeat().is_some());
        Reconciliation {
            mark: Some(held.mark),
            hosts: self.hosts.len(),
            compared_hosts: heard.count(),
            steps,
            obstacles: self.obstacles(held, now, without),
        }
    }

    /// Why the region may not be reconciled now.
    pub(super) fn obstacles(
        &self,
        held: &RestoredRegion,
        now: Timestamp,
        without: &BTreeSet<String>,
    ) -> Vec<Disagreement> {
        let mut found = Vec::new();
        // A host that registered after the backup is known once its agent was heard.
        let listens_until = held.since.plus(self.late());
        if now < listens_until {
            found.push(Disagreement {
                code: "EB-AUDIT-110",
                subject: "region".to_owned(),
                what: format!(
                    "this scheduler has listened to the agents since {}, which is not long enough to have heard all",
                    held.since
                ),
                next: "try again in half of region.host_down_seconds",
            });
        }
        for (name, entry) in self.hosts.iter() {
            if without.contains(name) {
                continue;
            }
            if entry.is_contested(now) {
                found.push(Disagreement {
                    code: "EB-REGION-007",
                    subject: format!("host {name}"),
                    what: "two agents speak for it".to_owned(),
                    next: "stop the wrong one",
                });
            } else if !self.is_heard(name, now) && self.servers.on(name).next().is_some() {
                found.push(Disagreement {
                    code: "EB-AUDIT-103",
                    subject: format!("host {name}"),
                    what: format!(
                        "its agent has not been heard since the restore; the backup has {} servers there",
                        self.servers.on(name).count()
                    ),
                    next: "start its agent; if the host is lost for good: --without-host",
                });
            }
        }
        found
    }

    pub(super) fn is_heard(&self, host: &str, now: Timestamp) -> bool {
        let down_after = self.config.host_down_seconds.as_millis();
        self.hosts.get(host).is_some_and(|entry| {
            entry.last_heartbeat().is_some() && entry.is_reachable(now, down_after)
        })
    }

    /// All steps, in the order in which they are done: servers find their places before what
    /// speaks of them ends.
    pub(super) fn reconcile_steps(
        &self,
        held: &RestoredRegion,
        now: Timestamp,
        without: &BTreeSet<String>,
    ) -> Vec<PlannedStep> {
        let mut places = ReportedServers::new();
        for (host, entry) in self
            .hosts
            .iter()
            .filter(|(name, _)| !without.contains(*name))
        {
            let hosted = entry.last_heartbeat().map_or(&[][..], |(_, hosted)| hosted);
            for server in hosted {
                let place = place_of(host, server);
                places.entry(place.server).or_default().push(place);
            }
        }
        let mut steps = Vec::new();
        for id in self.evacuations.active() {
            if let Some(evacuation) = self.evacuations.get(&id) {
                steps.push(self.evacuation_step(evacuation, &places, without));
            }
        }
        for server in self.servers.values() {
            self.server_steps(server, &places, without, now, &mut steps);
        }
        let unknown = places
            .iter()
            .filter(|(id, _)| !self.servers.contains_key(id));
        let mut full: BTreeSet<&str> = BTreeSet::new();
        for (id, places) in unknown {
            // Remains of a start that is being deleted have a record of their own.
            let remains = |p: &&ReportedServer| {
                self.servers
                    .contains_key(&orphaned_start::id_of(*id, &p.host))
            };
            for place in places.iter().filter(|p| !remains(p)) {
                let step = self.unknown_step(place, places.len() > 1);
                if matches!(step.work, Work::Look) && place.state == HostedState::Running {
                    full.insert(&place.host);
                }
                steps.push(step);
                self.withdraw_step(place, &mut steps);
            }
        }
        for host in full {
            let enabled = self.hosts.get(host).is_some_and(|entry| {
                entry.host.disabled_reason.is_none() && entry.host.reclaim.is_none()
            });
            if enabled {
                let why = "a server runs here that the region cannot count";
                steps.push(
                    PlannedStep::new(
                        ReconcileAction::Disable,
                        format!("host {host}"),
                        host,
                        why,
                        Work::Disable(host.to_owned()),
                    )
                    .next("`ebbtide host enable` once that server is adopted or gone"),
                );
            }
        }
        steps.extend(held.outbox.iter().map(discard_step));
        steps
    }

    /// What becomes of an evacuation that was under way at the time of the backup. It is over: the
    /// host says how.
    fn evacuation_step(
        &self,
        evacuation: &Evacuation,
        places: &ReportedServers,
        without: &BTreeSet<String>,
    ) -> PlannedStep {
        let id = evacuation.id;
        let subject = format!("evacuation {id}");
        let of = evacuation.victim_id;
        let host = &evacuation.host;
        let there = places.get(&of).map_or(&[][..], Vec::as_slice);
        let running = there.iter().find(|p| p.state == HostedState::Running);
        let (action, why, work) = match (running.or_else(|| there.first()), without.contains(host))
        {
            (Some(place), _) if place.state == HostedState::Running => (
                ReconcileAction::Spare,
                format!(
                    "its victim {of} runs on {}; what needed the capacity then is placed or gone by now",
                    place.host
                ),
                Work::Spared(id, Some(place.clone())),
            ),
            (Some(place), _) => (
                ReconcileAction::Leave,
                format!("its victim {of} is {} by now", word(place.state)),
                Work::Evacuated(id, Some(place.clone())),
            ),
            (None, true) => (
                ReconcileAction::Spare,
                format!(
                    "the host of its victim {of} is not asked; nothing may end it for a claim of the backup"
                ),
                Work::Spared(id, None),
            ),
            (None, false) => (
                ReconcileAction::Leave,
                format!("its victim {of} is on no host any more"),
                Work::Evacuated(id, None),
            ),
        };
        PlannedStep::new(action, subject, host, why, work)
    }
}
