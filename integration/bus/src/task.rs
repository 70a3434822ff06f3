//! The one place of this crate that spawns tasks: named, traced, and ended with their owner.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Instrument;

/// A running task. Dropping the handle aborts the task, so that none outlives its owner.
#[derive(Debug)]
pub(crate) struct Task {
    name: &'static str,
    handle: JoinHandle<()>,
}

/// Runs `future` in the background inside a tracing span that carries `name` and `subject`.
///
/// # Panics
///
/// Outside a tokio runtime.
#[allow(clippy::disallowed_methods)] // This is the crate's `task` module.
pub(crate) fn spawn(
    name: &'static str,
    subject: &str,
    future: impl Future<Output = ()> + Send + 'static,
) -> Task {
    let span = tracing::info_span!("task", name, subject);
    Task {
        name,
        handle: tokio::spawn(future.instrument(span)),
    }
}

impl Task {
    /// Waits for a task that has been told to end; aborts it when it takes longer than `grace`.
    pub(crate) async fn finish(mut self, grace: Duration) {
        match tokio::time::timeout(grace, &mut self.handle).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(task = self.name, %error, "a bus task failed"),
            Err(_) => {
                tracing::warn!(
                    task = self.name,
                    "a bus task did not end in time and is aborted"
                );
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}
