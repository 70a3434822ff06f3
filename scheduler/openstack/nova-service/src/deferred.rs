//! A resource that is opened at the start or, while a service that it needs is unavailable, later.

use crate::Tasks;
use crate::error::NovaServiceError;
use ebbtide_runtime::task::pause;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, oneshot, watch};

/// Waiting times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenDelays {
    /// How long the start waits for the first try.
    pub(crate) first: Duration,
    /// Pause between two tries.
    pub(crate) pause: Duration,
}

/// A resource that is open, or will be. Cheap to clone.
pub(crate) struct DeferredResource<T> {
    opened: Arc<OnceCell<T>>,
    /// Whether it is open.
    ready: watch::Receiver<bool>,
}

impl<T> Clone for DeferredResource<T> {
    fn clone(&self) -> Self {
        Self {
            opened: Arc::clone(&self.opened),
            ready: self.ready.clone(),
        }
    }
}

impl<T: Send + Sync + 'static> DeferredResource<T> {
    /// Starts to open it. Returns when it is open, when the first try has failed because a service
    /// is unavailable, or after `times.first`. Further tries run in the background, and all their
    /// errors are logged.
    ///
    /// # Errors
    /// The error of the first try, if a retry cannot succeed.
    pub(crate) async fn start<F>(
        tasks: &Tasks,
        what: &'static str,
        times: OpenDelays,
        mut open: impl FnMut() -> F + Send + 'static,
    ) -> Result<Self, NovaServiceError>
    where
        F: Future<Output = Result<T, NovaServiceError>> + Send,
    {
        let opened = Arc::new(OnceCell::new());
        let (say_ready, ready) = watch::channel(false);
        let (tell, told) = oneshot::channel();
        let (cell, stop) = (Arc::clone(&opened), tasks.stop().clone());
        tasks.spawn("later", async move {
            let mut tell = Some(tell);
            loop {
                let error = match open().await {
                    Ok(open) => {
                        let _ = cell.set(open);
                        say_ready.send_replace(true);
                        if tell.take().is_none_or(|tell| tell.send(Ok(())).is_err()) {
                            tracing::info!("{what}: open");
                        }
                        return;
                    }
                    Err(error) => error,
                };
                tracing::warn!(code = error.code(), "{what}: {error}; trying again");
                if let Some(tell) = tell.take() {
                    let passing = error.is_passing();
                    let heard = tell.send(if passing { Ok(()) } else { Err(error) }).is_ok();
                    if heard && !passing {
                        return;
                    }
                }
                if !pause(&stop, times.pause).await {
                    return;
                }
            }
        });
        if let Ok(Ok(Err(error))) = tokio::time::timeout(times.first, told).await {
            return Err(error);
        }
        Ok(Self { opened, ready })
    }

    /// A resource that is already open.
    pub(crate) fn ready(open: T) -> Self {
        let (_, ready) = watch::channel(true);
        Self {
            opened: Arc::new(OnceCell::new_with(Some(open))),
            ready,
        }
    }

    /// The resource, if it is open.
    pub(crate) fn get(&self) -> Option<&T> {
        self.opened.get()
    }

    /// The resource as soon as it is open; `None` after `patience`.
    pub(crate) async fn wait(&self, patience: Duration) -> Option<&T> {
        let mut ready = self.ready.clone();
        let _ = tokio::time::timeout(patience, ready.wait_for(|ready| *ready)).await;
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_openstack::{OpenStackError, RequestEffect};
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio_util::sync::CancellationToken;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(5);

    fn tasks() -> Tasks {
        Tasks::new(CancellationToken::new())
    }

    fn away() -> NovaServiceError {
        NovaServiceError::from(OpenStackError::Unavailable {
            service: "the ledger".to_owned(),
            what: "a question".to_owned(),
            problem: "connection refused".to_owned(),
            effect: RequestEffect::Unknown,
        })
    }

    #[tokio::test]
    async fn what_is_away_at_the_start_is_there_once_it_is_back() {
        let tasks = tasks();
        let (back, is_back) = watch::channel(false);
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let times = OpenDelays {
            first: LONG,
            pause: SHORT,
        };
        let later = DeferredResource::start(&tasks, "a test", times, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let back = *is_back.borrow();
            async move { if back { Ok(7) } else { Err(away()) } }
        });
        let later = later.await.unwrap();
        assert_eq!(later.get(), None, "the start did not wait for it");
        back.send_replace(true);
        assert_eq!(later.wait(LONG).await, Some(&7));
        assert!(tries.load(Ordering::SeqCst) > 1);
        assert_eq!(later.get(), Some(&7));
    }

    #[tokio::test]
    async fn what_does_not_answer_at_all_keeps_no_start_waiting() {
        let tasks = tasks();
        let times = OpenDelays {
            first: SHORT,
            pause: SHORT,
        };
        let later = DeferredResource::<()>::start(&tasks, "a test", times, std::future::pending);
        let later = tokio::time::timeout(LONG, later).await.unwrap().unwrap();
        assert_eq!(later.wait(SHORT).await, None);
    }

    #[tokio::test]
    async fn what_no_waiting_heals_is_told_at_the_start() {
        let tasks = tasks();
        let times = OpenDelays {
            first: LONG,
            pause: LONG,
        };
        let later = DeferredResource::<()>::start(&tasks, "a test", times, || async {
            Err(NovaServiceError::Config("wrong".to_owned()))
        });
        let error = later.await.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("wrong"));
        // Nothing goes on behind it.
        assert!(tasks.finish(LONG).await);
    }
}
