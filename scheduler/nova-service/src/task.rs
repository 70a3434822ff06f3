//! The only place of this crate where tasks are spawned: each has a name, and all are awaited at shutdown.
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

    /// Ends the scheduler because of an error that nothing here can heal.
    pub(crate) fn fail(&self, error: LedgerError) {
        tracing::error!(code = error.code(), "{error}; the scheduler ends");
        let _ = self.failure.set(error);
        self.stop.cancel();
    }

    /// What [`Tasks::fail`] was told first.
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

    /// Starts a task that repeats its work until the scheduler has to end, with a pause between the end of one run and the next.
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

    /// Cancelled when the scheduler has to end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits until all tasks have ended, at most this long. False if some have not.
    pub(crate) async fn finish(&self, patience: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_ok()
    }
}

/// Waits, or until the scheduler has to end. True if it may go on.
pub(crate) async fn pause(stop: &CancellationToken, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = stop.cancelled() => false,
    }
}

/// Does something that takes its time, or waits for a disk or a service, where it keeps nobody else waiting.
///
/// # Errors
/// That it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(work).await
}
