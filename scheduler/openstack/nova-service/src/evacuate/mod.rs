//! Drives preemptions: executes what a record says is due and writes the outcome before it does
//! anything else.
//!
//! One task drives one record. Schedulers share the ledger: each row has an owner, every write
//! names the version that it changes, and the other schedulers adopt the rows of a scheduler that
//! died. The scheduler that has the caller's message takes the row over, because only that
//! scheduler can answer.

mod act;
mod active_rows;
mod adopt;
mod agent_sessions;
mod budgets;
mod confirmation;
mod drive;
mod early_release;
mod give_back;
mod headroom;
mod inbox;
mod lifetimes;
mod newcomers;
mod open_rows;
mod preempting;
mod reclaims;
mod removed;
mod retained;
mod victim;

use self::active_rows::{ActiveRowGuard, ActiveRows};
pub(crate) use self::budgets::CountedBudgets;
pub(crate) use self::confirmation::Confirmation;
pub(crate) use self::headroom::AheadResult;
pub(crate) use self::lifetimes::RestingServers;
#[cfg(test)]
pub(crate) use self::lifetimes::end_of_lifetime;
#[cfg(test)]
pub(crate) use self::preempting::register;
pub(crate) use self::preempting::{LedgerUnavailable, PreemptionDriver};
pub(crate) use self::victim::{json_of, victim};
use crate::Tasks;
use crate::error::NovaServiceError;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::preemption::{
    Preemption, PreemptionPolicy, PreemptionState, RedeliveryAction, WithdrawalReason,
};
use ebbtide_bus::{Bus, QueuePrefix};
use ebbtide_fail_points::{FailPoint, reach};
use ebbtide_model::message::Body;
use ebbtide_model::{ServerId, Timestamp};
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::{BudgetTurn, Ledger, LedgerError, LedgerRow, NewRow, Owner};
use ebbtide_telemetry::TraceContext;
use oslo_messaging::CallState;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

/// Pause before the scheduler tries again to take over a row that another scheduler has just
/// written.
const TAKE_OVER_PAUSE: Duration = Duration::from_millis(50);

/// Retries of writing a new row to an unavailable ledger, and the pause between them: ten seconds
/// in total.
const LEDGER_TRIES: u32 = 20;
const LEDGER_PAUSE: Duration = Duration::from_millis(500);

/// The outcome of a preemption, for the request that needed it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PreemptionResult {
    /// The capacity is free, or will be if the policy answers at once. The value is the reply's
    /// result.
    Room(Value),
    /// Placement has refused the swap; nothing has changed.
    Refused(String),
    /// The preemption was withdrawn and everything was given back. The reason (`None`: another
    /// scheduler knows it) and the reason in words.
    Withdrawn(Option<WithdrawalReason>, String),
    /// This scheduler does not drive the record any more: it stops, or another scheduler has taken
    /// the record over.
    Elsewhere,
    /// Another scheduler, or another delivery of the same request here, answers the caller.
    Unanswered,
}

/// The driver of all preemptions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Evacuations {
    shared: Arc<Shared>,
}

struct Shared {
    facts: Facts,
    ledger: Ledger,
    owner: Owner,
    bus: Arc<dyn Bus>,
    prefix: QueuePrefix,
    policy: PreemptionPolicy,
    tasks: Tasks,
    metrics: Metrics,
    /// The records that tasks of this process drive. Reports are routed by it.
    driven: Mutex<HashMap<Uuid, ActivePreemption>>,
    /// Rows that tasks of this process have begun.
    begun: ActiveRows,
    /// Rows of all schedulers.
    open: open_rows::OpenRows,
    /// What disruption budgets count. Requests that count at the same moment take turns.
    disruptions: tokio::sync::Mutex<budgets::DisruptionLog>,
    /// The agents whose heartbeats this scheduler reads.
    agents: Mutex<agent_sessions::AgentSessions>,
}

/// An instance for which a preemption by any scheduler of the ledger is under way or has just
/// ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) instance: Uuid,
    /// The host (nova-compute service) where the instance goes.
    pub(crate) host: String,
    /// The preemption has not ended.
    pub(crate) under_way: bool,
}

/// How long after the end of a preemption its newcomers are still reported. By then their rows have
/// hosts.
const OF_LATE_MILLIS: i64 = 120_000;

/// A record that a task of this process drives.
struct ActivePreemption {
    /// When the last victim's grace period ends, if its notice went out at once.
    leaves_by: Timestamp,
    victims: Vec<ServerId>,
    newcomers: Vec<Uuid>,
    /// The host whose owner the victims leave for.
    reclaimed: Option<String>,
    /// Signals that the victims need not leave: all newcomers were deleted, or the owner has
    /// returned the host.
    gone: mpsc::UnboundedSender<()>,
    /// The signal was sent.
    gone_sent: bool,
    reports: mpsc::UnboundedSender<Report>,
    attach: mpsc::UnboundedSender<WaitingCaller>,
    /// The last known version of the row in the ledger.
    version: watch::Sender<i64>,
}

/// A report of an agent, and the channel that tells whether it was written.
struct Report {
    body: Body,
    written: oneshot::Sender<bool>,
    /// The span of the agent that sent it.
    trace: Option<TraceContext>,
}

/// A request that waits for a record that a task already drives.
struct WaitingCaller {
    caller: CallState,
    outcome: oneshot::Sender<PreemptionResult>,
}

/// A row that this scheduler owns.
struct OwnedRow {
    id: Uuid,
    version: i64,
    record: Preemption,
    /// Keeps other tasks of this process from adopting the row.
    _beginning: ActiveRowGuard,
}

impl Evacuations {
    #[allow(clippy::too_many_arguments, reason = "made once, at the start")]
    pub(crate) fn new(
        facts: Facts,
        ledger: Ledger,
        owner: Owner,
        bus: Arc<dyn Bus>,
        prefix: QueuePrefix,
        policy: PreemptionPolicy,
        tasks: Tasks,
        metrics: Metrics,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                facts,
                ledger,
                owner,
                bus,
                prefix,
                policy,
                tasks,
                metrics,
                driven: Mutex::default(),
                begun: ActiveRows::default(),
                open: open_rows::OpenRows::default(),
                disruptions: tokio::sync::Mutex::default(),
                agents: Mutex::default(),
            }),
        }
    }

    /// Starts the consumer of agents' reports, the heartbeat, and the adoption of rows whose
    /// scheduler died.
    pub(crate) async fn start(&self) -> Result<(), NovaServiceError> {
        self.adopt_own().await?;
        self.listen().await?;
        self.look_after_others();
        self.watch_newcomers();
        self.watch_reclaims();
        self.look_after_lifetimes();
        Ok(())
    }

    /// Writes a preemption into the ledger and drives it. Returns when the caller can be answered.
    /// Calls `written` as soon as the victims are marked as leaving, so that no other plan uses
    /// them. `confirmation`: what an unconfirmed record waits for before its first notice.
    ///
    /// # Errors
    /// [`LedgerError::VictimTaken`]: another preemption has one of the victims.
    /// [`LedgerError::BudgetMoved`]: other preemptions have used up one of the budgets. Others: the
    /// ledger write failed, and nothing has happened.
    pub(crate) async fn begin(
        &self,
        mut record: Preemption,
        budgets: &CountedBudgets,
        caller: CallState,
        confirmation: Option<Confirmation>,
        written: impl FnOnce(),
    ) -> Result<PreemptionResult, LedgerError> {
        record.answerer = Some(self.shared.owner.name.clone());
        let request = (
            record.newcomers.first().map(|n| n.instance),
            record.unique_id.clone(),
        );
        let request_id = record.request_id.clone();
        let held = match (self.hold_new(record, budgets).await, &request) {
            // The broker gave this message to another scheduler while the ledger did not answer.
            // That scheduler has the message and answers.
            (Err(error @ LedgerError::RequestTaken { .. }), (Some(instance), unique_id)) => {
                tracing::info!(code = error.code(), request = %request_id, "{error}");
                let known = self.go_on(*instance, unique_id, caller, false).await?;
                return Ok(known.unwrap_or_else(|| PreemptionResult::Refused(error.to_string())));
            }
            (done, _) => done?,
        };
        written();
        let outcome = self.drive_for(held, caller.clone(), confirmation).await;
        match (outcome, request) {
            (PreemptionResult::Elsewhere, (Some(instance), unique_id)) => {
                let known = self.go_on(instance, &unique_id, caller, false).await?;
                // Another scheduler withdrew the preemption. This scheduler plans again, because it
                // has the message.
                Ok(known.unwrap_or_else(|| {
                    PreemptionResult::Withdrawn(None, "it was withdrawn".to_owned())
                }))
            }
            (outcome, _) => Ok(outcome),
        }
    }

    /// Writes a new record into the ledger and marks its victims as leaving. The caller drives it.
    async fn hold_new(
        &self,
        record: Preemption,
        budgets: &CountedBudgets,
    ) -> Result<OwnedRow, LedgerError> {
        let row = NewRow {
            id: record.id,
            request_id: record.request_id.clone(),
            request_key: Some(record.unique_id.clone()).filter(|key| !key.is_empty()),
            state: record.state.as_str().to_owned(),
            owner: self.shared.owner.clone(),
            newcomers: record.newcomers.iter().map(|n| n.instance).collect(),
            victims: record.victims.iter().map(|v| v.server.0).collect(),
            document: document(&record),
        };
        let beginning = self.shared.begun.with(row.id);
        self.write_within(&row, &record, budgets).await?;
        reach(FailPoint::NovaRecorded);
        self.remember(record.id, 1, &record);
        for victim in &record.victims {
            self.shared
                .facts
                .write(|cloud| cloud.set_leaving(victim.server.0, true));
        }
        Ok(OwnedRow {
            id: record.id,
            version: 1,
            record,
            _beginning: beginning,
        })
    }

    /// Writes a new row. Waits for a ledger that is unavailable for a moment, because the caller
    /// waits for capacity.
    async fn write_down(&self, row: &NewRow, budgets: &[BudgetTurn]) -> Result<(), LedgerError> {
        let stop = self.shared.tasks.stop();
        let mut left = LEDGER_TRIES;
        loop {
            match self.shared.ledger.insert_within(row, budgets).await {
                // The ledger wrote the first try, and its answer was lost.
                Err(LedgerError::Exists { .. }) if left < LEDGER_TRIES => return Ok(()),
                Err(error) if error.is_retryable() && left > 0 => {
                    tracing::warn!(code = error.code(), "{error}; trying again");
                    left -= 1;
                    if !pause(stop, LEDGER_PAUSE).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Continues the record of a request, if there is one. Only a scheduler that has the caller's
    /// message can answer, so this scheduler takes the row from the one that drives it, unless that
    /// one also has the message and received it later. `None`: there is no record, or its
    /// preemption came to nothing.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn resume(
        &self,
        instance: Uuid,
        unique_id: &str,
        caller: CallState,
    ) -> Result<Option<PreemptionResult>, LedgerError> {
        self.go_on(instance, unique_id, caller, true).await
    }

    /// `from_another`: whether this scheduler takes the record from another scheduler that also has
    /// the message, because that one received it earlier. It does so only once; otherwise two
    /// schedulers that both have the message would take the record from each other forever.
    async fn go_on(
        &self,
        instance: Uuid,
        unique_id: &str,
        caller: CallState,
        mut from_another: bool,
    ) -> Result<Option<PreemptionResult>, LedgerError> {
        let mine = &self.shared.owner.name;
        while !self.shared.tasks.stop().is_cancelled() {
            let rows = self.shared.ledger.by_instance(instance).await?;
            let known = rows.into_iter().find_map(|row| {
                let record = read(&row)?;
                (record.unique_id == unique_id).then_some((row, record))
            });
            let Some((row, record)) = known else {
                return Ok(None);
            };
            match record.redelivery(mine, from_another) {
                RedeliveryAction::Answer => return Ok(Some(PreemptionResult::Room(record.result))),
                RedeliveryAction::Nothing => return Ok(None),
                RedeliveryAction::LeaveIt => return Ok(Some(PreemptionResult::Unanswered)),
                RedeliveryAction::GoOn => {}
            }
            let outcome = match self.attach(row.id, caller.clone()).await {
                Some(outcome) => outcome,
                None => match self.take_over(row, Some(mine)).await? {
                    Some(held) => self.drive_for(held, caller.clone(), None).await,
                    None => {
                        pause(self.shared.tasks.stop(), TAKE_OVER_PAUSE).await;
                        continue;
                    }
                },
            };
            if outcome != PreemptionResult::Elsewhere {
                return Ok(Some(outcome));
            }
            from_another = false;
        }
        Ok(Some(PreemptionResult::Elsewhere))
    }

    /// The newcomers of preemptions of all schedulers that are under way or have just ended.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn newcomers(&self) -> Result<Vec<Newcomer>, LedgerError> {
        let rows = self.shared.ledger.rows_of_late(OF_LATE_MILLIS).await?;
        let records = rows.iter().filter_map(|row| Some((row, read(row)?)));
        let coming = records.filter(|(_, record)| {
            let withdrawn = [
                PreemptionState::Withdrawing,
                PreemptionState::Withdrawn,
                PreemptionState::Refused,
            ];
            !withdrawn.contains(&record.state)
        });
        let newcomers = coming.flat_map(|(row, record)| {
            let under_way = !row.finished;
            record.newcomers.into_iter().map(move |newcomer| Newcomer {
                instance: newcomer.instance,
                host: newcomer.host,
                under_way,
            })
        });
        Ok(newcomers.collect())
    }

    /// Runs work in the background that ends with the scheduler.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let stop = self.shared.tasks.stop().clone();
        self.shared.tasks.spawn(name, async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Whether the scheduler ends.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.tasks.stop().is_cancelled()
    }

    /// How many records are driven here.
    pub(crate) fn under_way(&self) -> usize {
        self.driven(|driven| driven.len())
    }

    /// How long the latest record driven here has lasted beyond its victims' grace periods; 0 if
    /// none has.
    pub(crate) fn overtime_millis(&self, now: Timestamp) -> i64 {
        let latest = self.driven(|driven| driven.values().map(|d| d.leaves_by).min());
        latest.map_or(0, |by| now.millis_since(by).max(0))
    }

    /// Waits for a record that a task of this process already drives.
    async fn attach(&self, id: Uuid, caller: CallState) -> Option<PreemptionResult> {
        let (tell, told) = oneshot::channel();
        let sent = self.driven(|driven| {
            let attached = WaitingCaller {
                caller,
                outcome: tell,
            };
            driven
                .get(&id)
                .is_some_and(|d| d.attach.send(attached).is_ok())
        });
        if !sent {
            return None;
        }
        told.await.ok()
    }

    fn driven<T>(&self, look: impl FnOnce(&mut HashMap<Uuid, ActivePreemption>) -> T) -> T {
        look(
            &mut self
                .shared
                .driven
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

/// Serialises a record for the ledger.
fn document(record: &Preemption) -> Value {
    serde_json::to_value(record).unwrap_or_else(|error| {
        // Plain data with string keys always has a JSON form.
        tracing::error!(
            code = "EB-DOOR-020",
            "a record could not be written as JSON: {error}"
        );
        Value::Null
    })
}

/// The record of a row; `None`, with a log entry, if it is unreadable.
fn read(row: &LedgerRow) -> Option<Preemption> {
    match serde_json::from_value(row.document.clone()) {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::error!(
                code = "EB-DOOR-021",
                "the ledger's row {} cannot be read: {error}; a newer version of the scheduler has written it, or a person",
                row.id
            );
            None
        }
    }
}
