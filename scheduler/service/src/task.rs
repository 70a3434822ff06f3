//! The only module of this crate that spawns tasks: each has a name, and the shutdown waits for all
//! of them.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use crate::error::ServiceError;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// All tasks of a running service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    failure: Arc<OnceLock<ServiceError>>,
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

    /// Starts a task.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tracker
            .spawn(work.instrument(tracing::info_span!("task", name)));
    }

    /// Ends the service because of an error. The first error is the one that is reported.
    pub(crate) fn fail(&self, why: ServiceError) {
        tracing::error!(code = why.code(), "{why}");
        // A later error is only a consequence of the first.
        let _ = self.failure.set(why);
        self.stop.cancel();
    }

    /// The error that ended the service, if there was one.
    pub(crate) fn failure(&self) -> Option<ServiceError> {
        self.failure.get().cloned()
    }

    /// Cancelled when the service has to end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits until all tasks have ended, for at most `patience`. False if some have not.
    pub(crate) async fn finish(&self, patience: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_ok()
    }
}

/// Waits for `time`, or until the service has to end. True if the service continues.
pub(crate) async fn pause(stop: &CancellationToken, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = stop.cancelled() => false,
    }
}

/// Runs blocking work, such as disk access, on a thread where it does not delay other tasks.
///
/// # Errors
/// The error of the work, or its panic.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(std::io::Error::other)?
}
