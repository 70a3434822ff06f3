//! Preemptions under way: what the records say is due is done here, and what comes of it is written before anything else is done.
//!
//! One task drives one record. Schedulers share the ledger: each row has an owner, every write names the version that it changes, and
//! the rows of a scheduler that died are adopted by the others. Whoever holds the caller's message takes the row over, because only it
//! can answer.

mod act;
mod adopt;
mod begun;
mod drive;
mod give_back;
mod inbox;
mod newcomers;
mod open;
mod preempting;
mod voices;

use self::begun::{Beginning, Begun};
pub(crate) use self::preempting::{Away, Preempting};
use crate::error::NovaServiceError;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::preemption::{CalledOff, ComesAgain, Policy, Preemption, State};
use crate::task::{Tasks, pause};
use ebbtide_bus::{Bus, QueuePrefix};
use ebbtide_fail_points::{Point, reach};
use ebbtide_model::ServerId;
use ebbtide_model::message::Body;
use ebbtide_store::ledger::{Ledger, LedgerError, LedgerRow, NewRow, Owner};
use oslo_messaging::CallState;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

/// How long a row rests that somebody else has just written, before it is taken over again.
const TAKE_OVER_PAUSE: Duration = Duration::from_millis(50);

/// How often, and after what rest, a ledger that is away is asked to take a new row: ten seconds in all.
const LEDGER_TRIES: u32 = 20;
const LEDGER_PAUSE: Duration = Duration::from_millis(500);

/// What became of a preemption, for the request that wanted it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The room is there (or will be, where the answer goes at once): this is the reply's result.
    Room(Value),
    /// Placement has refused the swap; nothing has happened.
    Refused(String),
    /// It was called off and everything was given back: why (`None`: another scheduler knows), and
    /// in words.
    Withdrawn(Option<CalledOff>, String),
    /// This scheduler drives it no more: it has to end, or another one has taken it over.
    Elsewhere,
    /// Another scheduler, or another delivery of the same request here, answers the caller.
    Unanswered,
}

/// What drives preemptions. Cheap to clone.
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
    policy: Policy,
    tasks: Tasks,
    metrics: Metrics,
    /// Who drives what, for reports.
    driven: Mutex<HashMap<Uuid, Driven>>,
    /// Rows with which somebody here has begun.
    begun: Begun,
    /// Rows of all schedulers.
    open: open::OpenRows,
}

/// An instance for which room is made or was made just now, by any scheduler of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) instance: Uuid,
    /// The service's host where it goes.
    pub(crate) host: String,
    /// Its preemption is not over.
    pub(crate) under_way: bool,
}

/// How long after its end a preemption's newcomers are told of: by then their rows have hosts.
const OF_LATE_MILLIS: i64 = 120_000;

/// A record that a task of this process drives.
struct Driven {
    victims: Vec<ServerId>,
    newcomers: Vec<Uuid>,
    /// Hears that all newcomers were deleted.
    gone: mpsc::UnboundedSender<()>,
    /// That was said.
    told_gone: bool,
    reports: mpsc::UnboundedSender<Report>,
    attach: mpsc::UnboundedSender<Attached>,
    /// The row's version as it was last seen in the ledger.
    version: watch::Sender<i64>,
}

/// A report of an agent, and what to tell when it is written.
struct Report {
    body: Body,
    written: oneshot::Sender<bool>,
}

/// A request that waits for a record that is driven already.
struct Attached {
    caller: CallState,
    outcome: oneshot::Sender<Outcome>,
}

/// A row that is ours.
struct Held {
    id: Uuid,
    version: i64,
    record: Preemption,
    /// As long as it is held nobody else here adopts it.
    _beginning: Beginning,
}

impl Evacuations {
    #[allow(clippy::too_many_arguments, reason = "made once, at the start")]
    pub(crate) fn new(
        facts: Facts,
        ledger: Ledger,
        owner: Owner,
        bus: Arc<dyn Bus>,
        prefix: QueuePrefix,
        policy: Policy,
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
                begun: Begun::default(),
                open: open::OpenRows::default(),
            }),
        }
    }

    /// Starts to listen to agents, to beat, and to look for rows whose scheduler died.
    pub(crate) async fn start(&self) -> Result<(), NovaServiceError> {
        self.adopt_own().await?;
        self.listen().await?;
        self.look_after_others();
        self.watch_newcomers();
        Ok(())
    }

    /// Writes a preemption down and drives it. Returns when the caller can be answered. `written` is called as soon as nobody plans with
    /// its victims any more.
    ///
    /// # Errors
    /// [`LedgerError::VictimTaken`]: another preemption was faster. Others: nothing is written, nothing has happened.
    pub(crate) async fn begin(
        &self,
        mut record: Preemption,
        caller: CallState,
        written: impl FnOnce(),
    ) -> Result<Outcome, LedgerError> {
        record.answerer = Some(self.shared.owner.name.clone());
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
        let request = (row.newcomers.first().copied(), record.unique_id.clone());
        match (self.write_down(&row).await, &request) {
            // Our message was given to another scheduler while the ledger did not answer us. That one has it, and answers.
            (Err(error @ LedgerError::RequestTaken { .. }), (Some(instance), unique_id)) => {
                tracing::info!(code = error.code(), request = %record.request_id, "{error}");
                let known = self.go_on(*instance, unique_id, caller, false).await?;
                return Ok(known.unwrap_or_else(|| Outcome::Refused(error.to_string())));
            }
            (done, _) => done?,
        }
        reach(Point::NovaRecorded);
        for victim in &record.victims {
            self.shared
                .facts
                .write(|cloud| cloud.set_leaving(victim.server.0, true));
        }
        written();
        let held = Held {
            id: record.id,
            version: 1,
            record,
            _beginning: beginning,
        };
        match (self.drive_for(held, caller.clone()).await, request) {
            (Outcome::Elsewhere, (Some(instance), unique_id)) => {
                let known = self.go_on(instance, &unique_id, caller, false).await?;
                // What was withdrawn elsewhere is planned anew here, because we have the message.
                Ok(known
                    .unwrap_or_else(|| Outcome::Withdrawn(None, "it was called off".to_owned())))
            }
            (outcome, _) => Ok(outcome),
        }
    }

    /// Writes a new row. A ledger that is away for a moment is waited for: there is room to be made, and the caller waits.
    async fn write_down(&self, row: &NewRow) -> Result<(), LedgerError> {
        let stop = self.shared.tasks.stop();
        let mut left = LEDGER_TRIES;
        loop {
            match self.shared.ledger.insert(row).await {
                // The first try was written, and its answer was lost.
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

    /// A request of which there may be a record: if there is, goes on with that. Only one that has the caller's message can answer, so
    /// the row comes here from whoever drives it, unless that one has the message, too, and got it later than we did.
    /// `None`: there is none, or it came to nothing.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn resume(
        &self,
        instance: Uuid,
        unique_id: &str,
        caller: CallState,
    ) -> Result<Option<Outcome>, LedgerError> {
        self.go_on(instance, unique_id, caller, true).await
    }

    /// `from_another`: whether the record is taken from somebody who has the message, too: he got it before us. Only once, so that two
    /// who both have it do not take it from each other for ever.
    async fn go_on(
        &self,
        instance: Uuid,
        unique_id: &str,
        caller: CallState,
        mut from_another: bool,
    ) -> Result<Option<Outcome>, LedgerError> {
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
            match record.comes_again(mine, from_another) {
                ComesAgain::Answer => return Ok(Some(Outcome::Room(record.result))),
                ComesAgain::Nothing => return Ok(None),
                ComesAgain::LeaveIt => return Ok(Some(Outcome::Unanswered)),
                ComesAgain::GoOn => {}
            }
            let outcome = match self.attach(row.id, caller.clone()).await {
                Some(outcome) => outcome,
                None => match self.take_over(row, Some(mine)).await? {
                    Some(held) => self.drive_for(held, caller.clone()).await,
                    None => {
                        pause(self.shared.tasks.stop(), TAKE_OVER_PAUSE).await;
                        continue;
                    }
                },
            };
            if outcome != Outcome::Elsewhere {
                return Ok(Some(outcome));
            }
            from_another = false;
        }
        Ok(Some(Outcome::Elsewhere))
    }

    /// Who gets room by preemptions that are under way or have just ended, of all schedulers.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn newcomers(&self) -> Result<Vec<Newcomer>, LedgerError> {
        let rows = self.shared.ledger.rows_of_late(OF_LATE_MILLIS).await?;
        let records = rows.iter().filter_map(|row| Some((row, read(row)?)));
        let coming = records.filter(|(_, record)| {
            let called_off = [State::Withdrawing, State::Withdrawn, State::Refused];
            !called_off.contains(&record.state)
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

    /// How many records are driven here.
    pub(crate) fn under_way(&self) -> usize {
        self.driven(|driven| driven.len())
    }

    /// Waits with a record that a task of this process drives already.
    async fn attach(&self, id: Uuid, caller: CallState) -> Option<Outcome> {
        let (tell, told) = oneshot::channel();
        let sent = self.driven(|driven| {
            let attached = Attached {
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

    fn driven<T>(&self, look: impl FnOnce(&mut HashMap<Uuid, Driven>) -> T) -> T {
        look(
            &mut self
                .shared
                .driven
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

/// A record as the ledger keeps it.
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

/// The record of a row; `None`, and told, if it cannot be read.
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
