//! The only place of this crate that starts background tasks. A task ends when its handle is
//! dropped, so none outlives its command.

use std::future::Future;
use tokio::task::JoinHandle;

/// A background task that is stopped when this is dropped.
#[derive(Debug)]
pub struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a background task.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the task module.
pub fn start(future: impl Future<Output = ()> + Send + 'static) -> Task {
    Task(tokio::spawn(future))
}
