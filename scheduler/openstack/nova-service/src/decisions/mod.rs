//! Every `select_destinations` becomes a [`Decision`](ebbtide_model::Decision) in the ledger's
//! database.
//!
//! A request never waits for it: what it leaves behind ([`DecisionTrace`]) goes into a bounded
//! queue when the answer is ready, and a task of its own makes the record and writes it. If the
//! queue is full, because the database is away, full or slow, the record is lost and counted; the
//! request is not affected.

mod build;
mod options;
mod purge;
mod trace;
mod writer;

pub(crate) use self::options::DecisionOptions;
pub(crate) use self::trace::{Answer, AnsweredRequest, DecisionTrace};

use self::writer::{Losses, Writer};
use crate::Tasks;
use crate::facts::Facts;
use crate::metrics::Metrics;
use ebbtide_model::Decision;
use ebbtide_store::DecisionStore;
use std::sync::Arc;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

/// The record that a request would leave, which is kept nowhere.
pub(crate) fn explain(answered: AnsweredRequest, facts: &Facts) -> Decision {
    build::decision(answered, "", facts)
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
    pub(crate) fn record(&self, answered: impl FnOnce() -> AnsweredRequest) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let answered = answered();
        if answered.trace.is_resumed() {
            // The scheduler that decided has recorded it.
            return;
        }
        recorder.put(WaitingRecord::Answered(Box::new(answered)));
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
