//! What is due, done.

use super::drive::Stop;
use super::placement::{Rows, amounts};
use super::world::NovaWorld;
use crate::Mutation;
use crate::violation::Invariant;
use ebbtide_model::message::{Body, Message, Notice, Spare, Spared};
use ebbtide_model::{MessageId, Seconds};
use ebbtide_preemption::{
    NoticeOrder, Preemption, PreemptionAction, PreemptionInput, PreemptionState, Victim,
    VictimState, WithdrawalReason,
};
use ebbtide_swap::{InstanceRow, SwapResult, SwapState};
use uuid::Uuid;

/// How long the broker may still redeliver the message of an adopted record to a scheduler.
const REDELIVERY: Seconds = Seconds(60);

impl NovaWorld {
    pub(super) fn perform(
        &mut self,
        who: usize,
        id: Uuid,
        action: &PreemptionAction,
    ) -> Result<(), Stop> {
        let Some(record) = self.schedulers[who]
            .driven
            .get(&id)
            .map(|d| d.record.clone())
        else {
            return Err(Stop);
        };
        match action {
            PreemptionAction::Swap => self.swap(who, id, &record),
            PreemptionAction::ReadSwap => self.read_swap(who, id, &record),
            PreemptionAction::AskCaller
                if record.state == PreemptionState::Claimed && self.is_overfull(&record) =>
            {
                self.feed(
                    who,
                    id,
                    &PreemptionInput::Withdraw {
                        why: WithdrawalReason::HostOverfull,
                        reason: WithdrawalReason::HostOverfull.text(),
                    },
                )
            }
            PreemptionAction::AskCaller => {
                let waits = self.caller_waits(who, id);
                self.feed(who, id, &PreemptionInput::Caller { waits })?;
                if self.breaks(Mutation::AnswerBeforeGone) {
                    self.perform(who, id, &PreemptionAction::Answer)?;
                }
                Ok(())
            }
            PreemptionAction::Notify(order) => self.notify(who, id, &record, order),
            PreemptionAction::Spare(place) => self.spare(who, id, &record, *place),
            PreemptionAction::Answer => {
                self.feed(who, id, &PreemptionInput::Answered)?;
                let Some(driven) = self.schedulers[who].driven.get_mut(&id) else {
                    return Err(Stop);
                };
                // A report that another scheduler wrote was faster: it may have called everything
                // off.
                if !driven.record.answered {
                    return Ok(());
                }
                if let Some(n) = driven.caller.take() {
                    self.answer_with(who, n, &record);
                }
                Ok(())
            }
            PreemptionAction::AnswerNoRoom => self.feed(who, id, &PreemptionInput::Answered),
            // Instances here are never stopped.
            PreemptionAction::Release(place) => {
                self.feed(who, id, &PreemptionInput::Released { victim: *place })
            }
            PreemptionAction::Record(place) => self.record_usage(who, id, &record, *place),
            PreemptionAction::GiveBack => self.give_back(who, id, &record),
        }
    }

    fn swap(&mut self, who: usize, id: Uuid, record: &Preemption) -> Result<(), Stop> {
        if self.breaks(Mutation::NoticeBeforeSwap) {
            for victim in &record.victims {
                self.send_notice(
                    record,
                    victim,
                    1,
                    self.clock(who).plus(self.policy.evacuation.patience()),
                );
            }
        }
        let driven = self.schedulers[who].driven.get(&id);
        let sent_before = driven.is_some_and(|d| d.doubtful);
        let held_before = self.is_swapped(record);
        let rows = self.rows(record);
        let swapped = self
            .placement
            .with_room(&rows, async |room| room.swap(record, sent_before).await);
        if !held_before && self.is_swapped(record) {
            self.in_force.insert(id);
            self.swapped.insert(id);
        }
        let input = match &swapped {
            SwapResult::Taken => PreemptionInput::Swapped,
            SwapResult::Refused(reason) => PreemptionInput::SwapRefused { reason },
            SwapResult::Unknown if self.breaks(Mutation::LostAnswerTakenAsRefusal) => {
                PreemptionInput::SwapRefused {
                    reason: "no answer",
                }
            }
            SwapResult::Unknown => {
                if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
                    driven.doubtful = true;
                }
                PreemptionInput::SwapUnknown
            }
        };
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        self.feed(who, id, &input)
    }

    fn read_swap(&mut self, who: usize, id: Uuid, record: &Preemption) -> Result<(), Stop> {
        let rows = self.rows(record);
        let found = self
            .placement
            .with_room(&rows, async |room| room.read_swap(record).await);
        let input = match found {
            Ok(SwapState::Done) => PreemptionInput::SwapRead { in_force: true },
            Ok(SwapState::NotDone) => PreemptionInput::SwapRead { in_force: false },
            Ok(SwapState::Abandoned) => PreemptionInput::SwapAbandoned,
            // It is not known yet.
            Err(_) => {
                self.schedulers[who].rests = true;
                return Ok(());
            }
        };
        self.feed(who, id, &input)
    }

    /// What Nova has about those with whom a record has to do.
    fn rows(&self, record: &Preemption) -> Rows {
        let on = |host: usize| InstanceRow {
            host: self.agents.get(host).map(|agent| agent.name.clone()),
            ..InstanceRow::default()
        };
        let victims = record.victims.iter().filter_map(|victim| {
            let instance = self.instances.get(&victim.server.0)?;
            Some((victim.server.0, on(instance.host)))
        });
        let newcomers = record.newcomers.iter().filter_map(|newcomer| {
            let host = self.placed_on(newcomer.instance)?;
            Some((newcomer.instance, on(host)))
        });
        Rows(victims.chain(newcomers).collect())
    }

    /// Whether Placement has the newcomer where the swap puts it.
    fn newcomer_holds(&self, record: &Preemption) -> bool {
        record.newcomers.first().is_some_and(|newcomer| {
            let held = self.placement.consumers.get(&newcomer.instance);
            held.map(|h| (h.host, h.vcpus)) == amounts(&newcomer.claim)
        })
    }

    /// Whether the swap was taken and its newcomer was deleted since: victims that live hold only
    /// what the swap leaves to them.
    fn is_abandoned(&self, record: &Preemption) -> bool {
        !self.newcomer_holds(record)
            && record.victims.iter().any(|victim| {
                let held = self.placement.consumers.get(&victim.server.0);
                let keeps = victim.keeps.as_ref().and_then(amounts);
                let lives = self.instances.contains_key(&victim.server.0);
                lives && held.map(|h| (h.host, h.vcpus)) == keeps
            })
    }

    /// Whether the swap of this record is in force: the newcomer alone does not tell, because
    /// another preemption may have put it there. What victims hold then, the swap has left to them;
    /// one that its owner has deleted since holds nothing at all.
    fn is_swapped(&self, record: &Preemption) -> bool {
        self.newcomer_holds(record)
            && record.victims.iter().all(|victim| {
                let held = self.placement.consumers.get(&victim.server.0);
                let keeps = victim.keeps.as_ref().and_then(amounts);
                held.is_none() || held.map(|h| (h.host, h.vcpus)) == keeps
            })
    }

    /// Where Nova has a newcomer, once its caller has an answer, whosever it is.
    fn placed_on(&self, instance: Uuid) -> Option<usize> {
        let request = self.of.get(&instance).map(|n| &self.requests[*n])?;
        // One that was started and whose guest is not there any more is deleted in Nova.
        let there =
            !request.deleted && (!request.started || self.instances.contains_key(&instance));
        request.answer.flatten().filter(|_| there)
    }

    fn caller_waits(&self, who: usize, id: Uuid) -> bool {
        let Some(driven) = self.schedulers[who].driven.get(&id) else {
            return false;
        };
        let instance = driven.record.newcomers.first().map(|n| n.instance);
        let request = instance.and_then(|id| self.of.get(&id));
        let request = request.map(|n| &self.requests[*n]);
        let here = match (driven.caller, driven.adopted_at) {
            (Some(n), _) => self.requests[n].waits,
            (None, Some(since)) => since.plus(REDELIVERY) > self.clock(who),
            (None, None) => true,
        };
        here && request.is_some_and(super::callers::CallerRequest::is_open)
    }

    fn send(&mut self, host: &str, id: Uuid, body: Body) {
        let Some(host) = self.agents.iter().position(|a| a.name == host) else {
            return;
        };
        let message = Message {
            id: MessageId(id),
            source: "/ebbtide/scheduler".to_owned(),
            time: self.now,
            body,
        };
        self.broker.agents[host].push_back(message);
    }

    fn send_notice(
        &mut self,
        record: &Preemption,
        victim: &Victim,
        attempt: u32,
        begin_before: ebbtide_model::Timestamp,
    ) {
        // An instance that is already gone cannot be harmed. Its record may count as swapped
        // because the newcomer got its allocations in another way.
        let lives = self.instances.contains_key(&victim.server.0);
        if record.is_reclaim() {
            self.check_reclaimed(victim);
        } else if record.newcomers.is_empty() {
            self.check_age(victim);
        } else if lives && !self.swapped.contains(&record.id) {
            let what = format!(
                "a notice is sent to {} before Placement has taken the swap",
                self.event_log.of(victim.server.0)
            );
            self.fail(Invariant::NoEndForNothing, what);
        }
        self.records.insert(victim.evacuation.0, record.id);
        let body = Body::Notice(Notice {
            evacuation_id: victim.evacuation,
            server_id: victim.server,
            behaviour: victim.behaviour,
            grace_seconds: victim.grace,
            attempt,
            begin_before,
        });
        let id = Uuid::new_v5(&victim.evacuation.0, format!("notice {attempt}").as_bytes());
        self.log(|s| {
            format!(
                "to {}: {} has to leave ({} of grace, attempt {attempt})",
                victim.host,
                s.of(victim.server.0),
                victim.grace
            )
        });
        self.send(&victim.host, id, body);
    }

    fn notify(
        &mut self,
        who: usize,
        id: Uuid,
        record: &Preemption,
        order: &NoticeOrder,
    ) -> Result<(), Stop> {
        let Some(victim) = record.victims.get(order.victim) else {
            return Ok(());
        };
        if !self.broker.up {
            self.schedulers[who].rests = true;
            return Ok(());
        }
        self.send_notice(record, victim, order.attempt, order.begin_before);
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        self.feed(
            who,
            id,
            &PreemptionInput::NoticePublished {
                victim: order.victim,
                attempt: order.attempt,
                begin_before: order.begin_before,
            },
        )
    }

    fn spare(
        &mut self,
        who: usize,
        id: Uuid,
        record: &Preemption,
        place: usize,
    ) -> Result<(), Stop> {
        let Some(victim) = record.victims.get(place) else {
            return Ok(());
        };
        if !self.broker.up {
            self.schedulers[who].rests = true;
            return Ok(());
        }
        self.spares.insert(victim.evacuation.0);
        let spare = Uuid::new_v5(&victim.evacuation.0, b"spare");
        let body = Body::Spare(Spare {
            evacuation_id: victim.evacuation,
            server_id: victim.server,
        });
        self.log(|s| {
            format!(
                "to {}: {} may stay after all",
                victim.host,
                s.of(victim.server.0)
            )
        });
        self.send(&victim.host, spare, body);
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        self.feed(who, id, &PreemptionInput::SparePublished { victim: place })?;
        if self.breaks(Mutation::SpareTakenForAnswer) {
            let word = Body::Spared(Spared {
                evacuation_id: victim.evacuation,
                host: victim.host.clone(),
                server_id: victim.server,
            });
            return self.feed(who, id, &PreemptionInput::Report(&word));
        }
        Ok(())
    }

    /// An agent follows a notice without an open row in the ledger. The scheduler spares its
    /// victim.
    pub(super) fn spare_stranger(&mut self, body: &Body) {
        let Body::Draining(report) = body else { return };
        let spare = Body::Spare(Spare {
            evacuation_id: report.evacuation_id,
            server_id: report.server_id,
        });
        let id = Uuid::new_v5(&report.evacuation_id.0, b"spare a stranger");
        let host = report.host.clone();
        self.log(|s| {
            format!(
                "to {host}: {} may stay, its notice was withdrawn",
                s.of(report.server_id.0)
            )
        });
        self.send(&host, id, spare);
    }

    fn record_usage(
        &mut self,
        who: usize,
        id: Uuid,
        record: &Preemption,
        place: usize,
    ) -> Result<(), Stop> {
        let Some(victim) = record.victims.get(place) else {
            return Ok(());
        };
        if !matches!(victim.state, VictimState::Evacuated { .. }) {
            return Ok(());
        }
        if !self.ledger.record_usage(victim.evacuation.0) {
            self.schedulers[who].rests = true;
            return Ok(());
        }
        if self
            .ledger
            .usage
            .get(&victim.evacuation.0)
            .is_some_and(|n| *n > 1)
        {
            let what = "the usage of one evacuation was written twice".to_owned();
            self.fail(Invariant::ExactlyOnce, what);
        }
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        self.feed(who, id, &PreemptionInput::Recorded { victim: place })
    }

    /// Newcomers lose what they claimed, victims that live have again what they had. Who is not as
    /// we left it is left alone.
    fn give_back(&mut self, who: usize, id: Uuid, record: &Preemption) -> Result<(), Stop> {
        let rows = self.rows(record);
        let returned = self
            .placement
            .with_room(&rows, async |room| room.return_all(record).await);
        // Until then an agent may act that has not heard of it.
        let settled = !record.victims.iter().any(|victim| victim.state.is_open());
        if settled && !self.newcomer_holds(record) && !self.is_abandoned(record) {
            self.in_force.remove(&id);
        }
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        let input = match &returned {
            Ok(()) => PreemptionInput::GivenBack,
            Err(reason) => PreemptionInput::GiveBackFailed { reason },
        };
        self.feed(who, id, &input)
    }
}
