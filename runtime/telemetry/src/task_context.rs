//! The context of the request on which a task works.

use crate::TraceContext;
use crate::span::is_on;
use std::future::Future;

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The context of the request on which this task works, if the request is traced.
#[must_use]
pub fn current() -> Option<TraceContext> {
    if !is_on() {
        return None;
    }
    CURRENT.try_with(|context| *context).ok()
}

/// Does `work` for the request of `context`, if there is one.
pub async fn within<T>(context: Option<TraceContext>, work: impl Future<Output = T>) -> T {
    match context {
        Some(context) => CURRENT.scope(context, work).await,
        None => work.await,
    }
}
