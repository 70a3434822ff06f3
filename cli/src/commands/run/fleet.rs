//! Preemptible servers of a cloud, watched through its API from outside the servers.

use super::bid::BidWatch;
use super::place::{InstanceNews, Rounds};
use ebbtide_burst::Status;
use ebbtide_model::Money;
use ebbtide_run::Span;
use ebbtide_runtime::task::{self, Task};
use ebbtide_runtime::{clock, ids};
use ebbtide_server_pool::{FoundServer, OrderError, OrderedServer, ServerOrder, ServerPool};
use ebbtide_shell::errors::CliError;
use ebbtide_shell::resolve;
use std::sync::Arc;
use std::time::Duration;

/// Delay before the next request to a cloud that had no capacity.
const AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) enum ServerSource {
    /// Existing servers that another program or person manages; names or ids.
    Named(Vec<String>),
    /// Created as needed.
    Created {
        flavor: String,
        /// Prefix of their names; a number follows.
        name: String,
        /// Maximum price of a server per hour.
        max_price: Option<Money>,
    },
}

/// Answer of the cloud to a request for a server.
type OrderReply = tokio::sync::oneshot::Receiver<Result<OrderedServer, OrderError>>;

/// Servers of a cloud.
#[derive(Debug)]
pub(super) struct Fleet {
    pool: Arc<ServerPool>,
    source: ServerSource,
    rounds: Rounds,
    /// What the hours of created servers may cost.
    bid: Option<BidWatch>,
    /// The server that the job runs on.
    current: Option<FoundServer>,
    /// The id of the created server that is not active yet, or of its order. An earlier run may
    /// have created it.
    pending: Option<String>,
    /// Whether the pending server was requested.
    asked: bool,
    /// A server that failed. It stays in the list of servers until it is deleted.
    failed: Option<String>,
    /// The pending request. It runs in its own task, so that a cancelled caller does not abort it.
    creating: Option<(Task, OrderReply)>,
    /// Whether the lack of a server was reported.
    waiting: bool,
    /// Number of polls before the next request.
    pause: u32,
    /// Deadline of the notice that was reported.
    told: Option<i64>,
    count: u32,
}

impl Fleet {
    /// Servers from this source. `earlier` was created by an earlier run of the job, and may still
    /// exist.
    pub(super) fn new(
        pool: ServerPool,
        source: ServerSource,
        bid: Option<BidWatch>,
        earlier: Option<String>,
        poll: Duration,
    ) -> Self {
        Self {
            pool: Arc::new(pool),
            source,
            bid,
            rounds: Rounds::new(poll),
            current: None,
            pending: earlier,
            asked: true,
            failed: None,
            creating: None,
            waiting: false,
            pause: 0,
            told: None,
            count: 0,
        }
    }

    /// Waits for the next news.
    pub(super) async fn next(&mut self) -> InstanceNews {
        loop {
            self.rounds.due().await;
            let looked = self.look().await;
            let looked = looked.map_err(|error| format!("{}: {error}", error.code()));
            if let Some(news) = self.rounds.seen(looked) {
                return news;
            }
        }
    }

    async fn look(&mut self) -> Result<Option<InstanceNews>, CliError> {
        match self.current.clone() {
            Some(server) => self.watch(&server).await,
            None => self.seek().await,
        }
    }

    /// Polls the server that the job runs on.
    async fn watch(&mut self, known: &FoundServer) -> Result<Option<InstanceNews>, CliError> {
        let Some(now) = self.pool.found(&known.server.id).await? else {
            return Ok(Some(self.lose("the cloud does not know it any more", None)));
        };
        let news = match now.server.status {
            Status::Active if self.told.take().is_some() => Some(InstanceNews::Spared),
            Status::Active => match &mut self.bid {
                Some(bid) => {
                    bid.look(&self.pool, &now.server, clock::unix_millis())
                        .await?
                }
                None => None,
            },
            Status::Leaving => self.notice(&now),
            status => {
                let why = match now.server.reason.as_str() {
                    "" => now.state.clone(),
                    reason => format!("{}: {reason}", now.state),
                };
                Some(self.lose(&why, Some(status)))
            }
        };
        Ok(news)
    }

    fn notice(&mut self, found: &FoundServer) -> Option<InstanceNews> {
        // The deadline is unknown before the guest has its notice.
        let deadline = found.server.deadline_ms?;
        if self.told.replace(deadline) == Some(deadline) {
            return None;
        }
        Some(InstanceNews::Notice {
            deadline,
            words: format!(
                "{} has to leave: {}",
                found.server.node, found.server.reason
            ),
        })
    }

    fn lose(&mut self, why: &str, status: Option<Status>) -> InstanceNews {
        self.told = None;
        if let Some(bid) = &mut self.bid {
            bid.forget();
        }
        let Some(lost) = self.current.take() else {
            return InstanceNews::Gone(why.to_owned());
        };
        if matches!(self.source, ServerSource::Created { .. }) {
            match status {
                // The cloud keeps it, so it may come back.
                Some(Status::Kept) => self.pending = Some(lost.server.id),
                // It counts against the quota.
                Some(Status::Failed) => self.failed = Some(lost.server.id),
                _ => {}
            }
        }
        InstanceNews::Gone(format!("{} is {why}", lost.server.node))
    }

    /// Looks for an active server, and creates one if there is none and the source permits it.
    async fn seek(&mut self) -> Result<Option<InstanceNews>, CliError> {
        let source = self.source.clone();
        match source {
            ServerSource::Named(names) => {
                for name in &names {
                    // A server with this name may appear later.
                    let found = if resolve::is_id(name) {
                        self.pool.found(name).await?.into_iter().collect()
                    } else {
                        self.pool.named(name).await?
                    };
                    let mut active = found.into_iter();
                    let active = active.find(|one| one.server.status == Status::Active);
                    if let Some(server) = active {
                        return Ok(Some(self.take(server)));
                    }
                }
                Ok(None)
            }
            ServerSource::Created {
                flavor,
                name,
                max_price,
            } => {
                if let Some(news) = self.created_now().await {
                    return Ok(Some(news));
                }
                self.delete_failed().await?;
                let Some(id) = self.pending.clone() else {
                    if self.pause > 0 {
                        self.pause -= 1;
                        return Ok(None);
                    }
                    if let Some(bid) = &self.bid
                        && let Some(why) = bid.too_dear(&self.pool).await?
                    {
                        return Ok(self.wait(&why));
                    }
                    // The caller records the id before the request. A successor finds the server
                    // after a crash, so that no unknown server costs money.
                    self.pending = Some(ids::new().to_string());
                    self.asked = false;
                    self.rounds.hurry();
                    return Ok(Some(InstanceNews::Asking));
                };
                if !self.asked {
                    self.create(id, flavor, &name, max_price);
                    return Ok(None);
                }
                let Some(found) = self.pool.found(&id).await? else {
                    // After a request without an answer it may still appear.
                    if self.pause > 0 {
                        self.pause -= 1;
                        return Ok(None);
                    }
                    // The server was not created, or is gone: request another one.
                    self.pending = None;
                    return Ok(None);
                };
                match found.server.status {
                    Status::Active => {
                        self.pending = None;
                        Ok(Some(self.take(found)))
                    }
                    Status::Coming | Status::Kept | Status::Leaving => Ok(None),
                    Status::Failed => {
                        self.pending = None;
                        self.failed = Some(found.server.id);
                        Ok(self.no_room(&found.server.reason))
                    }
                    Status::Going | Status::Gone => {
                        self.pending = None;
                        Ok(None)
                    }
                }
            }
        }
    }

    fn create(&mut self, id: String, flavor: String, name: &str, max_price: Option<Money>) {
        self.count += 1;
        self.asked = true;
        let order = ServerOrder {
            id,
            name: format!("{name}-{}", self.count),
            flavor,
            max_price,
        };
        let pool = Arc::clone(&self.pool);
        let (tell, told) = tokio::sync::oneshot::channel();
        let asking = task::spawn("create", async move {
            // The receiver is dropped only together with this task.
            let _ = tell.send(pool.order(&order).await);
        });
        self.creating = Some((asking, told));
    }

    /// The result of the pending request; `None` if there is none. Safe to cancel.
    async fn created_now(&mut self) -> Option<InstanceNews> {
        let (_, told) = self.creating.as_mut()?;
        let answer = told.await;
        self.creating = None;
        match answer {
            Ok(Ok(ordered)) => {
                self.pending = Some(ordered.id);
                // Reported for the first server only: the warning applies to all.
                let warning = ordered.warning.filter(|_| self.count == 1);
                warning.map(|warning| InstanceNews::Talk(format!("note: {warning}")))
            }
            Ok(Err(OrderError::NoRoom(reason))) => {
                self.pending = None;
                self.no_room(&reason)
            }
            Ok(Err(OrderError::Refused(error))) => Some(InstanceNews::Never(error)),
            // The next poll shows whether the server was created.
            Ok(Err(OrderError::Unknown(error))) => self.wait(&format!("{}: {error}", error.code())),
            Err(_) => None,
        }
    }

    fn no_room(&mut self, reason: &str) -> Option<InstanceNews> {
        self.count = self.count.saturating_sub(1);
        self.wait(&format!("no capacity for a server now: {reason}"))
    }

    /// Delays the next request. Reports the reason once.
    fn wait(&mut self, why: &str) -> Option<InstanceNews> {
        self.pause = self.rounds.looks(AGAIN);
        let known = std::mem::replace(&mut self.waiting, true);
        let seconds = AGAIN.as_secs();
        (!known).then(|| InstanceNews::Talk(format!("{why} (asked again every {seconds} s)")))
    }

    async fn delete_failed(&mut self) -> Result<(), CliError> {
        if let Some(id) = &self.failed {
            self.pool.delete(id).await?;
            self.failed = None;
        }
        Ok(())
    }

    fn take(&mut self, found: FoundServer) -> InstanceNews {
        let server = &found.server;
        let now = clock::unix_millis();
        let age = server.launched_ms.map_or(0, |at| now.saturating_sub(at));
        let mut env = vec![
            ("EBBTIDE_SERVER_ID", server.id.clone()),
            ("EBBTIDE_SERVER_NAME", server.node.clone()),
        ];
        let mut words = server.node.clone();
        if !found.host.is_empty() {
            words = format!("{words} on {}", found.host);
            env.push(("EBBTIDE_SERVER_HOST", found.host.clone()));
        }
        if !found.address.is_empty() {
            words = format!("{words} at {}", found.address);
            env.push(("EBBTIDE_SERVER_ADDRESS", found.address.clone()));
        }
        self.current = Some(found);
        self.waiting = false;
        InstanceNews::Here {
            age: Span(u64::try_from(age).unwrap_or(0)),
            env,
            words,
        }
    }

    /// Tells the cloud that the job needs no more time.
    ///
    /// # Errors
    /// A text for people.
    pub(super) async fn release(&mut self) -> Result<(), String> {
        let Some(found) = &self.current else {
            return Ok(());
        };
        let id = &found.server.id;
        let released = if self.bid.as_ref().is_some_and(BidWatch::lets_go) {
            // The notice was the bid's own.
            self.pool.delete(id).await
        } else {
            self.pool.release(id).await
        };
        released.map_err(|error| format!("{}: {error}", error.code()))
    }

    /// The server that was created for the job and may still exist.
    pub(super) fn created(&self) -> Option<String> {
        match self.source {
            ServerSource::Named(_) => None,
            ServerSource::Created { .. } => {
                let current = self.current.as_ref().map(|one| one.server.id.clone());
                current.or_else(|| self.pending.clone())
            }
        }
    }

    /// Deletes the created server. Returns a text for people about it.
    ///
    /// # Errors
    /// Those of the cloud.
    pub(super) async fn leave(&mut self) -> Result<Option<String>, CliError> {
        // A region cannot delete a server during its creation, so this waits for the creation.
        // Otherwise the server would remain.
        if let Some((_task, told)) = self.creating.take()
            && let Ok(Ok(ordered)) = told.await
        {
            self.pending = Some(ordered.id);
        }
        self.delete_failed().await?;
        let Some(id) = self.created() else {
            return Ok(None);
        };
        let left = self.pool.found(&id).await?;
        (self.current, self.pending) = (None, None);
        let Some(left) = left.filter(|one| one.server.status != Status::Gone) else {
            return Ok(None);
        };
        self.pool.delete(&left.server.id).await?;
        Ok(Some(format!("deleted server {}", left.server.node)))
    }
}
