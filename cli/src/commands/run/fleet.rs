//! Preemptible servers of an Ebbtide region, watched through its API from outside the servers.

use super::place::{InstanceNews, Rounds};
use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_proto::v1;
use ebbtide_run::Span;
use ebbtide_runtime::task::{self, Task};
use ebbtide_runtime::{clock, ids};
use ebbtide_shell::errors::CliError;
use ebbtide_shell::resolve;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Delay before the next request to a region that had no capacity.
const AGAIN: Duration = Duration::from_secs(5);

/// Source of the servers.
#[derive(Debug, Clone)]
pub(super) enum ServerSource {
    /// Existing servers that another program or person manages; names or ids.
    Named(Vec<String>),
    /// Created as needed.
    Created {
        /// Their flavor.
        flavor: String,
        /// Prefix of their names; a number follows.
        name: String,
        /// Maximum price of a server per hour.
        max_price: Option<Money>,
    },
}

/// Answer of the region to a request for a server.
type Answered = tokio::sync::oneshot::Receiver<Result<v1::CreateServersResponse, tonic::Status>>;

/// Whether a refusal is final: no such flavor, or no right to it. A price above the maximum is not
/// final.
fn is_final(code: tonic::Code) -> bool {
    use tonic::Code::{InvalidArgument, NotFound, PermissionDenied};
    matches!(code, InvalidArgument | NotFound | PermissionDenied)
}

/// Servers of a region.
#[derive(Debug)]
pub(super) struct Fleet {
    region: Region,
    project: String,
    source: ServerSource,
    rounds: Rounds,
    /// The server that the job runs on.
    current: Option<v1::Server>,
    /// The created server that is not active yet. An earlier run may have created it.
    pending: Option<String>,
    /// Whether the pending server was requested.
    asked: bool,
    /// A server that found no capacity. It stays in the list of servers, in error, until it is
    /// deleted.
    refused: Option<String>,
    /// The pending request. It runs in its own task, so that a cancelled caller does not abort it.
    creating: Option<(Task, Answered)>,
    /// Whether the lack of a server was reported.
    waiting: bool,
    /// Number of polls before the next request.
    pause: u32,
    /// Deadline of the notice that was reported.
    told: Option<String>,
    count: u32,
}

impl Fleet {
    /// Servers from this source. `earlier` was created by an earlier run of the job, and may still
    /// exist.
    pub(super) fn new(
        region: Region,
        project: String,
        source: ServerSource,
        earlier: Option<String>,
        poll: Duration,
    ) -> Self {
        Self {
            region,
            project,
            source,
            rounds: Rounds::new(poll),
            current: None,
            pending: earlier,
            asked: true,
            refused: None,
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

    async fn get(&mut self, id: &str) -> Result<Option<v1::Server>, CliError> {
        let request = v1::GetServerRequest { id: id.to_owned() };
        match self.region.servers.get_server(request).await {
            Ok(answer) => Ok(answer.into_inner().server),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    /// Polls the server that the job runs on.
    async fn watch(&mut self, server: &v1::Server) -> Result<Option<InstanceNews>, CliError> {
        let Some(now) = self.get(&server.id).await? else {
            return Ok(Some(self.lose("the region does not know it any more")));
        };
        let news = match now.status.as_str() {
            "active" if self.told.take().is_some() => Some(InstanceNews::Spared),
            "active" => None,
            "evacuating" => self.notice(&now),
            status => {
                let why = match now.fault_message.as_str() {
                    "" => status.to_owned(),
                    fault => format!("{status}: {fault}"),
                };
                Some(self.lose(&why))
            }
        };
        Ok(news)
    }

    fn notice(&mut self, server: &v1::Server) -> Option<InstanceNews> {
        // The deadline is unknown before the guest has its notice.
        let deadline = OffsetDateTime::parse(&server.deadline_at, &Rfc3339).ok()?;
        if self.told.as_ref() == Some(&server.deadline_at) {
            return None;
        }
        self.told = Some(server.deadline_at.clone());
        let millis = deadline.unix_timestamp_nanos() / 1_000_000;
        Some(InstanceNews::Notice {
            deadline: i64::try_from(millis).unwrap_or(i64::MAX),
            words: format!("{} has to leave: {}", server.name, server.state_reason),
        })
    }

    fn lose(&mut self, why: &str) -> InstanceNews {
        let server = self.current.take().unwrap_or_default();
        self.told = None;
        // A created server that the region keeps may come back; one that is gone does not.
        if matches!(self.source, ServerSource::Created { .. })
            && (why.starts_with("stopped") || why.starts_with("hibernated"))
        {
            self.pending = Some(server.id);
        }
        InstanceNews::Gone(format!("{} is {why}", server.name))
    }

    /// Looks for an active server, and creates one if there is none and the source permits it.
    async fn seek(&mut self) -> Result<Option<InstanceNews>, CliError> {
        let source = self.source.clone();
        match source {
            ServerSource::Named(names) => {
                for name in &names {
                    // A server with this name may appear later.
                    let request = v1::ListServersRequest {
                        project_id: self.project.clone(),
                        name: name.clone(),
                        ..Default::default()
                    };
                    let found = if resolve::is_id(name) {
                        self.get(name).await?
                    } else {
                        let all = self.region.servers.list_servers(request).await?;
                        let mut all = all.into_inner().servers.into_iter();
                        all.find(|server| server.status == "active")
                    };
                    if let Some(server) = found.filter(|server| server.status == "active") {
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
                self.delete_refused().await?;
                let Some(id) = self.pending.clone() else {
                    if self.pause > 0 {
                        self.pause -= 1;
                        return Ok(None);
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
                let server = self.get(&id).await?;
                match server {
                    Some(server) if server.status == "active" => {
                        self.pending = None;
                        Ok(Some(self.take(server)))
                    }
                    Some(server)
                        if matches!(
                            server.status.as_str(),
                            "waiting" | "building" | "stopped" | "hibernated" | "evacuating"
                        ) =>
                    {
                        Ok(None)
                    }
                    // The server was not created, or is gone: request another one.
                    _ => {
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
        let request = v1::PlacementRequest {
            count: 1,
            project_id: self.project.clone(),
            flavor,
            server_ids: vec![id],
            ..Default::default()
        };
        let create = v1::CreateServersRequest {
            name: format!("{name}-{}", self.count),
            request: Some(request),
            max_price: max_price.map(|p| p.to_string()).unwrap_or_default(),
        };
        let mut servers = self.region.servers.clone();
        let (tell, told) = tokio::sync::oneshot::channel();
        let asking = task::spawn("create", async move {
            let answer = servers.create_servers(create).await;
            // The receiver is dropped only together with this task.
            let _ = tell.send(answer.map(tonic::Response::into_inner));
        });
        self.creating = Some((asking, told));
    }

    /// The result of the pending request; `None` if there is none. Safe to cancel.
    async fn created_now(&mut self) -> Option<InstanceNews> {
        let (_, told) = self.creating.as_mut()?;
        let answer = told.await;
        self.creating = None;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(status)) if is_final(status.code()) => {
                return Some(InstanceNews::Never(status.into()));
            }
            // The next poll shows whether the server was created.
            Ok(Err(status)) => {
                let error = CliError::from(status);
                return self.wait(&format!("{}: {error}", error.code()));
            }
            Err(_) => return None,
        };
        // Reported for the first server only: the warning applies to all.
        let note = answer.warnings.into_iter().next();
        let note = note.filter(|_| self.count == 1);
        let refused = answer.decision.and_then(|it| it.no_valid_host);
        let Some(refused) = refused else {
            return note.map(|warning| InstanceNews::Talk(format!("note: {warning}")));
        };
        self.refused = self.pending.take();
        self.count -= 1;
        self.wait(&format!("no room for a server now: {}", refused.reason))
    }

    /// Delays the next request. Reports the reason once.
    fn wait(&mut self, why: &str) -> Option<InstanceNews> {
        self.pause = self.rounds.looks(AGAIN);
        let known = std::mem::replace(&mut self.waiting, true);
        let seconds = AGAIN.as_secs();
        (!known).then(|| InstanceNews::Talk(format!("{why} (asked again every {seconds} s)")))
    }

    async fn delete_refused(&mut self) -> Result<(), CliError> {
        if let Some(id) = self.refused.clone() {
            self.delete(id).await?;
            self.refused = None;
        }
        Ok(())
    }

    /// Deletes a server; `None` if the region does not know it.
    async fn delete(&mut self, id: String) -> Result<Option<v1::Server>, CliError> {
        let request = v1::DeleteServerRequest { id };
        match self.region.servers.delete_server(request).await {
            Ok(answer) => Ok(Some(answer.into_inner().server.unwrap_or_default())),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    fn take(&mut self, server: v1::Server) -> InstanceNews {
        let launched = OffsetDateTime::parse(&server.launched_at, &Rfc3339).ok();
        let launched = launched.map(|at| at.unix_timestamp_nanos() / 1_000_000);
        let launched = launched.and_then(|at| i64::try_from(at).ok());
        let age = launched.map_or(0, |at| clock::unix_millis().saturating_sub(at));
        let news = InstanceNews::Here {
            age: Span(u64::try_from(age).unwrap_or(0)),
            env: vec![
                ("EBBTIDE_SERVER_ID", server.id.clone()),
                ("EBBTIDE_SERVER_NAME", server.name.clone()),
                ("EBBTIDE_SERVER_HOST", server.host.clone()),
            ],
            words: format!("{} on {}", server.name, server.host),
        };
        self.current = Some(server);
        self.waiting = false;
        news
    }

    /// Tells the region that the job needs no more time.
    ///
    /// # Errors
    /// A text for people.
    pub(super) async fn release(&mut self) -> Result<(), String> {
        let Some(server) = &self.current else {
            return Ok(());
        };
        let request = v1::ReleaseServerRequest {
            id: server.id.clone(),
        };
        match self.region.servers.release_server(request).await {
            Ok(_) => Ok(()),
            Err(status) => {
                let error = CliError::from(status);
                Err(format!("{}: {error}", error.code()))
            }
        }
    }

    /// The server that was created for the job and may still exist.
    pub(super) fn created(&self) -> Option<String> {
        match self.source {
            ServerSource::Named(_) => None,
            ServerSource::Created { .. } => {
                let current = self.current.as_ref().map(|server| server.id.clone());
                current.or_else(|| self.pending.clone())
            }
        }
    }

    /// Deletes the created server. Returns a text for people about it.
    ///
    /// # Errors
    /// The region's.
    pub(super) async fn leave(&mut self) -> Result<Option<String>, CliError> {
        // The region cannot delete a server during its creation, so this waits for the creation.
        // Otherwise the server would remain.
        if let Some((_task, told)) = self.creating.take() {
            let _ = told.await;
        }
        self.delete_refused().await?;
        let Some(id) = self.created() else {
            return Ok(None);
        };
        let deleted = self.delete(id).await?;
        (self.current, self.pending) = (None, None);
        Ok(deleted.map(|server| format!("deleted server {}", server.name)))
    }
}
