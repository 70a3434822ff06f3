//! Does the steps of a reconciliation, and ends the hold.

use super::step::{Adoption, ReportedServer, Work, retained_status};
use super::{ReconcileStep, Reconciliation};
use crate::evacuate::advance;
use crate::transition::Transition;
use crate::{AdoptServer, Region, RegionError, servers};
use ebbtide_evacuation::EvacuationEvent;
use ebbtide_model::message::HostedState;
use ebbtide_model::record::{Change, RestoreMark};
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{EvacuationId, Server, ServerId, ServerStatus};
use std::collections::BTreeSet;

/// The fault of a server that no host has after a restore.
const CLOSED: &str = "EB-FAULT-005";
/// The reason of evacuations that a restore ends.
const REASON: &str = "the region's database was restored from a backup";
/// The reason for which a host with unknown servers is disabled.
const UNKNOWN_SERVERS: &str = "EB-AUDIT-104: it runs servers that the restored database lacks";

impl Region {
    pub(super) fn reconcile_restored(
        &mut self,
        transition: &mut Transition<'_>,
        without: &BTreeSet<String>,
    ) -> Result<Reconciliation, RegionError> {
        let Some(held) = self.restored.clone() else {
            return Ok(self.reconciliation(transition.now, without));
        };
        let obstacles = self.obstacles(&held, transition.now, without);
        if !obstacles.is_empty() {
            let words = obstacles
                .iter()
                .map(|o| format!("{} ({}): {}; {}", o.subject, o.code, o.what, o.next));
            let words: Vec<String> = words.collect();
            return Err(RegionError::NotReconcilable(words.join(". ")));
        }
        let done = self.reconciliation(transition.now, without);
        for step in self.reconcile_steps(&held, transition.now, without) {
            self.reconcile_step(transition, step.work, &step.shown, held.mark);
        }
        self.restored = None;
        self.improvements += 1;
        transition.effects.changes.push(Change::DeleteRestoreMark);
        Ok(done)
    }

    fn reconcile_step(
        &mut self,
        transition: &mut Transition<'_>,
        work: Work,
        shown: &ReconcileStep,
        mark: RestoreMark,
    ) {
        match work {
            Work::Adopt(adoption) => self.adopt_found(transition, *adoption),
            Work::Run(place) => self.found_running(transition, &place),
            Work::Keep(place) => self.found_kept(transition, &place),
            Work::Close(id) => self.close_record(transition, id, mark),
            Work::Delete(id, host) => self.delete_after_restore(transition, id, host),
            Work::Spared(id, place) => self.end_with_living_victim(transition, id, place.as_ref()),
            Work::Evacuated(id, place) => self.end_without_victim(transition, id, place.as_ref()),
            Work::Withdraw(place, id) => {
                self.send_spare(transition, &place.host, id, place.server);
            }
            Work::Discard(id) => transition.unsend(id),
            Work::Disable(host) => {
                let reason = Some(UNKNOWN_SERVERS.to_owned());
                if let Err(error) = self.set_disabled(transition, &host, reason) {
                    transition.ignored(format!("{}: {error}", shown.subject));
                }
            }
            Work::Look => {}
        }
    }

    fn adopt_found(&mut self, transition: &mut Transition<'_>, adoption: Adoption) {
        let Adoption {
            place,
            facts,
            flavor,
        } = adoption;
        self.servers.deleted_mut().remove(place.server);
        let adopt = AdoptServer {
            id: place.server,
            name: facts.name,
            project_id: facts.project_id,
            flavor,
            group: None,
            host: place.host.clone(),
            // By the agent's clock, which may be ahead.
            launched_at: Some(facts.since.min(transition.now)),
            start_now: false,
        };
        match self.adopt_server(transition, adopt) {
            Ok(_) if place.state == HostedState::Running => {}
            Ok(_) => self.found_kept(transition, &place),
            // The plan has checked what can be refused.
            Err(error) => {
                transition.ignored(format!("server {} was not adopted: {error}", place.server));
            }
        }
    }

    fn found_running(&mut self, transition: &mut Transition<'_>, place: &ReportedServer) {
        let Some(mut server) = self.servers.get(&place.server).cloned() else {
            return;
        };
        let since = place.facts.as_ref().map(|facts| facts.since);
        let since = since.map_or(transition.now, |since| since.min(transition.now));
        let moved = server.host.as_deref() != Some(place.host.as_str());
        let had_ended = server.ended_at.is_some();
        if moved || had_ended {
            // It was started once more since the backup, at least.
            server.starts = server.starts.saturating_add(1);
            server.launched_at = Some(since);
        }
        server.launched_at = server.launched_at.or(Some(since));
        server.host = Some(place.host.clone());
        server.status = match server.external {
            true => ServerStatus::Reserved,
            false => ServerStatus::Active,
        };
        server.refused_hosts.retain(|host| *host != place.host);
        server.left_hosts.remove(&place.host);
        server.ended_at = None;
        server.fault = None;
        server.evacuation_id = None;
        self.servers.note_started(server.id, since);
        self.save_server(transition, server);
    }

    fn found_kept(&mut self, transition: &mut Transition<'_>, place: &ReportedServer) {
        let Some(mut server) = self.servers.get(&place.server).cloned() else {
            return;
        };
        let status = retained_status(place.state);
        let storage = self.storage_of(&place.host);
        server.host = Some(place.host.clone());
        server.evacuation_id = None;
        server.fault = Some(ServerFailure {
            code: servers::PREEMPTED.to_owned(),
            message: format!("it was preempted ({status}); {REASON}, which does not say for what"),
            at: transition.now,
        });
        self.record_saved(&mut server, status, storage.as_deref(), transition.now);
        self.servers.forget_started(server.id);
        self.finish(transition, &mut server, status);
    }

    fn storage_of(&self, host: &str) -> Option<String> {
        self.hosts
            .get(host)
            .and_then(|entry| entry.host.storage.clone())
    }

    fn close_record(&mut self, transition: &mut Transition<'_>, id: ServerId, mark: RestoreMark) {
        let Some(mut server) = self.servers.get(&id).cloned() else {
            return;
        };
        let of = mark.backup_at.map(|at| format!(" of {at}"));
        server.fault = Some(ServerFailure {
            code: CLOSED.to_owned(),
            message: format!(
                "{REASON}{}, and no host has this server any more: it was deleted, preempted or lost since, or never started",
                of.unwrap_or_default()
            ),
            at: transition.now,
        });
        server.comeback = None;
        server.evacuation_id = None;
        self.finish(transition, &mut server, ServerStatus::Error);
    }

    fn delete_after_restore(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        host: Option<String>,
    ) {
        let Some(mut server) = self.servers.get(&id).cloned() else {
            return;
        };
        match host {
            None => self.finish(transition, &mut server, ServerStatus::Deleted),
            Some(host) => {
                server.host = Some(host.clone());
                self.save_server(transition, server.clone());
                self.send_delete(transition, &server, &host);
            }
        }
    }

    fn end_with_living_victim(
        &mut self,
        transition: &mut Transition<'_>,
        id: EvacuationId,
        place: Option<&ReportedServer>,
    ) {
        let Some(mut evacuation) = self.evacuations.get(&id).cloned() else {
            return;
        };
        let victim = evacuation.victim_id;
        let host = place.map_or(&evacuation.host, |place| &place.host);
        // The agent may be about to act on this evacuation: a backup may be seconds old.
        self.send_spare(transition, host, id, victim);
        advance(&mut evacuation, EvacuationEvent::SpareRequested);
        advance(&mut evacuation, EvacuationEvent::Spared);
        evacuation.reason = Some(REASON.to_owned());
        evacuation.ended_at = Some(transition.now);
        let is_its_victim = |server: &Server| {
            server.status == ServerStatus::Evacuating && server.evacuation_id == Some(id)
        };
        let known = self.servers.get(&victim).cloned();
        match (known.filter(is_its_victim), place) {
            (Some(_), Some(place)) => self.found_running(transition, place),
            (Some(mut server), None) => {
                server.status = ServerStatus::Active;
                server.evacuation_id = None;
                self.save_server(transition, server);
            }
            (None, _) => {}
        }
        self.save_evacuation(transition, evacuation);
    }

    fn end_without_victim(
        &mut self,
        transition: &mut Transition<'_>,
        id: EvacuationId,
        place: Option<&ReportedServer>,
    ) {
        let Some(evacuation) = self.evacuations.get(&id).cloned() else {
            return;
        };
        let status = place.map_or(ServerStatus::Preempted, |place| {
            retained_status(place.state)
        });
        let storage = place.and_then(|place| self.storage_of(&place.host));
        let victim = evacuation.victim_id;
        self.end_evacuated(transition, evacuation, status, storage.as_deref());
        // It was resumed since, perhaps elsewhere, and kept once more.
        let stays = |server: &Server| {
            server.status == ServerStatus::Evacuating && server.evacuation_id == Some(id)
        };
        match (
            self.servers.get(&victim).filter(|s| stays(s)).cloned(),
            place,
        ) {
            (Some(_), Some(place)) => self.found_kept(transition, place),
            (Some(mut server), None) => {
                self.finish(transition, &mut server, ServerStatus::Preempted);
            }
            (None, _) => {}
        }
    }
}
