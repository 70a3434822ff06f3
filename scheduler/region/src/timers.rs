//! What happens because time has passed: silent agents, notices without an answer, servers that do not start.

use crate::state::Step;
use crate::{Event, Region};
use ebbtide_model::record::Change;
use ebbtide_model::{Evacuation, EvacuationId, EvacuationState, MessageId, Seconds, ServerId};

/// How long evacuations that have ended are kept in memory although no budget counts them: late reports are common then.
const KEEP_ENDED: Seconds = Seconds(600);

impl Region {
    pub(crate) fn published(&mut self, step: &mut Step<'_>, id: MessageId, evacuation: Option<EvacuationId>) {
        step.effects.changes.push(Change::Dequeue(id));
        let Some(evacuation_id) = evacuation else { return };
        if self.unsent_notices.get(&evacuation_id) == Some(&id) {
            self.unsent_notices.remove(&evacuation_id);
        }
        let Some(mut evacuation) = self.evacuations.get(&evacuation_id).cloned() else { return };
        if evacuation.state == EvacuationState::Claimed {
            evacuation.state = EvacuationState::Notified;
            evacuation.notified_at = Some(step.now);
            if !evacuation.spare_requested {
                evacuation.give_up_at = step.now.plus(self.config.notice_timeout_seconds);
            }
            self.save_evacuation(step, evacuation);
        }
    }

    pub(crate) fn tick(&mut self, step: &mut Step<'_>) {
        self.look_after_hosts(step);
        self.look_after_evacuations(step);
        self.look_after_starts(step);
        self.resting.retain(|_, until| *until > step.now);
        let oldest = step.now.minus(self.longest_window().max(KEEP_ENDED));
        let active = &self.active;
        self.evacuations.retain(|id, e| active.contains(id) || e.claimed_at > oldest);
    }

    fn look_after_hosts(&mut self, step: &mut Step<'_>) {
        let down_after = self.config.host_down_seconds.as_millis();
        for (name, entry) in &mut self.hosts {
            let health = entry.host.health(step.now, down_after);
            if health != entry.health {
                entry.health = health;
                self.table.set_health(name, health);
                step.effects.changes.push(Change::PutHost(Box::new(entry.host.clone())));
                step.effects.events.push(Event::Host(Box::new(entry.host.clone()), health));
            }
        }
    }

    fn look_after_evacuations(&mut self, step: &mut Step<'_>) {
        let due: Vec<EvacuationId> = self
            .active
            .iter()
            .filter(|id| self.evacuations.get(id).is_some_and(|e| e.give_up_at <= step.now))
            .copied()
            .collect();
        for id in due {
            // An earlier one of this round may have changed it.
            let Some(evacuation) = self.evacuations.get(&id).filter(|e| !e.state.is_final()).cloned() else {
                continue;
            };
            self.overdue(step, evacuation);
        }
    }

    fn overdue(&mut self, step: &mut Step<'_>, mut evacuation: Evacuation) {
        if evacuation.spare_requested {
            let why = format!(
                "the agent on {} did not say whether the server lives; its heartbeat will",
                evacuation.host
            );
            self.end_failed(step, evacuation, &why);
            return;
        }
        match evacuation.state {
            // The broker has not taken the notice yet, so the agent is not to blame. A fresh one replaces it, because the old one
            // may say that it is too late to begin.
            EvacuationState::Claimed => {
                self.send_notice(step, &mut evacuation);
                self.save_evacuation(step, evacuation);
            }
            EvacuationState::Notified if evacuation.attempts < self.config.notice_attempts => {
                self.send_notice(step, &mut evacuation);
                self.save_evacuation(step, evacuation);
            }
            EvacuationState::Notified => {
                let why = format!(
                    "the agent on {} did not answer {} notices in {}",
                    evacuation.host,
                    evacuation.attempts,
                    Seconds(self.config.notice_timeout_seconds.0.saturating_mul(evacuation.attempts))
                );
                self.end_failed(step, evacuation, &why);
            }
            _ => {
                let why = format!(
                    "the agent on {} did not report the end within {} after the grace period",
                    evacuation.host, self.config.act_timeout_seconds
                );
                self.end_failed(step, evacuation, &why);
            }
        }
    }

    fn look_after_starts(&mut self, step: &mut Step<'_>) {
        let late: Vec<ServerId> =
            self.building.iter().filter(|(_, until)| **until <= step.now).map(|(id, _)| *id).collect();
        for id in late {
            self.building.remove(&id);
            let Some(host) = self.servers.get(&id).and_then(|s| s.host.clone()) else { continue };
            let why = format!("the agent did not start the server within {}", self.config.start_timeout_seconds);
            self.start_failed(step, id, &host, &why);
        }
    }
}
