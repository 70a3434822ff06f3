//! What is due, done.

use super::drive::Stop;
use super::placement::{Rows, amounts};
use super::world::NovaWorld;
use crate::Mutation;
use crate::violation::Promise;
use ebbtide_model::message::{Body, Message, Notice, Spare, Spared};
use ebbtide_model::{MessageId, Seconds};
use ebbtide_preemption::{
    Action, CalledOff, Input, NoticeOrder, Preemption, State, Victim, VictimState,
};
use ebbtide_swap::{InstanceRow, SwapFound, Swapped};
use uuid::Uuid;

/// How long the broker may still redeliver the message of an adopted record to a scheduler.
const REDELIVERY: Seconds = Seconds(60);

impl NovaWorld {
    pub(super) fn perform(&mut self, who: usize, id: Uuid, action: &Action) -> Result<(), Stop> {
        let Some(record) = self.schedulers[who]
            .driven
            .get(&id)
            .map(|d| d.record.clone())
        else {
            return Err(Stop);
        };
        match action {
            Action::Swap => self.swap(who, id, &record),
            Action::ReadSwap => self.read_swap(who, id, &record),
            Action::AskCaller if record.state == State::Claimed && self.is_overfull(&record) => {
                self.feed(
                    who,
                    id,
                    &Input::Withdraw {
                        why: CalledOff::HostOverfull,
                        reason: "more runs there than Placement shows",
                    },
                )
            }
            Action::AskCaller => {
                let waits = self.caller_waits(who, id);
                self.feed(who, id, &Input::Caller { waits })?;
                if self.breaks(Mutation::AnswerBeforeGone) {
                    self.perform(who, id, &Action::Answer)?;
                }
                Ok(())
            }
            Action::Notify(order) => self.notify(who, id, &record, order),
            Action::Spare(place) => self.spare(who, id, &record, *place),
            Action::Answer => {
                self.feed(who, id, &Input::Answered)?;
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
            Action::AnswerNoRoom => self.feed(who, id, &Input::Answered),
            Action::Record(place) => self.record_usage(who, id, &record, *place),
            Action::GiveBack => self.give_back(who, id, &record),
        }
    }

    fn swap(&mut self, who: usize, id: Uuid, record: &Preemption) -> Result<(), Stop> {
        if self.breaks(Mutation::NoticeBeforeSwap) {
            for victim in &record.victims {
                self.send_notice(
                    record,
                    victim,
                    1,
                    self.clock(who).plus(self.policy.patience()),
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
            Swapped::Taken => Input::Swapped,
            Swapped::Refused(reason) => Input::SwapRefused { reason },
            Swapped::Unknown if self.breaks(Mutation::LostAnswerTakenAsRefusal) => {
                Input::SwapRefused {
                    reason: "no answer",
                }
            }
            Swapped::Unknown => {
                if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
                    driven.doubtful = true;
                }
                Input::SwapUnknown
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
            Ok(SwapFound::Done) => Input::SwapRead { held: true },
            Ok(SwapFound::NotDone) => Input::SwapRead { held: false },
            Ok(SwapFound::Abandoned) => Input::SwapAbandoned,
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
        here && request.is_some_and(super::callers::Request::is_open)
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
        if lives && !self.swapped.contains(&record.id) {
            let what = format!(
                "a notice is sent to {} before Placement has taken the swap",
                self.story.of(victim.server.0)
            );
            self.fail(Promise::NoEndForNothing, what);
        }
        self.told.insert(victim.evacuation.0, record.id);
        let body = Body::Notice(Notice {
            evacuation_id: victim.evacuation,
            server_id: victim.server,
            behaviour: victim.behaviour,
            grace_seconds: victim.grace,
            attempt,
            begin_before,
        });
        let id = Uuid::new_v5(&victim.evacuation.0, format!("notice {attempt}").as_bytes());
        self.tell(|s| {
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
            &Input::NoticePublished {
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
        self.tell(|s| {
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
        self.feed(who, id, &Input::SparePublished { victim: place })?;
        if self.breaks(Mutation::SpareTakenForAnswer) {
            let word = Body::Spared(Spared {
                evacuation_id: victim.evacuation,
                host: victim.host.clone(),
                server_id: victim.server,
            });
            return self.feed(who, id, &Input::Report(&word));
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
        self.tell(|s| {
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
        if !matches!(victim.state, VictimState::Gone { .. }) {
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
            self.fail(Promise::ExactlyOnce, what);
        }
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        self.feed(who, id, &Input::Recorded { victim: place })
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
            Ok(()) => Input::GivenBack,
            Err(reason) => Input::GiveBackFailed { reason },
        };
        self.feed(who, id, &input)
    }
}
