//! A caller that asks any reachable scheduler and repeats a request until it gets an answer.

use ebbtide_client::Credentials;
use ebbtide_client::Region as Clients;
use ebbtide_harness::Deadline;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tonic::{Code, Response, Status};

/// How long one attempt may take; schedulers are killed and stand still all the time.
const ATTEMPT: Duration = Duration::from_secs(5);
/// For everything together. Who needs it has found a fault that nothing heals.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(50);

/// A caller with the addresses of all schedulers.
pub(crate) struct RetryingClient {
    /// Files in which schedulers say where they listen.
    ready: Vec<PathBuf>,
    next: usize,
    connected: Option<Clients>,
    /// Attempts that got no answer.
    pub(crate) unanswered: Arc<AtomicU64>,
}

impl RetryingClient {
    pub(crate) fn of(ready: &[PathBuf], first: usize) -> Self {
        Self {
            ready: ready.to_vec(),
            next: first % ready.len(),
            connected: None,
            unanswered: Arc::default(),
        }
    }

    async fn connected(&mut self) -> Result<Clients, String> {
        if let Some(clients) = &self.connected {
            return Ok(clients.clone());
        }
        let text = std::fs::read_to_string(&self.ready[self.next]).map_err(|e| e.to_string())?;
        let said: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let address = said["grpc"].as_str().ok_or("no address")?;
        let endpoint = format!("http://{address}");
        let clients = Clients::connect(&endpoint, &Credentials::default()).await;
        let clients = clients.map_err(|e| e.to_string())?;
        self.connected = Some(clients.clone());
        Ok(clients)
    }

    /// One attempt. `Err(Ok(..))` is an answer that will not change.
    async fn attempt<T, F>(&mut self, call: &F) -> Result<T, Result<Status, String>>
    where
        F: AsyncFn(Clients) -> Result<Response<T>, Status>,
    {
        let attempt = async {
            let clients = self.connected().await.map_err(Err)?;
            match call(clients).await {
                Ok(answer) => Ok(answer.into_inner()),
                Err(status) if is_final(&status) => Err(Ok(status)),
                Err(status) => Err(Err(status.to_string())),
            }
        };
        match tokio::time::timeout(ATTEMPT, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Err("no answer".to_owned())),
        }
    }

    /// The next scheduler is asked from now on.
    pub(crate) fn another(&mut self) {
        self.connected = None;
        self.next = (self.next + 1) % self.ready.len();
    }

    /// Asks until there is an answer, of one scheduler after the other.
    pub(crate) async fn ask<T, F>(&mut self, what: &str, call: F) -> Result<T, Status>
    where
        F: AsyncFn(Clients) -> Result<Response<T>, Status>,
    {
        let deadline = Deadline::after(PATIENCE);
        loop {
            match self.attempt(&call).await {
                Ok(answer) => return Ok(answer),
                Err(Ok(refused)) => return Err(refused),
                Err(Err(failed)) => {
                    assert!(
                        !deadline.has_passed(),
                        "{what}: no answer for {PATIENCE:?}: {failed}"
                    );
                    self.unanswered.fetch_add(1, Ordering::Relaxed);
                    self.another();
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// True if asking again cannot help.
fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::NotFound | Code::InvalidArgument | Code::AlreadyExists | Code::PermissionDenied
    )
}
