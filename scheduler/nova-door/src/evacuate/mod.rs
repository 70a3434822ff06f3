//! Preemptions under way: what the records say is due is done here, and what comes of it is written before anything else is done.
//!
//! One task drives one record. Schedulers share the ledger: each row has an owner, every write names the version that it changes, and
//! the rows of a scheduler that died are adopted by the others. Whoever holds the caller's message takes the row over, because only it
//! can answer.

mod act;
mod adopt;
mod drive;
mod give_back;
mod inbox;

use crate::error::DoorError;
use crate::facts::Facts;
use crate::preemption::{Policy, Preemption};
use crate::task::Tasks;
use ebbtide_bus::{Bus, QueuePrefix};
use ebbtide_model::ServerId;
use ebbtide_model::message::Body;
use ebbtide_store::ledger::{Ledger, LedgerError, LedgerRow, NewRow, Owner};
use oslo_messaging::CallState;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

/// What became of a preemption, for the request that wanted it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The room is there (or will be, where the answer goes at once): this is the reply's result.
    Room(Value),
    /// Placement has refused the swap; nothing has happened.
    Refused(String),
    /// It was called off and everything was given back.
    Withdrawn(String),
    /// Another scheduler goes on with it: the request came there, too.
    Elsewhere,
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
    /// Who drives what, for reports.
    driven: Mutex<HashMap<Uuid, Driven>>,
}

/// A record that a task of this process drives.
struct Driven {
    victims: Vec<ServerId>,
    reports: mpsc::UnboundedSender<Report>,
    attach: mpsc::UnboundedSender<Attached>,
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
                driven: Mutex::default(),
            }),
        }
    }

    /// Starts to listen to agents, to beat, and to look for rows whose scheduler died.
    pub(crate) async fn start(&self) -> Result<(), DoorError> {
        self.adopt_own().await?;
        self.listen().await?;
        self.look_after_others();
        Ok(())
    }

    /// Writes a preemption down and drives it. Returns when the caller can be answered.
    ///
    /// # Errors
    /// [`LedgerError::VictimTaken`]: another preemption was faster. Others: nothing is written, nothing has happened.
    pub(crate) async fn begin(
        &self,
        record: Preemption,
        caller: CallState,
    ) -> Result<Outcome, LedgerError> {
        let row = NewRow {
            id: record.id,
            request_id: record.request_id.clone(),
            state: record.state.as_str().to_owned(),
            owner: self.shared.owner.clone(),
            newcomers: record.newcomers.iter().map(|n| n.instance).collect(),
            victims: record.victims.iter().map(|v| v.server.0).collect(),
            document: document(&record),
        };
        self.shared.ledger.insert(&row).await?;
        crash_point("recorded");
        for victim in &record.victims {
            self.shared
                .facts
                .write(|cloud| cloud.set_leaving(victim.server.0, true));
        }
        let held = Held {
            id: record.id,
            version: 1,
            record,
        };
        Ok(self.drive_for(held, Some(caller)).await)
    }

    /// A redelivered request: if there is a record of it, goes on with that. `None`: there is none, or it came to nothing.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn resume(
        &self,
        instance: Uuid,
        unique_id: &str,
        caller: CallState,
    ) -> Result<Option<Outcome>, LedgerError> {
        let rows = self.shared.ledger.by_instance(instance).await?;
        let known = rows.into_iter().find_map(|row| {
            let record = read(&row)?;
            (record.unique_id == unique_id).then_some((row, record))
        });
        let Some((row, record)) = known else {
            return Ok(None);
        };
        if record.answered {
            // The answer was decided; whether it reached the caller nobody knows, so it goes out again.
            let gave_room = !matches!(record.state, crate::preemption::State::Refused)
                && record.state != crate::preemption::State::Withdrawn;
            return Ok(gave_room.then_some(Outcome::Room(record.result)));
        }
        if let Some(outcome) = self.attach(row.id, caller.clone()).await {
            return Ok(Some(outcome));
        }
        match self.take_over(row).await? {
            Some(held) => Ok(Some(self.drive_for(held, Some(caller)).await)),
            None => Ok(Some(Outcome::Elsewhere)),
        }
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

/// Ends the process at a named step if the environment says so: tests kill a scheduler between any two steps of a preemption.
pub(crate) fn crash_point(step: &str) {
    if std::env::var("EBBTIDE_CRASH_AT").is_ok_and(|at| at == step) {
        tracing::error!(
            code = "EB-DOOR-022",
            "EBBTIDE_CRASH_AT={step}: the process ends here, as a test wishes"
        );
        std::process::abort();
    }
}
