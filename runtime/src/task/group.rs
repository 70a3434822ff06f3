//! All tasks of a service.

use super::pause;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// All tasks of a running service. Each has a name, and the shutdown awaits all of them.
#[derive(Debug, Clone)]
pub struct Tasks<E> {
    tracker: TaskTracker,
    stop: CancellationToken,
    failure: Arc<OnceLock<E>>,
}

impl<E> Default for Tasks<E> {
    fn default() -> Self {
        Self::new(CancellationToken::new())
    }
}

impl<E> Tasks<E> {
    /// Tasks that end when `stop` is cancelled.
    #[must_use]
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            tracker: TaskTracker::new(),
            stop,
            failure: Arc::default(),
        }
    }

    /// Starts a task.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker
            .spawn(work.instrument(tracing::error_span!("task", name)));
    }

    /// Starts a task that repeats its work until the service stops, with a pause between the end of
    /// one run and the start of the next.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn repeat<F, W>(&self, name: &'static str, every: Duration, mut work: W)
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

    /// Cancelled when the service stops.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits at most `patience` until all tasks have ended. False if some have not.
    pub async fn finish(&self, patience: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_ok()
    }
}

impl<E: Clone> Tasks<E> {
    /// Stops the service because of an error that it cannot recover from. [`Tasks::failure`]
    /// returns the first one.
    pub fn stop_with(&self, error: E) {
        // A later error is only a consequence of the first.
        let _ = self.failure.set(error);
        self.stop.cancel();
    }

    /// The error that stopped the service, if there was one.
    #[must_use]
    pub fn failure(&self) -> Option<E> {
        self.failure.get().cloned()
    }
}
