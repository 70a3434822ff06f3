//! Every `select_destinations` becomes a [`Decision`](ebbtide_model::Decision) in the ledger's
//! database.
//!
//! A request never waits for it: what it leaves behind ([`Trail`]) goes into a bounded queue when
//! the answer is ready, and a task of its own makes the record and writes it. If the queue is full,
//! because the database is away, full or slow, the record is lost and counted; the request is not
//! affected.

mod build;
mod options;
mod purge;
mod trail;
mod writer;

pub(crate) use self::options::DecisionOptions;
pub(crate) use self::trail::Trail;

use self::trail::{Answer, AnsweredRequest};
use self::writer::{Losses, Writer};
use crate::Tasks;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::select::SelectRequest;
use ebbtide_model::Decision;
use ebbtide_runtime::clock;
use ebbtide_store::DecisionStore;
use oslo_messaging::RemoteError;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

/// The record that a request would leave, which is kept nowhere.
pub(crate) fn explain(
    request: SelectRequest,
    answer: &Result<Value, RemoteError>,
    whole: Duration,
    facts: &Facts,
) -> Decision {
    let left = AnsweredRequest::of(request, answer, whole);
    build::decision(left, "", facts)
}

impl AnsweredRequest {
    fn of(request: SelectRequest, answer: &Result<Value, RemoteError>, whole: Duration) -> Self {
        let answer = match answer {
            Ok(_) => Answer::Selected,
            Err(error) => Answer::Raised {
                class: error.class.clone(),
                message: error.message.clone(),
            },
        };
        let mut trail = request.take_trail();
        trail.took("whole", whole);
        Self {
            decision_id: request.decision_id,
            at: clock::now(),
            in_the_dark: request.is_in_the_dark(),
            request_id: request.id,
            user_id: request.context.user_id.unwrap_or_default(),
            spec: request.schedule.spec,
            call: request.call,
            asked: request.asked,
            seed: request.seed,
            answer,
            trail,
        }
    }
}

/// What records decisions. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Decisions {
    /// `None`: decisions are not recorded.
    recorder: Option<Arc<Recorder>>,
}

/// What waits to be written.
enum WaitingRecord {
    /// A request, of which the record is to be made.
    Answered(Box<AnsweredRequest>),
    Made(Box<Decision>),
}

struct Recorder {
    queue: mpsc::Sender<WaitingRecord>,
    losses: Losses,
    /// The database, once it is open.
    store: Arc<OnceCell<DecisionStore>>,
    /// Cancelled when no further request is answered.
    closed: CancellationToken,
}

impl Recorder {
    fn put(&self, record: WaitingRecord) {
        if self.queue.try_send(record).is_err() {
            self.losses.full();
        }
    }
}

impl Decisions {
    /// Starts to record, if the operator wants it and there is a database. Does not wait for the
    /// database: until it is open, records wait in the queue.
    pub(crate) fn start(
        options: Option<DecisionOptions>,
        facts: &Facts,
        tasks: &Tasks,
        metrics: &Metrics,
    ) -> Self {
        let Some(options) = options else {
            return Self::default();
        };
        let (queue, waiting) = mpsc::channel(options.queue);
        let recorder = Recorder {
            queue,
            losses: Losses::new(metrics.clone()),
            store: Arc::default(),
            closed: CancellationToken::new(),
        };
        purge::start(&options, &recorder.store, tasks);
        let writer = Writer {
            options,
            facts: facts.clone(),
            losses: recorder.losses.clone(),
            store: Arc::clone(&recorder.store),
            closed: recorder.closed.clone(),
        };
        tasks.spawn("decisions", writer.run(waiting));
        Self {
            recorder: Some(Arc::new(recorder)),
        }
    }

    /// Takes over what a request leaves behind, which has its answer now. Never waits.
    pub(crate) fn record(
        &self,
        request: SelectRequest,
        answer: &Result<Value, RemoteError>,
        whole: Duration,
    ) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        if request.caller.ending().is_some() {
            // Another scheduler answers, and records.
            return;
        }
        let left = AnsweredRequest::of(request, answer, whole);
        if left.trail.is_resumed() {
            // The scheduler that decided has recorded it.
            return;
        }
        recorder.put(WaitingRecord::Answered(Box::new(left)));
    }

    /// Takes over a decision that is made already. Waits for nothing.
    pub(crate) fn record_made(&self, decision: Decision) {
        if let Some(recorder) = &self.recorder {
            recorder.put(WaitingRecord::Made(Box::new(decision)));
        }
    }

    /// Whether decisions are recorded.
    pub(crate) fn are_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// Where decisions are, once the database is open. `None` also if none are recorded.
    pub(crate) fn store(&self) -> Option<&DecisionStore> {
        self.recorder.as_ref()?.store.get()
    }

    /// Says that no further request is answered: what waits is written, without waiting for a
    /// database that is away.
    pub(crate) fn finish(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.closed.cancel();
        }
    }

    /// Closes the database.
    pub(crate) async fn close(&self) {
        if let Some(store) = self.store() {
            store.close().await;
        }
    }
}
