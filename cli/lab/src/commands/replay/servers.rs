//! What has become of the servers of a replay: from the event stream, and from asking where the
//! stream says nothing.

use ebbtide_client::Events;
use ebbtide_client::Region;
use ebbtide_client::pages;
use ebbtide_proto::v1::{self, watch_event::Event};
use ebbtide_runtime::task::{self, Task};
use ebbtide_shell::errors::CliError;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often a server is asked for while the stream works: it should never be needed.
const POLL_WITH_EVENTS: Duration = Duration::from_secs(2);
/// How often without a stream.
const POLL_ALONE: Duration = Duration::from_millis(100);
/// How long a deleted server may take to be gone. An agent stops an instance in seconds.
const GONE_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
struct ServerEnds {
    gone: HashSet<String>,
    preempted: HashSet<String>,
    stream_works: bool,
}

#[derive(Debug, Default)]
struct ServerEvents {
    seen: Mutex<ServerEnds>,
    changed: Notify,
}

impl ServerEvents {
    fn lock(&self) -> MutexGuard<'_, ServerEnds> {
        // What is in there is a set of facts; a panic elsewhere does not make them wrong.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The servers of a project, watched. Clones share one stream, which ends with the last of them.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    shared: Arc<ServerEvents>,
    project: String,
    _listener: Option<Arc<Task>>,
}

impl Servers {
    /// Begins to watch.
    pub(super) async fn watch(region: &Region, project: &str) -> Self {
        let shared = Arc::new(ServerEvents::default());
        let listener = Events::open(region, project).await.map(|events| {
            shared.lock().stream_works = true;
            Arc::new(task::spawn("events", listen(events, shared.clone())))
        });
        Self {
            shared,
            project: project.to_owned(),
            _listener: listener,
        }
    }

    /// Waits until a server that was deleted has freed its room.
    pub(super) async fn gone(&self, region: &mut Region, id: &str) -> Result<(), CliError> {
        let waiting = self.until_gone(region, id);
        match tokio::time::timeout(GONE_TIMEOUT, waiting).await {
            Ok(done) => done,
            Err(_) => Err(CliError::WaitTimeout {
                name: id.to_owned(),
                status: "deleting".to_owned(),
                seconds: GONE_TIMEOUT.as_secs(),
            }),
        }
    }

    async fn until_gone(&self, region: &mut Region, id: &str) -> Result<(), CliError> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that no change is missed in between.
            changed.as_mut().enable();
            let pause = {
                let seen = self.shared.lock();
                if seen.gone.contains(id) {
                    return Ok(());
                }
                if seen.stream_works {
                    POLL_WITH_EVENTS
                } else {
                    POLL_ALONE
                }
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(pause) => {
                    if self.ask(region, id).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// True if the region says that the server is gone, or knows it no more.
    pub(super) async fn ask(&self, region: &mut Region, id: &str) -> Result<bool, CliError> {
        let request = v1::GetServerRequest { id: id.to_owned() };
        match region.servers.get_server(request).await {
            Ok(answer) => {
                let server = answer.into_inner().server.unwrap_or_default();
                Ok(note(&mut self.shared.lock(), &server))
            }
            Err(status) if status.code() == tonic::Code::NotFound => Ok(true),
            Err(status) => Err(status.into()),
        }
    }

    /// How many of these servers were preempted: what the stream said and what the region
    /// remembers.
    pub(super) async fn preempted(
        &self,
        region: &mut Region,
        ours: &HashSet<String>,
    ) -> Result<u64, CliError> {
        let request = v1::ListServersRequest {
            project_id: self.project.clone(),
            status: "preempted".to_owned(),
            include_gone: true,
            ..Default::default()
        };
        let listed = pages::servers_where(region, request, None).await?;
        let mut preempted = self.shared.lock().preempted.clone();
        preempted.extend(listed.into_iter().map(|server| server.id));
        Ok(preempted.intersection(ours).count() as u64)
    }
}

/// Takes note of a server; true if it is gone.
fn note(seen: &mut ServerEnds, server: &v1::Server) -> bool {
    match server.status.as_str() {
        "preempted" => {
            seen.preempted.insert(server.id.clone());
            seen.gone.insert(server.id.clone());
            true
        }
        "deleted" => {
            seen.gone.insert(server.id.clone());
            true
        }
        _ => false,
    }
}

async fn listen(mut events: Events, shared: Arc<ServerEvents>) {
    while let Some(event) = events.next().await {
        if let Event::Server(server) = event
            && note(&mut shared.lock(), &server)
        {
            shared.changed.notify_waiters();
        }
    }
    // From now on asking has to do.
    shared.lock().stream_works = false;
    shared.changed.notify_waiters();
}
