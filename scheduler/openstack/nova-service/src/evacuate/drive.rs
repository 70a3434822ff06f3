//! The loop that drives one record.

use super::{
    ActivePreemption, Confirmation, Evacuations, OwnedRow, PreemptionResult, Report, WaitingCaller,
    document,
};
use crate::preemption::{Preemption, PreemptionAction, PreemptionInput, PreemptionState};
use crate::traces;
use ebbtide_model::Timestamp;
use ebbtide_model::message::Body;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::{LedgerError, RowEnd, UpdateResult};
use ebbtide_telemetry::TraceContext;
use oslo_messaging::CallState;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// The longest single wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Pause before the scheduler asks an unavailable ledger again.
const LEDGER_PAUSE: Duration = Duration::from_millis(500);

/// The driver of one record: the record, its row and the tasks that wait for it.
pub(super) struct Driver {
    pub(super) all: Evacuations,
    pub(super) held: OwnedRow,
    pub(super) waiting: Option<WaitingCaller>,
    /// The swap may have been sent before. Then a refusal does not prove that Placement did not
    /// take it.
    pub(super) swap_sent: bool,
    /// The question whether the victims are needed, for a record that is not confirmed yet. `None`:
    /// the scheduler that asked it has ended, or it was answered.
    pub(super) confirmation: Option<Confirmation>,
    /// When this scheduler adopted a record without a caller. The broker may still redeliver the
    /// request's message.
    pub(super) adopted_at: Option<ebbtide_model::Timestamp>,
    reports: mpsc::UnboundedReceiver<Report>,
    /// All newcomers were deleted, or the owner has returned the host.
    gone: mpsc::UnboundedReceiver<()>,
    attach: mpsc::UnboundedReceiver<WaitingCaller>,
    /// Another scheduler wrote the row, and the driver has read it again. Actions that were due
    /// before may not be due any more.
    reloaded: bool,
    /// What messages to agents are children of: the request, and its claim once there is one.
    /// `None` for a record that this scheduler has adopted: a trace ends with its process.
    pub(super) trace: Option<TraceContext>,
    /// The last known version of the row. Another scheduler may have written a report into it.
    seen: watch::Receiver<i64>,
}

/// This scheduler has lost the row.
pub(super) struct RowLost;

impl Evacuations {
    /// Drives a record for a caller that waits at this scheduler.
    pub(super) async fn drive_for(
        &self,
        held: OwnedRow,
        caller: CallState,
        confirmation: Option<Confirmation>,
    ) -> PreemptionResult {
        let (tell, told) = oneshot::channel();
        let waiting = WaitingCaller {
            caller,
            outcome: tell,
        };
        self.spawn_driver(held, Some(waiting), confirmation);
        told.await.unwrap_or(PreemptionResult::Elsewhere)
    }

    /// Starts the task that drives a record.
    pub(super) fn spawn_driver(
        &self,
        held: OwnedRow,
        waiting: Option<WaitingCaller>,
        confirmation: Option<Confirmation>,
    ) {
        let (report_tx, reports) = mpsc::unbounded_channel();
        let (attach_tx, attach) = mpsc::unbounded_channel();
        let (gone_tx, gone) = mpsc::unbounded_channel();
        let (version, seen) = watch::channel(held.version);
        let id = held.id;
        self.driven(|driven| {
            driven.insert(
                id,
                ActivePreemption {
                    leaves_by: leaves_by(&held.record),
                    victims: held.record.victims.iter().map(|v| v.server).collect(),
                    newcomers: held.record.newcomers.iter().map(|n| n.instance).collect(),
                    reclaimed: reclaimed_host(&held.record),
                    gone: gone_tx,
                    gone_sent: false,
                    reports: report_tx,
                    attach: attach_tx,
                    version,
                },
            );
        });
        let adopted_at = waiting.is_none().then(clock::now);
        let mut driver = Driver {
            all: self.clone(),
            swap_sent: held.record.in_doubt,
            held,
            waiting,
            confirmation,
            adopted_at,
            reports,
            gone,
            attach,
            reloaded: false,
            trace: ebbtide_telemetry::current(),
            seen,
        };
        let all = self.clone();
        self.shared.tasks.spawn("preemption", async move {
            let ended = driver.run().await;
            all.driven(|driven| driven.remove(&id));
            if ended.is_err() {
                tracing::info!(preemption = %id, "another scheduler goes on with it");
                driver.tell(PreemptionResult::Elsewhere);
            }
        });
    }
}

/// When the last grace period of the victims ends, if their notices go out at once.
fn leaves_by(record: &Preemption) -> Timestamp {
    let grace = record.victims.iter().map(|victim| victim.grace).max();
    record.planned_at.plus(grace.unwrap_or_default())
}

/// The host whose owner the victims of a record leave for.
fn reclaimed_host(record: &Preemption) -> Option<String> {
    let mut victims = record.victims.iter();
    let victim = victims.next().filter(|_| record.is_reclaim())?;
    Some(victim.host.clone())
}

impl Driver {
    async fn run(&mut self) -> Result<(), RowLost> {
        let stop = self.all.shared.tasks.stop().clone();
        loop {
            self.feed(&PreemptionInput::Tick).await?;
            self.reloaded = false;
            let due = self.held.record.due(clock::now(), &self.all.shared.policy);
            if due.is_empty() {
                if self.held.record.state.is_final() {
                    return self.close().await;
                }
                if !self.wait(&stop).await? {
                    // The record is durable; the scheduler that adopts it continues.
                    return Ok(());
                }
                continue;
            }
            for action in due {
                // If the victims are not needed, the scheduler need not send notices that it has
                // not sent yet.
                if self.gone.try_recv().is_ok() {
                    self.victims_are_not_needed().await?;
                    break;
                }
                self.perform(&action).await?;
                if stop.is_cancelled() {
                    return Ok(());
                }
                if self.reloaded {
                    break;
                }
            }
        }
    }

    /// Waits for a report, a caller, a due time or the stop. False: the scheduler stops.
    async fn wait(&mut self, stop: &tokio_util::sync::CancellationToken) -> Result<bool, RowLost> {
        let until = self
            .held
            .record
            .wake_at(&self.all.shared.policy)
            .map_or(LONGEST_WAIT, |at| {
                let millis = at.millis_since(clock::now()).unsigned_abs();
                Duration::from_millis(millis.max(1)).min(LONGEST_WAIT)
            });
        tokio::select! {
            report = self.reports.recv() => if let Some(report) = report {
                self.report(report).await?;
            },
            gone = self.gone.recv() => if gone.is_some() {
                self.victims_are_not_needed().await?;
            },
            attached = self.attach.recv() => if let Some(attached) = attached {
                self.tell(PreemptionResult::Unanswered);
                self.waiting = Some(attached);
                self.adopted_at = None;
                let mine = Some(self.all.shared.owner.name.clone());
                if self.held.record.answerer != mine {
                    self.held.record.answerer = mine;
                    self.write().await?;
                }
            },
            changed = self.seen.changed() => if changed.is_ok() {
                let seen = *self.seen.borrow_and_update();
                if seen > self.held.version {
                    self.reload().await?;
                }
            },
            () = tokio::time::sleep(until) => {}
            () = stop.cancelled() => return Ok(false),
        }
        Ok(true)
    }

    /// Records that the victims need not leave. If newcomers were deleted, Nova has deleted their
    /// allocations or is about to.
    async fn victims_are_not_needed(&mut self) -> Result<(), RowLost> {
        if self.held.record.is_reclaim() {
            return self.feed(&PreemptionInput::HostReturned).await;
        }
        for newcomer in &self.held.record.newcomers {
            tracing::info!(
                preemption = %self.held.id,
                instance = %newcomer.instance,
                "what room is made for was deleted"
            );
        }
        self.feed(&PreemptionInput::NewcomersGone).await
    }

    async fn report(&mut self, report: Report) -> Result<(), RowLost> {
        if let Body::Draining(draining) = &report.body
            && self.held.record.is_about_earlier_record(&report.body)
        {
            let spared = self
                .all
                .answer_unknown_victim(draining.evacuation_id, &report.body)
                .await;
            if let Err(error) = spared {
                tracing::warn!(code = error.code(), "{error}");
            }
        }
        let span = traces::report(&report.body, report.trace);
        let fed = self.feed(&PreemptionInput::Report(&report.body)).await;
        drop(span);
        // A report that could not be written is not acknowledged. The broker delivers it again to
        // the scheduler that drives the record then.
        let _ = report.written.send(fed.is_ok());
        fed
    }

    /// Processes the publication of a notice. If the answer is due next, its write contains the
    /// publication, too. A scheduler that adopts the row before that publishes the notice again,
    /// as after any crash between a publication and its record.
    pub(super) async fn feed_notice(&mut self, input: &PreemptionInput<'_>) -> Result<(), RowLost> {
        let (now, policy) = (clock::now(), &self.all.shared.policy);
        let mut after = self.held.record.clone();
        after.feed(input, now, policy);
        if after.due(now, policy).contains(&PreemptionAction::Answer) {
            self.held.record = after;
            return Ok(());
        }
        self.feed(input).await
    }

    /// Processes an input and writes the record if it has changed.
    pub(super) async fn feed(&mut self, input: &PreemptionInput<'_>) -> Result<(), RowLost> {
        let before = self.held.record.state;
        let changed = self
            .held
            .record
            .feed(input, clock::now(), &self.all.shared.policy);
        if !changed {
            return Ok(());
        }
        let after = self.held.record.state;
        if before != after {
            tracing::info!(
                preemption = %self.held.id,
                request = %self.held.record.request_id,
                reason = self.held.record.reason.as_deref(),
                "{} -> {}", before.as_str(), after.as_str()
            );
        }
        // A scheduler that adopts the row reads the answer from Placement again, so this state
        // alone need not be written.
        if after == PreemptionState::Claimed {
            return Ok(());
        }
        self.write().await
    }

    async fn write(&mut self) -> Result<(), RowLost> {
        let document = document(&self.held.record);
        let state = self.held.record.state.as_str();
        let shared = &self.all.shared;
        loop {
            let written = shared
                .ledger
                .update(self.held.id, self.held.version, state, &document)
                .await;
            match written {
                Ok(UpdateResult::Updated(version)) => {
                    self.held.version = version;
                    self.all.remember(self.held.id, version, &self.held.record);
                    return Ok(());
                }
                Ok(UpdateResult::Lost) => return self.reload().await,
                Err(error) => self.ledger_is_away(&error).await?,
            }
        }
    }

    /// Reads the row again after another scheduler wrote it: that scheduler received a report. If
    /// the row still belongs to this scheduler, the other scheduler's version counts. This
    /// scheduler's unwritten change occurs again, because the state decides every action.
    async fn reload(&mut self) -> Result<(), RowLost> {
        loop {
            match self.all.shared.ledger.row(self.held.id).await {
                Ok(Some(row)) if row.owner == self.all.shared.owner && !row.finished => {
                    let Some(record) = super::read(&row) else {
                        return Err(RowLost);
                    };
                    self.held.version = row.version;
                    self.held.record = record;
                    self.reloaded = true;
                    // The unwritten change about the newcomers may be lost.
                    self.all.driven(|driven| {
                        if let Some(driven) = driven.get_mut(&self.held.id) {
                            driven.gone_sent = false;
                        }
                    });
                    return Ok(());
                }
                Ok(_) => return Err(RowLost),
                Err(error) => self.ledger_is_away(&error).await?,
            }
        }
    }

    async fn ledger_is_away(&self, error: &LedgerError) -> Result<(), RowLost> {
        tracing::warn!(
            code = error.code(),
            "{error}; nothing goes on until it is written"
        );
        if pause(self.all.shared.tasks.stop(), LEDGER_PAUSE).await {
            Ok(())
        } else {
            Err(RowLost)
        }
    }

    /// Finishes the record. Plans may use its victims again.
    async fn close(&mut self) -> Result<(), RowLost> {
        let record = &self.held.record;
        let document = document(record);
        let ending = match record.state {
            PreemptionState::Refused | PreemptionState::Withdrawn => RowEnd::Nothing,
            _ => RowEnd::Answers,
        };
        let shared = &self.all.shared;
        loop {
            let finished = shared
                .ledger
                .finish(
                    self.held.id,
                    self.held.version,
                    record.state.as_str(),
                    &document,
                    ending,
                )
                .await;
            match finished {
                Ok(UpdateResult::Updated(_)) => break,
                Ok(UpdateResult::Lost) => return Err(RowLost),
                Err(error) => self.ledger_is_away(&error).await?,
            }
        }
        for victim in &record.victims {
            shared
                .facts
                .write(|cloud| cloud.set_leaving(victim.server.0, false));
        }
        shared.metrics.ended(record);
        let reason = record.reason.clone().unwrap_or_default();
        let outcome = match record.state {
            PreemptionState::Done => PreemptionResult::Room(record.result.clone()),
            PreemptionState::Refused => PreemptionResult::Refused(reason),
            _ => PreemptionResult::Withdrawn(record.withdrawal, reason),
        };
        self.tell(outcome);
        Ok(())
    }

    /// Sends the outcome to the waiting request; only the first call does.
    pub(super) fn tell(&mut self, outcome: PreemptionResult) {
        if let Some(waiting) = self.waiting.take() {
            let _ = waiting.outcome.send(outcome);
        }
    }
}
