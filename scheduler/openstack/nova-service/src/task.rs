//! The only module of this crate that spawns tasks. Each task has a name, and the shutdown awaits
//! all of them.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use ebbtide_store::ledger::LedgerError;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// All tasks of a running scheduler.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    failure: Arc<OnceLock<LedgerError>>,
}

impl Tasks {
    /// Tasks that end when `stop` is cancelled.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self {
            tracker: TaskTracker::new(),
            stop,
            failure: Arc::default(),
        }
    }

    /// Stops the scheduler because of an error that it cannot recover from.
    pub(crate) fn fail(&self, error: LedgerError) {
        tracing::error!(code = error.code(), "{error}; the scheduler ends");
        let _ = self.failure.set(error);
        self.stop.cancel();
    }

    /// The first error given to [`Tasks::fail`].
    pub(crate) fn failure(&self) -> Option<LedgerError> {
        self.failure.get().cloned()
    }

    /// Starts a task.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tracker
            .spawn(work.instrument(tracing::info_span!("task", name)));
    }

    /// Starts a task that repeats its work until the scheduler stops, with a pause between the end
    /// of one run and the start of the next.
    pub(crate) fn repeat<F, W>(&self, name: &'static str, every: Duration, mut work: W)
    where
        F: Future<Output = ()> + Send,
        W: FnMut() -> F + Send + 'static,
    {
        let stop = self.stop.clone();
        self.spawn(name, async move {
            while pause(&stop, every).await {
                work().await;
            }
        });
    }

    /// Cancelled when the scheduler stops.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits at most `patience` until all tasks have ended. False if some have not.
    pub(crate) async fn finish(&self, patience: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_ok()
    }
}

/// Waits for `time` or until the scheduler stops. False if it stops.
pub(crate) async fn pause(stop: &CancellationToken, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = stop.cancelled() => false,
    }
}

/// Runs slow or blocking work (disk, services) on a blocking thread, so that it does not delay
/// other tasks.
///
/// # Errors
/// The work panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(work).await
}
