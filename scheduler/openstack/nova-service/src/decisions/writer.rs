//! The task that makes records and writes them, and what is lost where it cannot.

use super::build;
use super::{DecisionOptions, WaitingRecord};
use crate::facts::Facts;
use crate::metrics::Metrics;
use ebbtide_model::Decision;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::{DecisionStore, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

/// Most records in one transaction.
const BATCH: usize = 64;
/// How long a record waits for others, so that requests that follow each other closely share a
/// transaction and its round trips. Explanations are that much later, answers are not.
const GATHER: Duration = Duration::from_millis(250);
/// Pause before a database that is away or full is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Records that were lost since one was written. An episode begins with the first of them and is
/// logged once. Cheap to clone.
#[derive(Clone)]
pub(super) struct Losses {
    metrics: Metrics,
    lost: Arc<AtomicU64>,
}

impl Losses {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            lost: Arc::default(),
        }
    }

    /// A record found the queue full.
    pub(super) fn full(&self) {
        self.metrics.decision("queue_full", 1);
        if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                code = "EB-DOOR-060",
                "decisions are not recorded: the database does not keep up, and [ebbtide] decisions_queue of them wait for it; requests go on"
            );
        }
    }

    /// Records cannot be written, whatever the reason, and are given up.
    fn given_up(&self, count: usize, error: &StoreError) {
        let count = count as u64;
        self.metrics.decision("failed", count);
        if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
            tracing::warn!(
                code = "EB-DOOR-061",
                cause = error.code(),
                "decisions are not recorded: {error}; requests go on"
            );
        }
    }

    /// Records were written. An episode ends when the queue is no longer filling: else a slow
    /// database would begin and end one with each batch.
    fn written(&self, count: usize, queue_is_calm: bool) {
        self.metrics.decision("recorded", count as u64);
        if !queue_is_calm {
            return;
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::info!(lost, "decisions are recorded again");
        }
    }
}

/// The task.
pub(super) struct Writer {
    pub(super) options: DecisionOptions,
    pub(super) facts: Facts,
    pub(super) losses: Losses,
    pub(super) store: Arc<OnceCell<DecisionStore>>,
    /// Cancelled when no further record comes.
    pub(super) closed: CancellationToken,
}

impl Writer {
    /// Writes what comes until it is closed, and then what is left.
    pub(super) async fn run(self, mut waiting: mpsc::Receiver<WaitingRecord>) {
        let Some(store) = self.open().await else {
            return;
        };
        let mut batch: Vec<Decision> = Vec::with_capacity(BATCH);
        loop {
            let next = tokio::select! {
                biased;
                next = waiting.recv() => next,
                () = self.closed.cancelled() => waiting.try_recv().ok(),
            };
            let Some(first) = next else {
                return;
            };
            let mut gathered = std::pin::pin!(tokio::time::sleep(GATHER));
            let mut next = Some(first);
            while let Some(left) = next {
                batch.push(self.decision(left));
                // Requests come first, also on this thread.
                tokio::task::yield_now().await;
                if batch.len() == BATCH {
                    break;
                }
                next = tokio::select! {
                    biased;
                    next = waiting.recv() => next,
                    () = self.closed.cancelled() => waiting.try_recv().ok(),
                    () = &mut gathered => None,
                };
            }
            let calm = waiting.len() <= self.options.queue / 2;
            self.write(&store, &batch, calm).await;
            batch.clear();
        }
    }

    fn decision(&self, record: WaitingRecord) -> Decision {
        let scheduler = &self.options.scheduler;
        match record {
            WaitingRecord::Answered(left) => {
                let shadow = build::in_shadow(&left);
                let decision = build::decision(*left, scheduler, &self.facts);
                if let Some(choice) = shadow {
                    let compared = build::comparison(&decision, choice);
                    self.facts.shadow.note(clock::now(), vec![compared]);
                }
                decision
            }
            WaitingRecord::Made(mut decision) => {
                decision.trace.scheduler.clone_from(scheduler);
                *decision
            }
        }
    }

    /// Opens the database, as soon as it answers. `None`: the scheduler stops before.
    async fn open(&self) -> Option<DecisionStore> {
        let mut told = false;
        loop {
            match DecisionStore::open(&self.options.store).await {
                Ok(store) => {
                    let _ = self.store.set(store.clone());
                    return Some(store);
                }
                Err(error) if !told => {
                    told = true;
                    tracing::warn!(
                        code = "EB-DOOR-062",
                        cause = error.code(),
                        "the database for decisions cannot be opened: {error}; they wait, and requests go on"
                    );
                }
                Err(error) => tracing::debug!("the database for decisions: {error}"),
            }
            if !pause(&self.closed, RETRY).await {
                return None;
            }
        }
    }

    /// Writes a batch. Waits for a database that is away or full: meanwhile the queue fills, and
    /// the newest records are lost.
    async fn write(&self, store: &DecisionStore, batch: &[Decision], calm: bool) {
        let mut told = false;
        loop {
            let error = match store.put(batch).await {
                Ok(unstorable) => {
                    self.losses.written(batch.len() - unstorable.len(), calm);
                    for error in unstorable {
                        self.losses.metrics.decision("failed", 1);
                        tracing::warn!(
                            code = "EB-DOOR-061",
                            cause = error.code(),
                            "a decision is not recorded: {error}"
                        );
                    }
                    return;
                }
                Err(error) => error,
            };
            if !error.is_retryable() || self.closed.is_cancelled() {
                self.losses.given_up(batch.len(), &error);
                return;
            }
            if !told {
                told = true;
                tracing::warn!(
                    code = "EB-DOOR-062",
                    cause = error.code(),
                    "decisions wait for their database: {error}; requests go on"
                );
            }
            pause(&self.closed, RETRY).await;
        }
    }
}
