//! The course of an evacuation: it begins with the preemptor's claim, ends with the agent's report,
//! and is spared if the preemptor goes away.

use crate::claims::VictimFailure;
use crate::transition::{QueuedMessage, Transition};
use crate::{Region, RegionError, servers};
use ebbtide_evacuation::{AfterFailure, EndReason, EvacuationEvent, Progress, Wait, cause_text};
use ebbtide_model::message::{Body, Notice, Spare};
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{
    DecisionId, Evacuation, EvacuationCause, EvacuationId, EvacuationState, Seconds, Server,
    ServerId, ServerStatus, Timestamp, Victim,
};

/// Why a server has to leave.
#[derive(Debug, Clone)]
pub(crate) struct EvacuationReason {
    pub(crate) cause: EvacuationCause,
    pub(crate) reclaim_owner: Option<String>,
    pub(crate) preemptor_id: Option<ServerId>,
    pub(crate) decision_id: Option<DecisionId>,
    pub(crate) cost: f64,
    /// Its grace period; `None`: its own.
    pub(crate) grace: Option<Seconds>,
}

impl EvacuationReason {
    /// The server leaves for no other server.
    pub(crate) fn alone(cause: EvacuationCause) -> Self {
        Self {
            cause,
            reclaim_owner: None,
            preemptor_id: None,
            decision_id: None,
            cost: 0.0,
            grace: None,
        }
    }
}

impl Region {
    /// Writes the evacuation of a victim and puts its notice into the outbox, in the transaction of
    /// the claim.
    pub(crate) fn begin_preemption(
        &mut self,
        transition: &mut Transition<'_>,
        victim: &Victim,
        preemptor: &Server,
        decision_id: DecisionId,
    ) {
        let Some(server) = self.servers.get(&victim.server_id).cloned() else {
            // The engine decides on this region's table in the same step, so its victims exist
            // here.
            transition.ignored(format!(
                "victim {} is not a server of this region",
                victim.server_id
            ));
            return;
        };
        let why = EvacuationReason {
            preemptor_id: Some(preemptor.id),
            decision_id: Some(decision_id),
            cost: victim.cost,
            ..EvacuationReason::alone(EvacuationCause::Preemption)
        };
        self.begin_evacuation(transition, server, why);
    }

    /// Begins the evacuation of a server for any cause.
    pub(crate) fn begin_evacuation(
        &mut self,
        transition: &mut Transition<'_>,
        mut server: Server,
        why: EvacuationReason,
    ) {
        let id = EvacuationId(transition.uuid());
        let behaviour = server
            .flavor
            .properties()
            .map(|p| p.interruption)
            .unwrap_or_default();
        let mut evacuation = Evacuation {
            id,
            victim_id: server.id,
            victim_name: server.name.clone(),
            victim_project_id: server.project_id.clone(),
            victim_group_id: server.group_id,
            victim_starts: server.starts,
            host: server.host.clone().unwrap_or_default(),
            cause: why.cause,
            reclaim_owner: why.reclaim_owner,
            preemptor_id: why.preemptor_id,
            decision_id: why.decision_id,
            behaviour,
            grace: why
                .grace
                .unwrap_or_else(|| server.grace(self.config.default_grace_seconds)),
            cost: why.cost,
            state: EvacuationState::Claimed,
            attempts: 0,
            give_up_at: transition.now,
            spare_requested: false,
            reason: None,
            claimed_at: transition.now,
            notified_at: None,
            draining_at: None,
            deadline_at: None,
            ended_at: None,
        };
        server.last_message_at = Some(self.send_notice(transition, &mut evacuation).time);
        server.status = ServerStatus::Evacuating;
        server.evacuation_id = Some(id);
        self.save_server(transition, server);
        self.save_evacuation(transition, evacuation);
    }

    /// Puts the next attempt of a notice into the outbox. It replaces an attempt that has not been
    /// published yet, whose `begin_before` may have passed meanwhile.
    pub(crate) fn send_notice(
        &mut self,
        transition: &mut Transition<'_>,
        evacuation: &mut Evacuation,
    ) -> QueuedMessage {
        if let Some(unsent) = self.evacuations.take_unsent(&evacuation.id) {
            transition.unsend(unsent);
        } else {
            evacuation.attempts += 1;
        }
        let policy = self.config.evacuation();
        evacuation.give_up_at = policy.notice_limit(transition.now);
        let notice = Notice {
            evacuation_id: evacuation.id,
            server_id: evacuation.victim_id,
            behaviour: evacuation.behaviour,
            grace_seconds: evacuation.grace,
            attempt: evacuation.attempts,
            begin_before: policy.begin_before(transition.now, evacuation.attempts),
        };
        let said = self.last_message_at(evacuation.victim_id);
        let body = Body::Notice(notice);
        let sent = transition.send(&evacuation.host, body, Some(evacuation.id), said);
        self.evacuations.note_unsent(evacuation.id, sent.id);
        sent
    }

    /// What an evacuation waits for. Spares are not tracked: the agent's answer or a heartbeat ends
    /// the wait.
    pub(crate) fn wait_of(&self, evacuation: &Evacuation) -> Wait {
        Wait {
            progress: Progress::of(evacuation),
            attempt: evacuation.attempts,
            unsent: !evacuation.spare_requested
                && self.evacuations.unsent(&evacuation.id).is_some(),
        }
    }

    /// Sends the next attempt of a notice and saves the victim and the evacuation.
    pub(crate) fn send_notice_again(
        &mut self,
        transition: &mut Transition<'_>,
        mut evacuation: Evacuation,
    ) {
        let said = self.send_notice(transition, &mut evacuation).time;
        // Later messages about the server need a later time than this one, even if another
        // scheduler's clock sets it.
        if let Some(mut victim) = self.servers.get(&evacuation.victim_id).cloned() {
            victim.last_message_at = victim.last_message_at.max(Some(said));
            self.save_server(transition, victim);
        }
        self.save_evacuation(transition, evacuation);
    }

    /// The time of the last message about a server.
    pub(crate) fn last_message_at(&self, id: ServerId) -> Option<Timestamp> {
        self.servers
            .get(&id)
            .and_then(|server| server.last_message_at)
    }

    /// Asks the agent to spare the victim. Only the agent's answer ends the evacuation, because it
    /// may have acted already. Until then the victim keeps its capacity and cannot be selected
    /// again.
    pub(crate) fn spare(
        &mut self,
        transition: &mut Transition<'_>,
        mut evacuation: Evacuation,
        why: &str,
    ) {
        if let Some(unsent) = self.evacuations.take_unsent(&evacuation.id) {
            // The publisher may be sending this notice at the moment, so the spare is sent in any
            // case, after it.
            transition.unsend(unsent);
        }
        self.send_spare(
            transition,
            &evacuation.host,
            evacuation.id,
            evacuation.victim_id,
        );
        advance(&mut evacuation, EvacuationEvent::SpareRequested);
        evacuation.reason = Some(why.to_owned());
        let limit = self.config.evacuation().spare_limit(transition.now);
        evacuation.give_up_at = evacuation.give_up_at.max(limit);
        let victim = evacuation.victim_id;
        self.save_evacuation(transition, evacuation);
        if let Err(error) = self.show_to_table(victim) {
            transition.ignored(format!("the host table refused a server: {error}"));
        }
    }

    pub(crate) fn send_spare(
        &self,
        transition: &mut Transition<'_>,
        host: &str,
        evacuation_id: EvacuationId,
        server_id: ServerId,
    ) {
        let spare = Spare {
            evacuation_id,
            server_id,
        };
        transition.send(
            host,
            Body::Spare(spare),
            None,
            self.last_message_at(server_id),
        );
    }

    /// Ends an evacuation whose victim lives on.
    pub(crate) fn end_spared(
        &mut self,
        transition: &mut Transition<'_>,
        mut evacuation: Evacuation,
    ) {
        advance(&mut evacuation, EvacuationEvent::Spared);
        evacuation.ended_at = Some(transition.now);
        self.restore_server(transition, &evacuation, None);
        self.save_evacuation(transition, evacuation);
    }

    /// Ends an evacuation that failed. The region takes the victim for alive until its host reports
    /// otherwise, places the preemptor elsewhere, and spares its other victims. If the agent
    /// reported the failure itself, other victims on its host may be selected.
    pub(crate) fn end_failed(
        &mut self,
        transition: &mut Transition<'_>,
        mut evacuation: Evacuation,
        event: EvacuationEvent,
        why: &EndReason,
    ) {
        let preemptor = evacuation.preemptor_id;
        let host = evacuation.host.clone();
        // The agent may only be slow. The spare keeps it from evicting the victim for a preemptor
        // that goes elsewhere.
        self.send_spare(transition, &host, evacuation.id, evacuation.victim_id);
        advance(&mut evacuation, event);
        let why = why.to_string();
        evacuation.reason = Some(why.clone());
        evacuation.ended_at = Some(transition.now);
        let rest = self.config.evacuation().rest_limit(transition.now);
        self.restore_server(transition, &evacuation, Some(rest));
        self.save_evacuation(transition, evacuation);
        let failure = VictimFailure {
            preemptor,
            why: &why,
            host_answers: event != EvacuationEvent::GivenUp,
        };
        self.settle(transition, &host, Some(failure));
    }

    /// Returns a living victim to its former state. After a failure it is not selected again until
    /// `rest`.
    fn restore_server(
        &mut self,
        transition: &mut Transition<'_>,
        evacuation: &Evacuation,
        rest: Option<Timestamp>,
    ) {
        let Some(mut victim) = self.servers.get(&evacuation.victim_id).cloned() else {
            return;
        };
        if rest.is_some() {
            self.servers.set_rest(victim.id, rest);
        }
        let its_own = victim.evacuation_id == Some(evacuation.id);
        if victim.status != ServerStatus::Evacuating || !its_own {
            return;
        }
        let id = victim.id;
        victim.evacuation_id = None;
        victim.status = if victim.external {
            ServerStatus::Reserved
        } else if self.servers.started_at(id).is_some() {
            ServerStatus::Active
        } else {
            // It was selected before its agent had reported the start.
            ServerStatus::Building
        };
        let starts = victim.status == ServerStatus::Building;
        self.save_server(transition, victim);
        if starts {
            let until = transition.now.plus(self.config.start_timeout_seconds);
            self.servers.calls_mut().waits(id, until);
        }
    }

    /// Ends an evacuation whose victim is gone and whose capacity is free.
    pub(crate) fn end_evacuated(
        &mut self,
        transition: &mut Transition<'_>,
        mut evacuation: Evacuation,
        status: ServerStatus,
        storage: Option<&str>,
    ) {
        let had_failed = evacuation.state == EvacuationState::Failed;
        advance(&mut evacuation, EvacuationEvent::Evacuated);
        evacuation.ended_at = Some(transition.now);
        let victim_id = evacuation.victim_id;
        let victim = self.servers.get(&evacuation.victim_id).cloned();
        // A server that its owner deletes stays `Deleting`; the agent reports the deletion
        // separately. A server that runs on another host by now is not affected: it was selected
        // before it had started, and its start was given up. Nor is one that was started again
        // since.
        let here = |v: &Server| {
            v.status != ServerStatus::Deleting
                && v.host.as_ref() == Some(&evacuation.host)
                && v.starts == evacuation.victim_starts
        };
        // If it was selected twice in one life and left by the first evacuation, the time of its
        // return is already set.
        let waits_so = |v: &Server| v.waits_to_come_back() && v.status == status;
        if let Some(mut victim) = victim.filter(here).filter(|v| !waits_so(v)) {
            victim.fault = Some(ServerFailure {
                code: servers::PREEMPTED.to_owned(),
                message: format!(
                    "{} ({}, {} grace)",
                    cause_text(evacuation.cause),
                    evacuation.behaviour,
                    evacuation.grace
                ),
                at: transition.now,
            });
            let present = victim.evacuation_id;
            self.record_saved(&mut victim, status, storage, transition.now);
            self.servers.forget_started(victim.id);
            self.finish(transition, &mut victim, status);
            self.end_overtaken(transition, present, evacuation.id);
        }
        self.save_evacuation(transition, evacuation);
        if had_failed && let Err(error) = self.rest_anew(victim_id) {
            transition.ignored(format!("the host table refused a server: {error}"));
        }
    }

    /// Recomputes how long a server is not selected, from its evacuations that are still failed:
    /// one that had failed was completed after all. The result must follow from the database alone;
    /// otherwise a scheduler that reads the region anew would select other victims.
    pub(crate) fn rest_anew(&mut self, victim: ServerId) -> Result<(), RegionError> {
        let failed = self.evacuations.of_victim(victim);
        let failed = failed.filter(|e| e.state == EvacuationState::Failed);
        let last = failed.filter_map(|e| e.ended_at).max();
        let rest = last.map(|at| self.config.evacuation().rest_limit(at));
        self.servers.set_rest(victim, rest);
        self.show_to_table(victim)
    }

    /// Ends the present evacuation of a victim that has left by an earlier one, which had been
    /// given up.
    fn end_overtaken(
        &mut self,
        transition: &mut Transition<'_>,
        present: Option<EvacuationId>,
        done: EvacuationId,
    ) {
        let present = present.filter(|id| *id != done && self.evacuations.is_active(id));
        if let Some(mut evacuation) = present.and_then(|id| self.evacuations.get(&id)).cloned() {
            advance(&mut evacuation, EvacuationEvent::Evacuated);
            evacuation.reason = Some(EndReason::Overtaken(done).to_string());
            evacuation.ended_at = Some(transition.now);
            self.save_evacuation(transition, evacuation);
        }
    }
}

/// Applies an event to the record of an evacuation. False: the event changes nothing.
///
/// In a region a victim holds its capacity until it is gone, so a failure ends its evacuation at
/// once.
pub(crate) fn advance(evacuation: &mut Evacuation, event: EvacuationEvent) -> bool {
    match Progress::of(evacuation).after(event, AfterFailure::Fail) {
        Some(next) => {
            next.store(evacuation);
            true
        }
        None => false,
    }
}
