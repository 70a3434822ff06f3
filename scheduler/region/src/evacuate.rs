//! The way of a victim: begun with the preemptor's claim, ended by what the agent says, spared if the preemptor goes away.

use crate::state::Step;
use crate::{Region, room, servers};
use ebbtide_model::message::{Body, Notice, Spare};
use ebbtide_model::record::Change;
use ebbtide_model::server::Fault;
use ebbtide_model::{
    DecisionId, Evacuation, EvacuationId, EvacuationState, Seconds, Server, ServerId, ServerStatus,
    Timestamp, Victim,
};

impl Region {
    /// Writes the evacuation of a victim and puts its notice into the outbox, in the transaction of the claim.
    pub(crate) fn begin_evacuation(
        &mut self,
        step: &mut Step<'_>,
        victim: &Victim,
        preemptor: &Server,
        decision_id: DecisionId,
    ) {
        let Some(mut server) = self.servers.get(&victim.server_id).cloned() else {
            // The engine decides on this region's table in the same step, so its victims are here.
            step.ignored(format!("victim {} is not a server of this region", victim.server_id));
            return;
        };
        let id = EvacuationId(step.uuid());
        let behaviour = server.flavor.properties().map(|p| p.interruption).unwrap_or_default();
        let mut evacuation = Evacuation {
            id,
            victim_id: server.id,
            victim_project_id: server.project_id.clone(),
            victim_group_id: server.group_id,
            host: server.host.clone().unwrap_or_default(),
            preemptor_id: preemptor.id,
            decision_id,
            behaviour,
            grace: server.grace(self.config.default_grace_seconds),
            cost: victim.cost,
            state: EvacuationState::Claimed,
            attempts: 0,
            give_up_at: step.now,
            spare_requested: false,
            reason: None,
            claimed_at: step.now,
            notified_at: None,
            draining_at: None,
            deadline_at: None,
            ended_at: None,
        };
        self.send_notice(step, &mut evacuation);
        server.status = ServerStatus::Evacuating;
        server.evacuation_id = Some(id);
        self.save_server(step, server);
        self.save_evacuation(step, evacuation);
    }

    /// Puts the next attempt of a notice into the outbox. An attempt that has not gone out yet is replaced, not repeated.
    pub(crate) fn send_notice(&mut self, step: &mut Step<'_>, evacuation: &mut Evacuation) {
        if let Some(unsent) = self.unsent_notices.remove(&evacuation.id) {
            step.effects.changes.push(Change::Dequeue(unsent));
        } else {
            evacuation.attempts += 1;
        }
        evacuation.give_up_at = step.now.plus(self.config.notice_timeout_seconds);
        let notice = Notice {
            evacuation_id: evacuation.id,
            server_id: evacuation.victim_id,
            behaviour: evacuation.behaviour,
            grace_seconds: evacuation.grace,
            attempt: evacuation.attempts,
            begin_before: step.now.plus(self.patience()),
        };
        let message = step.send(&evacuation.host, Body::Notice(notice), Some(evacuation.id));
        self.unsent_notices.insert(evacuation.id, message);
    }

    /// The longest time from the first notice until the scheduler gives up: after that an agent must not begin any more.
    fn patience(&self) -> Seconds {
        let Seconds(once) = self.config.notice_timeout_seconds;
        Seconds(once.saturating_mul(self.config.notice_attempts))
    }

    /// The preemptor does not need the room any more: its victims live where that is still possible.
    ///
    /// A victim whose room is promised to another claim meanwhile is not spared. The dearest are spared first.
    pub(crate) fn spare_victims_of(&mut self, step: &mut Step<'_>, preemptor: ServerId, why: &str) {
        let mut evacuations: Vec<Evacuation> = self
            .victims_of
            .get(&preemptor)
            .into_iter()
            .flatten()
            .filter_map(|id| self.evacuations.get(id).cloned())
            .filter(|e| !e.spare_requested)
            .collect();
        evacuations.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.id.cmp(&b.id)));
        let mut promised: Vec<Server> = Vec::new();
        for evacuation in evacuations {
            let Some(victim) = self.servers.get(&evacuation.victim_id).cloned() else { continue };
            if self.room_is_promised(&victim, &promised) {
                step.ignored(format!(
                    "server {} is not spared: its room is promised to another claim on {}",
                    victim.id, evacuation.host
                ));
                continue;
            }
            self.spare(step, evacuation, why);
            promised.push(victim);
        }
    }

    /// True if the claims on the victim's host need its room, given those that are being spared there beside it.
    fn room_is_promised(&self, victim: &Server, spared_too: &[Server]) -> bool {
        let Some(usage) = victim.host.as_deref().and_then(|host| self.table.usage(host)) else {
            return false;
        };
        let Ok(properties) = victim.flavor.properties() else { return true };
        properties.resources.iter().any(|(class, amount)| {
            let beside: u64 = spared_too
                .iter()
                .filter(|other| other.host == victim.host)
                .filter_map(|other| other.flavor.properties().ok())
                .map(|p| p.resources.get(class))
                .sum();
            let needed = i64::try_from(amount + beside).unwrap_or(i64::MAX);
            room::future(&usage, class) < needed
        })
    }

    /// Asks the agent to let the victim live. Only its answer ends the evacuation: it may have acted already.
    pub(crate) fn spare(&mut self, step: &mut Step<'_>, mut evacuation: Evacuation, why: &str) {
        if let Some(unsent) = self.unsent_notices.remove(&evacuation.id) {
            // The sender may have this notice in its hands, so the spare goes out all the same, behind it.
            step.effects.changes.push(Change::Dequeue(unsent));
        }
        self.send_spare(step, &evacuation.host, evacuation.id, evacuation.victim_id);
        evacuation.spare_requested = true;
        evacuation.reason = Some(why.to_owned());
        evacuation.give_up_at = step
            .now
            .plus(self.patience())
            .max(evacuation.deadline_at.unwrap_or_default())
            .plus(self.config.act_timeout_seconds);
        self.save_evacuation(step, evacuation);
    }

    pub(crate) fn send_spare(
        &self,
        step: &mut Step<'_>,
        host: &str,
        evacuation_id: EvacuationId,
        server_id: ServerId,
    ) {
        step.send(host, Body::Spare(Spare { evacuation_id, server_id }), None);
    }

    /// The victim lives on.
    pub(crate) fn end_spared(&mut self, step: &mut Step<'_>, mut evacuation: Evacuation) {
        evacuation.state = EvacuationState::Spared;
        evacuation.ended_at = Some(step.now);
        self.back_to_life(step, &evacuation, None);
        self.save_evacuation(step, evacuation);
    }

    /// The evacuation could not be done. The victim is taken to be alive until its host says otherwise; whoever needed the room gets
    /// another place, and the other victims are spared.
    pub(crate) fn end_failed(&mut self, step: &mut Step<'_>, mut evacuation: Evacuation, why: &str) {
        let preemptor = evacuation.preemptor_id;
        let host = evacuation.host.clone();
        if let Some(unsent) = self.unsent_notices.remove(&evacuation.id) {
            step.effects.changes.push(Change::Dequeue(unsent));
        }
        // The agent may only be slow: nobody shall die for a preemptor that is not coming.
        self.send_spare(step, &host, evacuation.id, evacuation.victim_id);
        let wanted = !evacuation.spare_requested;
        evacuation.state = EvacuationState::Failed;
        evacuation.reason = Some(why.to_owned());
        evacuation.ended_at = Some(step.now);
        let rest = step.now.plus(self.config.failed_victim_rest_seconds);
        self.back_to_life(step, &evacuation, Some(rest));
        self.save_evacuation(step, evacuation);
        if wanted {
            self.settle(step, &host, preemptor, why);
        }
    }

    /// A victim that lives is a server like any other again; after a failure it is left alone for a while.
    fn back_to_life(&mut self, step: &mut Step<'_>, evacuation: &Evacuation, rest: Option<Timestamp>) {
        let Some(mut victim) = self.servers.get(&evacuation.victim_id).cloned() else { return };
        if let Some(until) = rest {
            self.resting.insert(victim.id, until);
        }
        if victim.status == ServerStatus::Evacuating {
            victim.status = ServerStatus::Active;
            victim.evacuation_id = None;
            self.save_server(step, victim);
        }
    }

    /// The victim is gone and its room is free.
    pub(crate) fn end_evacuated(
        &mut self,
        step: &mut Step<'_>,
        mut evacuation: Evacuation,
        status: ServerStatus,
    ) {
        evacuation.state = EvacuationState::Evacuated;
        evacuation.ended_at = Some(step.now);
        if let Some(mut victim) = self.servers.get(&evacuation.victim_id).cloned() {
            // A server that its owner deletes meanwhile stays so: the agent reports that by itself.
            if victim.status != ServerStatus::Deleting {
                victim.fault = Some(Fault {
                    code: servers::PREEMPTED.to_owned(),
                    message: format!(
                        "preempted: a normal request needed its room ({}, {} grace)",
                        evacuation.behaviour, evacuation.grace
                    ),
                    at: step.now,
                });
                self.resting.remove(&victim.id);
                self.finish(step, &mut victim, status);
            }
        }
        let host = evacuation.host.clone();
        self.save_evacuation(step, evacuation);
        self.advance_waiting(step, Some(&host));
    }
}
