//! Executes the actions that are due.

use super::PreemptionResult;
use super::drive::{Driver, RowLost};
use crate::preemption::{
    NoticeOrder, PreemptionAction, PreemptionInput, PreemptionState, Victim, VictimState,
    WithdrawalReason,
};
use crate::traces;
use ebbtide_bus::{BusError, OutgoingMessage};
use ebbtide_fail_points::{FailPoint, reach};
use ebbtide_model::message::{Body, EvacuationEnd, Message, Notice, Spare};
use ebbtide_model::{MessageId, Seconds};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::NewUsage;
use ebbtide_swap::{SwapResult, SwapState};
use ebbtide_telemetry::{Span, SpanKind};
use oslo_messaging::CallerState;
use std::time::Duration;
use uuid::Uuid;

/// The `source` of the scheduler's messages.
const SOURCE: &str = "/ebbtide/scheduler";
/// Pause before the scheduler asks an unavailable service again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long the broker may still redeliver the message of a request whose record has no caller
/// here: as long as the caller waits without heartbeats (`rpc_response_timeout`).
const REDELIVERY: Seconds = Seconds(60);
/// How often the scheduler asks the databases whether the caller still waits. Without an answer it
/// sends no notice.
const CALLER_TRIES: u32 = 3;
/// Why a scheduler that adopts an unconfirmed record withdraws it. It makes the swap first: the one
/// that died may have sent it, and Placement may be working on it.
const UNASKED: &str = "the scheduler that asked whether the victims are needed has ended";
/// How often the scheduler checks again for a missing reply queue: for 15 s in total. Callers of
/// oslo.messaging reconnect after 1, 3 and at most 7 s.
const REPLY_QUEUE_TRIES: u32 = 30;

impl Driver {
    pub(super) async fn perform(&mut self, action: &PreemptionAction) -> Result<(), RowLost> {
        match action {
            PreemptionAction::Swap => self.swap().await,
            PreemptionAction::ReadSwap => self.read_swap().await,
            PreemptionAction::AskCaller => self.ask_caller().await,
            PreemptionAction::Notify(order) => self.notify(order).await,
            PreemptionAction::Spare(victim) => self.spare(*victim).await,
            PreemptionAction::Answer => {
                // The scheduler writes the record before it answers. A scheduler that finds the row
                // later then repeats the answer, and the preemption is not withdrawn any more.
                self.feed(&PreemptionInput::Answered).await?;
                // Another scheduler wrote a report first, which may have withdrawn the preemption.
                if !self.held.record.answered {
                    return Ok(());
                }
                let result = self.held.record.result.clone();
                self.tell(PreemptionResult::Room(result));
                reach(FailPoint::NovaReplied);
                Ok(())
            }
            PreemptionAction::AnswerNoRoom => self.feed(&PreemptionInput::Answered).await,
            PreemptionAction::Release(victim) => self.release(*victim).await,
            PreemptionAction::Record(victim) => self.record(*victim).await,
            PreemptionAction::GiveBack => self.give_back().await,
        }
    }

    /// Asks whether the caller still waits and, right after the swap, whether more runs on the
    /// hosts than fits and whether the victims are needed. The questions do not depend on each
    /// other.
    async fn ask_caller(&mut self) -> Result<(), RowLost> {
        let after_swap = self.held.record.state == PreemptionState::Claimed;
        let asked = self.confirmation.take();
        let fits = async {
            let overfull = match after_swap {
                true => self.overfull().await,
                false => None,
            };
            overfull.map_or(Ok(()), |what| {
                let reason = format!("{what} would run there");
                Err((WithdrawalReason::HostOverfull, reason))
            })
        };
        let confirmed = async {
            let answer = match asked {
                _ if !self.held.record.unconfirmed => Ok(()),
                Some(asked) => asked.wait().await,
                None => Err(UNASKED.to_owned()),
            };
            answer.map_err(|reason| (WithdrawalReason::VictimsUnconfirmed, reason))
        };
        let waits = async { Ok(self.caller_waits().await) };
        match tokio::try_join!(fits, confirmed, waits) {
            Err((why, reason)) => {
                self.feed(&PreemptionInput::Withdraw {
                    why,
                    reason: &reason,
                })
                .await
            }
            Ok(((), (), waits)) => {
                reach(FailPoint::NovaSwapped);
                // Both are in one write.
                self.feed(&PreemptionInput::Confirmed).await?;
                self.feed(&PreemptionInput::Caller { waits }).await
            }
        }
    }

    async fn swap(&mut self) -> Result<(), RowLost> {
        let mut claim = Span::part("claim", SpanKind::Internal, self.trace);
        let swapped = self.room().swap(&self.held.record, self.swap_sent).await;
        if let SwapResult::Refused(reason) = &swapped {
            claim.fail(|| reason.clone());
        }
        self.trace = claim.context();
        drop(claim);
        match swapped {
            SwapResult::Taken => self.feed(&PreemptionInput::Swapped).await,
            SwapResult::Refused(reason) => {
                self.mark_hosts();
                self.feed(&PreemptionInput::SwapRefused { reason: &reason })
                    .await
            }
            SwapResult::Unknown => {
                self.swap_sent = true;
                self.feed(&PreemptionInput::SwapUnknown).await?;
                pause(shared_stop(self), RETRY_PAUSE).await;
                Ok(())
            }
        }
    }

    async fn read_swap(&mut self) -> Result<(), RowLost> {
        let found = self.room().read_swap(&self.held.record).await;
        match found {
            Ok(SwapState::Done) => {
                self.feed(&PreemptionInput::SwapRead { in_force: true })
                    .await
            }
            Ok(SwapState::NotDone) => {
                self.feed(&PreemptionInput::SwapRead { in_force: false })
                    .await
            }
            Ok(SwapState::Abandoned) => self.feed(&PreemptionInput::SwapAbandoned).await,
            Err(reason) => {
                tracing::warn!(
                    code = "EB-DOOR-023",
                    preemption = %self.held.id,
                    "{reason}; whether the swap was done is not known yet"
                );
                pause(shared_stop(self), RETRY_PAUSE).await;
                Ok(())
            }
        }
    }

    /// Whether the swap has overcommitted a newcomer's host: more runs there than Placement shows,
    /// or another scheduler's claim met the swap. If this cannot be determined, the scheduler does
    /// not begin.
    async fn overfull(&self) -> Option<String> {
        for newcomer in &self.held.record.newcomers {
            for (provider, claimed) in crate::facts::amounts(&newcomer.claim.allocations) {
                let runs = self.all.overfull(provider, Some(self.held.id));
                let given = self.all.overcommitted(provider, &claimed);
                match tokio::try_join!(runs, given) {
                    Ok((None, None)) => {}
                    Ok((what, given)) => return what.or(given),
                    Err(error) => return Some(format!("{error}; it is not known what")),
                }
            }
        }
        None
    }

    /// Schedules a read of the hosts: a conflict has shown that their known state is wrong.
    pub(super) fn mark_hosts(&self) {
        let record = &self.held.record;
        let claims = record.newcomers.iter().map(|newcomer| &newcomer.claim);
        let had = record.victims.iter().map(|victim| &victim.had);
        for holding in claims.chain(had) {
            for provider in crate::facts::amounts(&holding.allocations).into_keys() {
                self.all.shared.facts.providers.mark(provider);
            }
        }
    }

    /// Whether the caller still waits. In doubt the answer is no: the scheduler evicts no server
    /// for a request that may not exist any more.
    async fn caller_waits(&self) -> bool {
        let Some(waiting) = &self.waiting else {
            return match self.adopted_at {
                Some(since) if since.plus(REDELIVERY) <= clock::now() => false,
                _ => self.newcomers_are_wanted().await,
            };
        };
        let (mut state, mut wanted) =
            tokio::join!(waiting.caller.ask(), self.newcomers_are_wanted());
        // After a restart of the broker the scheduler may read a request before its caller has
        // declared its reply queue again.
        let mut left = REPLY_QUEUE_TRIES;
        while state == CallerState::Missing && left > 0 {
            left -= 1;
            if !pause(shared_stop(self), RETRY_PAUSE).await {
                break;
            }
            state = waiting.caller.ask().await;
            if state != CallerState::Missing {
                // The databases' answer is as old as the first look at the queue.
                wanted = self.newcomers_are_wanted().await;
            }
        }
        let left = [
            CallerState::Missing,
            CallerState::Gone,
            CallerState::NotListening,
        ];
        if left.contains(&state) {
            tracing::info!(preemption = %self.held.id, ?state, "the caller's reply queue");
            return false;
        }
        wanted
    }

    /// Whether Nova's databases say that a host is still wanted for one of the newcomers.
    async fn newcomers_are_wanted(&self) -> bool {
        let nova = self.all.shared.facts.database.nova();
        let stop = shared_stop(self);
        let mut wanted = false;
        for newcomer in &self.held.record.newcomers {
            let mut known = None;
            for _ in 0..CALLER_TRIES {
                match nova.caller_waits(&newcomer.instance.to_string()).await {
                    Ok(wait) => {
                        known = Some(wait);
                        break;
                    }
                    Err(error) => tracing::warn!(code = error.code(), "{error}"),
                }
                pause(stop, RETRY_PAUSE).await;
            }
            match known {
                Some(wait) if wait.waits() => wanted = true,
                // The preemption goes on as long as one of several newcomers is wanted.
                Some(wait) => {
                    tracing::info!(preemption = %self.held.id, instance = %newcomer.instance, "{wait:?}");
                }
                None => return false,
            }
        }
        wanted
    }

    async fn notify(&mut self, order: &NoticeOrder) -> Result<(), RowLost> {
        let Some(victim) = self.held.record.victims.get(order.victim) else {
            return Ok(());
        };
        let body = Body::Notice(Notice {
            evacuation_id: victim.evacuation,
            server_id: victim.server,
            behaviour: victim.behaviour,
            grace_seconds: victim.grace,
            attempt: order.attempt,
            begin_before: order.begin_before,
        });
        let host = victim.host.clone();
        let id = named(victim, &format!("notice {}", order.attempt));
        if self.send(&host, id, body).await {
            reach(FailPoint::NovaNoticed);
            self.feed_notice(&PreemptionInput::NoticePublished {
                victim: order.victim,
                attempt: order.attempt,
                begin_before: order.begin_before,
            })
            .await?;
        }
        Ok(())
    }

    async fn spare(&mut self, place: usize) -> Result<(), RowLost> {
        let Some(victim) = self.held.record.victims.get(place) else {
            return Ok(());
        };
        let body = Body::Spare(Spare {
            evacuation_id: victim.evacuation,
            server_id: victim.server,
        });
        let host = victim.host.clone();
        let id = named(victim, "spare");
        if self.send(&host, id, body).await {
            self.feed(&PreemptionInput::SparePublished { victim: place })
                .await?;
        }
        Ok(())
    }

    /// Sends a message to the broker. If the broker does not accept it, pauses and returns false;
    /// the action stays due.
    async fn send(&self, host: &str, id: Uuid, body: Body) -> bool {
        match ebbtide_telemetry::within(self.trace, self.all.send(host, id, body)).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(
                    code = error.code(),
                    host,
                    "a message for the agent was not sent: {error}"
                );
                pause(shared_stop(self), RETRY_PAUSE).await;
                false
            }
        }
    }

    async fn record(&mut self, place: usize) -> Result<(), RowLost> {
        let Some(victim) = self.held.record.victims.get(place) else {
            return Ok(());
        };
        let VictimState::Evacuated {
            how, at, unbilled, ..
        } = victim.state
        else {
            return Ok(());
        };
        reach(FailPoint::NovaEvacuated);
        let usage = NewUsage {
            evacuation_id: victim.evacuation.0,
            server_id: victim.server.0,
            project_id: victim.had.project_id.clone(),
            flavor: victim.flavor.clone(),
            launched_at: victim.launched_at.map(ebbtide_model::Timestamp::as_millis),
            ended_at: at.as_millis(),
            unbilled_seconds: match (unbilled, how, victim.launched_at) {
                (Some(time), ..) => i64::from(time.0),
                // The agent did not know the start time.
                (None, EvacuationEnd::Migrated, _) | (None, _, None) => 0,
                (None, _, Some(since)) => at.millis_since(since) / 1000 % 3600,
            },
        };
        let written = async {
            self.all.note_retained(victim, how, at).await?;
            self.all.shared.ledger.record_usage(&usage).await
        };
        match written.await {
            Ok(_) => {
                tracing::info!(
                    server = %victim.server,
                    project = %victim.had.project_id,
                    unbilled_seconds = usage.unbilled_seconds,
                    "the victim is gone; its last partial hour is not billed"
                );
                self.feed(&PreemptionInput::Recorded { victim: place })
                    .await
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "{error}");
                pause(shared_stop(self), RETRY_PAUSE).await;
                Ok(())
            }
        }
    }
}

impl super::Evacuations {
    /// Sends a message for an agent to the broker.
    pub(super) async fn send(&self, host: &str, id: Uuid, body: Body) -> Result<(), BusError> {
        let message = Message {
            id: MessageId(id),
            source: SOURCE.to_owned(),
            time: clock::now(),
            body,
        };
        let bytes = message
            .to_bytes()
            .map_err(|error| BusError::InvalidMessage {
                message_id: id,
                reason: error.to_string(),
            })?;
        let queue = self.shared.prefix.agent(host)?;
        let mut span = traces::message(&message.body, host);
        let header = span.context().map(|context| context.to_string());
        let outgoing = OutgoingMessage::cloud_event(id, bytes).traced(header);
        let sent = match self.shared.bus.publish(&queue, &outgoing).await {
            // The agent declares its queue when it starts, so it has never started. The queue keeps
            // the message until the agent starts.
            Err(BusError::Unroutable { .. }) => {
                self.shared.bus.declare(&queue).await?;
                self.shared.bus.publish(&queue, &outgoing).await
            }
            outcome => outcome,
        };
        sent.inspect_err(|error| span.fail(|| error.to_string()))
    }
}

/// A message identifier. The same message about the same evacuation has the same identifier, no
/// matter which scheduler sends it.
pub(super) fn named(victim: &Victim, words: &str) -> Uuid {
    Uuid::new_v5(&victim.evacuation.0, words.as_bytes())
}

fn shared_stop(driver: &Driver) -> &tokio_util::sync::CancellationToken {
    driver.all.shared.tasks.stop()
}
