//! The one place of this crate that spawns tasks and leaves the async threads for blocking work.
//!
//! Every task ends with its owner: dropping a [`Tasks`] aborts what is left in it.

use std::future::Future;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Tasks of one kind, whose results the owner awaits.
#[derive(Debug)]
pub(crate) struct Tasks<T> {
    name: &'static str,
    set: JoinSet<T>,
}

impl<T: Send + 'static> Tasks<T> {
    pub(crate) fn new(name: &'static str) -> Self {
        let set = JoinSet::new();
        Self { name, set }
    }

    pub(crate) fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) {
        let span = tracing::info_span!("task", name = self.name);
        self.set.spawn(future.instrument(span));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The next result; waits for ever while there are no tasks, which is what a `select!` wants.
    /// Safe to cancel.
    pub(crate) async fn next(&mut self) -> T {
        loop {
            match self.set.join_next().await {
                Some(Ok(result)) => return result,
                // A panic is a defect; the panic hook has printed it. The caller that waits for
                // this result has a time limit of its own.
                Some(Err(error)) => tracing::error!(task = self.name, %error, "a task failed"),
                None => std::future::pending().await,
            }
        }
    }
}

/// Runs something that blocks (file locks, fsync) beside the async threads.
///
/// # Errors
/// Its own, or that it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(std::io::Error::other(error)),
    }
}

/// A task that ends with this value.
#[derive(Debug)]
pub(crate) struct Attended(tokio::task::AbortHandle);

impl Attended {
    #[allow(clippy::disallowed_methods)] // This is the crate's `task` module.
    pub(crate) fn spawn(
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let span = tracing::info_span!("task", name);
        Self(tokio::spawn(future.instrument(span)).abort_handle())
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.0.abort();
    }
}
