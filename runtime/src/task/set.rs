//! Tasks whose results their owner awaits.

use std::future::Future;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Tasks of one kind, whose results the owner awaits. Dropping it aborts them.
#[derive(Debug)]
pub struct TaskSet<T> {
    name: &'static str,
    set: JoinSet<T>,
}

impl<T: Send + 'static> TaskSet<T> {
    /// An empty set. Its tasks run in spans that carry `name`.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let set = JoinSet::new();
        Self { name, set }
    }

    /// Starts a task.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) {
        let span = tracing::error_span!("task", name = self.name);
        self.set.spawn(future.instrument(span));
    }

    /// Whether no task is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The next result. Waits for ever while there are no tasks, which is what a `select!` wants.
    /// Safe to cancel.
    pub async fn next(&mut self) -> T {
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
