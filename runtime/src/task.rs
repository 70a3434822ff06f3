//! Background tasks, blocking work and pauses.
//!
//! A task has a name, runs in a tracing span that carries it, and ends with its owner. The span has
//! the level of errors, so that the name is in every log line of the task even if the log filter
//! admits only errors of this crate.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

mod group;
mod set;

pub use group::Tasks;
pub use set::TaskSet;

use std::future::Future;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
pub use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

/// A running task. Dropping it aborts the task, so that none outlives its owner.
#[derive(Debug)]
pub struct Task {
    name: &'static str,
    handle: JoinHandle<()>,
}

/// Runs `future` in the background inside a tracing span that carries `name`.
///
/// # Panics
/// Outside a tokio runtime.
#[must_use]
pub fn spawn(name: &'static str, future: impl Future<Output = ()> + Send + 'static) -> Task {
    spawn_in(name, tracing::error_span!("task", name), future)
}

/// As [`spawn`], with a `subject` that tells tasks of one name apart.
///
/// # Panics
/// Outside a tokio runtime.
#[must_use]
pub fn spawn_for(
    name: &'static str,
    subject: &str,
    future: impl Future<Output = ()> + Send + 'static,
) -> Task {
    spawn_in(name, tracing::error_span!("task", name, subject), future)
}

/// Runs `future` in the background, and gives its result to the owner, who awaits the handle. It is
/// an error if the task has panicked. Dropping the handle ends the task.
///
/// # Panics
/// Outside a tokio runtime.
pub fn spawn_for_result<T: Send + 'static>(
    name: &'static str,
    future: impl Future<Output = T> + Send + 'static,
) -> AbortOnDropHandle<T> {
    let span = tracing::error_span!("task", name);
    AbortOnDropHandle::new(tokio::spawn(future.instrument(span)))
}

fn spawn_in(
    name: &'static str,
    span: Span,
    future: impl Future<Output = ()> + Send + 'static,
) -> Task {
    let handle = tokio::spawn(future.instrument(span));
    Task { name, handle }
}

impl Task {
    /// Waits for a task that has been told to end. Aborts it when it takes longer than `grace`.
    pub async fn finish(mut self, grace: Duration) {
        match tokio::time::timeout(grace, &mut self.handle).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(task = self.name, %error, "a task failed"),
            Err(_) => {
                tracing::warn!(
                    task = self.name,
                    "a task did not end in time and is aborted"
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

/// Runs `future` as one of many tasks that the owner of `tracker` awaits together. Dropping nothing
/// ends it: it must end by itself, for example when its token is cancelled.
///
/// # Panics
/// Outside a tokio runtime.
pub fn spawn_tracked(
    tracker: &TaskTracker,
    span: Span,
    future: impl Future<Output = ()> + Send + 'static,
) {
    drop(tracker.spawn(future.instrument(span)));
}

/// Waits for `time`, or until `stop` is cancelled. True if the owner continues.
pub async fn pause(stop: &CancellationToken, time: Duration) -> bool {
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
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    tokio::task::spawn_blocking(work).await
}

/// As [`blocking`], for work that fails with an I/O error.
///
/// # Errors
/// The error of the work, or its panic.
pub async fn blocking_io<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    blocking(work).await.map_err(std::io::Error::other)?
}

#[cfg(test)]
mod tests;
