//! Notifies waiting callers about servers, from one stream of events.

use anyhow::{Context, Result, bail};
use ebbtide_integration_tests::region::RegionChannel;
use ebbtide_proto::v1;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;

/// Nothing takes that long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

type Waiters = Arc<Mutex<HashMap<(String, &'static str), oneshot::Sender<()>>>>;

/// Who waits for what; told by one stream of events.
#[derive(Clone, Default)]
pub(crate) struct Watcher {
    waiters: Waiters,
    seen: Arc<Mutex<HashMap<String, String>>>,
}

impl Watcher {
    /// Begins to listen to a scheduler; `background` ends with the stream.
    pub(crate) async fn of(
        mut scheduler: SchedulerClient<RegionChannel>,
        background: &mut JoinSet<Result<()>>,
    ) -> Result<Self> {
        let events = scheduler.watch(v1::WatchRequest::default()).await?;
        let mut events = events.into_inner();
        let watcher = Self::default();
        let told = watcher.clone();
        background.spawn(async move {
            while let Some(event) = events.next().await {
                match event?.event {
                    Some(v1::watch_event::Event::Server(server)) => told.record(&server),
                    Some(v1::watch_event::Event::Lagged(missed)) => {
                        bail!("{missed} events were missed")
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        Ok(watcher)
    }

    /// Who waits for a server to be gone has to begin before it can go: what is gone is not
    /// remembered.
    pub(crate) fn expect(&self, id: &str, status: &'static str) -> ExpectedStatus {
        let (tell, told) = oneshot::channel();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(id).is_some_and(|s| s == status) {
            // The send cannot fail: the receiver is the local `told`.
            let _ = tell.send(());
        } else {
            let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
            waiters.insert((id.to_owned(), status), tell);
        }
        drop(seen);
        let id = id.to_owned();
        ExpectedStatus { id, status, told }
    }

    fn record(&self, server: &v1::Server) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        for status in ["active", "deleted", "preempted", "error"] {
            if server.status == status
                && let Some(tell) = waiters.remove(&(server.id.clone(), status))
            {
                // Who has given up does not want to know.
                let _ = tell.send(());
            }
        }
        match server.status.as_str() {
            "deleted" | "preempted" => drop(seen.remove(&server.id)),
            status => drop(seen.insert(server.id.clone(), status.to_owned())),
        }
    }
}

/// Something that is waited for.
pub(crate) struct ExpectedStatus {
    id: String,
    status: &'static str,
    told: oneshot::Receiver<()>,
}

impl ExpectedStatus {
    /// Waits until it is so.
    ///
    /// # Errors
    /// It takes longer than anything that works.
    pub(crate) async fn come(self) -> Result<()> {
        let Self { id, status, told } = self;
        let told = tokio::time::timeout(PATIENCE, told).await;
        told.with_context(|| format!("server {id} is not {status} after {PATIENCE:?}"))?
            .with_context(|| "the events have ended")
    }
}
