//! Data from Nova's API, read once for all hosts of this process.
//!
//! A background task reads the servers every few seconds (only changes, and now and then all of
//! them) and the hosts now and then. Callers get the last result. Only servers that have their
//! notice are read one by one.

use super::servers::Servers;
use super::settings::{NovaSettings, seconds};
use super::{facts, notice};
use crate::clock::Clock;
use crate::driver::{DriverCall, DriverError, HostFacts, HypervisorPermit, ServerView};
use crate::error::AgentError;
use ebbtide_model::{ServerId, Timestamp};
use ebbtide_openstack::compute::{Server, ServerFilter};
use ebbtide_openstack::{Compute, OpenStackError, Session, SessionOptions};
use ebbtide_runtime::login::Renewal;
use ebbtide_runtime::task::TaskSet;
use ebbtide_service_manager::reload::Refusal;
use futures::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

/// Data older than this many intervals are not returned any more: the agent then sends no
/// heartbeats.
const STALE_AFTER: f64 = 6.0;
/// Minimum of that age, in seconds: a list of a large cloud takes a while.
const STALE_AT_LEAST: f64 = 60.0;
/// Time limit of looking at the servers that have their notice.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// Maximum number of concurrent requests to Nova's API. With hundreds of victims at once it would
/// answer none of them in time.
const IN_FLIGHT: usize = 16;

/// Maximum number of concurrent calls of the agent. Further calls wait, and their time limits begin
/// when they start. The number keeps all requests busy, and a notice whose turn has come is given
/// within seconds.
const PERMITS: usize = 32;
/// The same for ending servers, which mostly means waiting for Nova.
const END_TURNS: usize = 128;

/// Maximum number of concurrent list requests to Nova's API. Lists have their own limit: without
/// them the agent knows nothing of any host, however many other requests are running.
const LISTS: usize = 2;

/// Interval between two looks at servers that have their notice, over all servers. Each host first
/// looks at the server that it has not seen for the longest time. With more servers the list of
/// changes is faster, and Nova's API stays free for ending servers.
const WATCH_EVERY_MS: i64 = 250;

/// Maximum number of servers of a host in one look.
const LOOKS: usize = 2;

/// Interval between two looks at servers that are being ended, over all servers. If there are many,
/// the lists show which ones are gone, and Nova's API stays free to end them.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Upper limit of the estimated duration of a notice: with more time left than this, a notice is
/// always tried, however long others have taken.
const LONGEST_NOTICE: Duration = Duration::from_secs(8);

/// How long Nova's answer that a server does not exist stays valid, in seconds. Identifiers are
/// never reused.
const GONE_SECONDS: f64 = 2.0;

/// The longest pause between two looks at a server that is being ended.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// One OpenStack.
#[derive(Debug)]
pub(super) struct NovaCloud {
    compute: Compute,
    lists: Compute,
    settings: NovaSettings,
    /// Set if only this host is of interest.
    only: Option<String>,
    clock: Arc<dyn Clock>,
    state: Mutex<NovaState>,
    rounds: watch::Sender<u64>,
    polling: Mutex<Option<TaskSet<()>>>,
    permits: Arc<Semaphore>,
    end_permits: Arc<Semaphore>,
    /// Usual duration of a notice, in milliseconds.
    notice_ms: AtomicU64,
    /// Time of the next permitted look at a server that has its notice, in milliseconds since 1970.
    next_look: AtomicI64,
    /// Number of servers that are being ended.
    ends: AtomicU32,
}

/// A guard: counts a server as being ended until it is dropped.
pub(super) struct EndingGuard<'a>(&'a AtomicU32);

impl Drop for EndingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct NovaState {
    servers: Servers,
    /// The last look at each server that has its notice.
    looks: BTreeMap<Uuid, Timestamp>,
    /// Servers that Nova has reported as gone in the last seconds.
    deleted: BTreeMap<Uuid, Timestamp>,
    listed_at: Option<Timestamp>,
    listed_all_at: Option<Timestamp>,
    /// Time of the latest known change, as Nova writes it.
    since: Option<String>,
    hosts: BTreeMap<String, HostFacts>,
    hosts_at: Option<Timestamp>,
    problem: Option<String>,
}

impl NovaCloud {
    pub(super) fn new(
        settings: NovaSettings,
        only: Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AgentError> {
        let refused = |error: OpenStackError| AgentError::config("driver.nova", error.to_string());
        let client = |max_in_flight| {
            let options = SessionOptions {
                max_in_flight,
                ..SessionOptions::new("ebbtide-agent")
            };
            let session = Session::new(settings.auth_options()?, options).map_err(refused)?;
            Compute::new(session, settings.adapter_options()?).map_err(refused)
        };
        let (compute, lists) = (client(IN_FLIGHT)?, client(LISTS)?);
        let (state, polling) = (Mutex::default(), Mutex::new(None));
        Ok(Self {
            compute,
            lists,
            settings,
            only,
            clock,
            state,
            rounds: watch::Sender::new(0),
            polling,
            permits: Arc::new(Semaphore::new(PERMITS)),
            end_permits: Arc::new(Semaphore::new(END_TURNS)),
            notice_ms: AtomicU64::new(0),
            next_look: AtomicI64::new(0),
            ends: AtomicU32::new(0),
        })
    }

    /// Renews the credentials of both clients.
    pub(super) async fn renew_login(&self, settings: &toml::Table) -> Result<Renewal, Refusal> {
        let refused = |error: AgentError| Refusal::new(error.code(), &error);
        let settings = NovaSettings::from_table(settings).map_err(refused)?;
        let auth = settings.auth_options().map_err(refused)?;
        let mut renewal = Renewal::Unchanged;
        for client in [&self.compute, &self.lists] {
            let renewed = client.session().renew_login(auth.clone()).await;
            renewal = renewed.map_err(|error| Refusal::new(error.code(), &error))?;
        }
        Ok(renewal)
    }

    pub(super) fn compute(&self) -> &Compute {
        &self.compute
    }

    pub(super) fn settings(&self) -> &NovaSettings {
        &self.settings
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The permit for one call of the agent.
    pub(super) async fn permit(&self, what: &DriverCall) -> HypervisorPermit {
        let permits = match what {
            DriverCall::Interrupt(_) | DriverCall::Delete(_) => &self.end_permits,
            _ => &self.permits,
        };
        // The semaphore belongs to this struct and is never closed.
        match Arc::clone(permits).acquire_owned().await {
            Ok(permit) => HypervisorPermit::of(permit),
            Err(_) => HypervisorPermit::default(),
        }
    }

    /// Records the duration of a notice; recent ones count most.
    pub(super) fn notice_took(&self, since: Timestamp) {
        let took = self.clock.now().millis_since(since).max(0).unsigned_abs();
        let before = self.notice_ms.load(Ordering::Relaxed);
        let now = (before * 3 + took) / 4;
        self.notice_ms.store(now, Ordering::Relaxed);
    }

    /// The expected duration of a notice, with a margin. Limited, so that notices are still tried.
    pub(super) fn notice_takes(&self) -> Duration {
        let usual = self.notice_ms.load(Ordering::Relaxed);
        Duration::from_millis(usual * 3 / 2).min(LONGEST_NOTICE)
    }

    /// Counts a server that is being ended.
    pub(super) fn ending(&self) -> EndingGuard<'_> {
        self.ends.fetch_add(1, Ordering::Relaxed);
        EndingGuard(&self.ends)
    }

    /// Waits for the next look at a server that is being ended: for `pause`, longer if many are
    /// being ended, or until a list shows that it is gone.
    pub(super) async fn wait_for_next_look(&self, server_id: ServerId, pause: Duration) {
        // With only a few such servers the interval of the settings applies.
        let others = self.ends.load(Ordering::Relaxed).saturating_sub(1);
        let pause = pause.max(LOOK_EVERY * others).min(LONGEST_PAUSE);
        let mut rounds = self.rounds.subscribe();
        let known = self.state().servers.contains(server_id.0);
        let deleted = async {
            // A server that was never in a list cannot vanish from one.
            while known && self.state().servers.contains(server_id.0) {
                if rounds.changed().await.is_err() {
                    break;
                }
            }
            if !known {
                std::future::pending::<()>().await;
            }
        };
        let _ = tokio::time::timeout(pause, deleted).await;
    }

    fn state(&self) -> MutexGuard<'_, NovaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- what is told ----

    /// Waits for the first answer, then checks whether there was one recently.
    pub(super) async fn health(self: &Arc<Self>) -> Result<(), DriverError> {
        self.start_polling();
        let mut rounds = self.rounds.subscribe();
        // This struct owns the sender, so it exists.
        let _ = rounds.wait_for(|round| *round > 0).await;
        let state = self.state();
        let stale = (self.settings.refresh_seconds * STALE_AFTER).max(STALE_AT_LEAST);
        if is_younger(state.listed_at, self.clock.now(), stale) {
            return Ok(());
        }
        let problem = state
            .problem
            .as_deref()
            .unwrap_or("it has not answered yet");
        Err(DriverError::Failed {
            what: "tell what it has",
            detail: problem.to_owned(),
        })
    }

    /// The properties of a host; empty until Nova has reported them.
    pub(super) async fn facts(self: &Arc<Self>, host: &str) -> Result<HostFacts, DriverError> {
        self.health().await?;
        Ok(self.state().hosts.get(host).cloned().unwrap_or_default())
    }

    /// All hosts that Nova has.
    pub(super) async fn hosts(self: &Arc<Self>) -> Result<BTreeSet<String>, DriverError> {
        self.health().await?;
        let state = self.state();
        if state.hosts_at.is_none() {
            let problem = state
                .problem
                .as_deref()
                .unwrap_or("it has not listed its hypervisors yet");
            return Err(DriverError::Failed {
                what: "tell its hosts",
                detail: problem.to_owned(),
            });
        }
        Ok(state.hosts.keys().cloned().collect())
    }

    /// The servers of a host. Looks at those that have their notice, unless that was just done.
    pub(super) async fn views_of(
        self: &Arc<Self>,
        host: &str,
    ) -> Result<Vec<ServerView>, DriverError> {
        self.health().await?;
        let now = self.clock.now();
        let due: Vec<Uuid> = {
            let state = self.state();
            let noticed = state
                .servers
                .on(host)
                .filter(|s| s.metadata.contains_key(notice::NOTICE_EVACUATION));
            let looks = |id: Uuid| state.looks.get(&id).copied();
            let due =
                noticed.filter(|s| !is_younger(looks(s.id), now, self.settings.watch_seconds));
            let mut due: Vec<Uuid> = due.map(|s| s.id).collect();
            due.sort_by_key(|id| looks(*id));
            due.truncate(LOOKS);
            due
        };
        // An API that hangs must not delay the host's heartbeats; the last list is used then.
        let looks = join_all(due.into_iter().map(|id| async move {
            if self.may_look(now) {
                self.look_again(ServerId(id)).await;
            }
        }));
        let _ = tokio::time::timeout(LOOK_LIMIT, looks).await;
        Ok(self.state().servers.on(host).map(facts::view).collect())
    }

    /// The servers of a host that match `like`, from the last list.
    pub(super) fn which_on(&self, host: &str, like: fn(&Server) -> bool) -> Vec<ServerId> {
        let state = self.state();
        let like = state.servers.on(host).filter(|server| like(server));
        like.map(|server| ServerId(server.id)).collect()
    }

    /// Whether another look is permitted now; if so, reserves it. Also permits it if the clock was
    /// set back.
    fn may_look(&self, now: Timestamp) -> bool {
        let (now, every) = (now.as_millis(), WATCH_EVERY_MS);
        let free = |next: i64| (next <= now || next > now + every).then_some(now + every);
        let order = Ordering::Relaxed;
        self.next_look.fetch_update(order, order, free).is_ok()
    }

    /// The current state of one server. Waits for an unavailable API; the agent limits the time.
    pub(super) async fn server(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<Server, DriverError> {
        loop {
            match self.compute.server(server_id.0).await {
                Ok(server) => return Ok(server),
                Err(OpenStackError::NotFound { .. }) => {
                    return Err(DriverError::NotFound { server_id });
                }
                Err(error) if error.is_passing() => {
                    tracing::warn!(%server_id, code = error.code(), "waiting for Nova's API: {error}");
                    tokio::time::sleep(self.settings.poll()).await;
                }
                Err(error) => return Err(failed(what, &error)),
            }
        }
    }

    /// Reads one server again. If that fails, the next list corrects its data.
    pub(super) async fn look_again(&self, server_id: ServerId) {
        match self.compute.server(server_id.0).await {
            Ok(server) => self.believe(Some(server), server_id),
            Err(OpenStackError::NotFound { .. }) => self.believe(None, server_id),
            Err(error) => {
                tracing::warn!(%server_id, code = error.code(), "a server cannot be seen: {error}")
            }
        }
    }

    /// Stores what the driver has just done to a server, without asking Nova.
    pub(super) fn believe(&self, server: Option<Server>, server_id: ServerId) {
        let mut state = self.state();
        match server {
            Some(server) => {
                state.looks.insert(server.id, self.clock.now());
                state.servers.put(server);
            }
            None => {
                state.looks.remove(&server_id.0);
                state.servers.remove(server_id.0);
                let now = self.clock.now();
                state
                    .deleted
                    .retain(|_, at| is_younger(Some(*at), now, GONE_SECONDS));
                state.deleted.insert(server_id.0, now);
            }
        }
    }

    /// Whether Nova has just reported that the server does not exist, so that another request is
    /// unnecessary.
    pub(super) fn was_deleted_recently(&self, server_id: ServerId) -> bool {
        let at = self.state().deleted.get(&server_id.0).copied();
        is_younger(at, self.clock.now(), GONE_SECONDS)
    }

    // ---- asking ----

    fn start_polling(self: &Arc<Self>) {
        let mut polling = self.polling.lock().unwrap_or_else(PoisonError::into_inner);
        if polling.is_none() {
            let mut tasks = TaskSet::new("nova");
            tasks.spawn(poll_forever(Arc::downgrade(self)));
            *polling = Some(tasks);
        }
    }

    async fn poll(&self) {
        let now = self.clock.now();
        let hosts_are_old = !is_younger(self.state().hosts_at, now, self.settings.hosts_seconds);
        let mut problem = None;
        if hosts_are_old {
            match self.lists.hypervisors().await {
                Ok(hypervisors) => {
                    let mut state = self.state();
                    state.hosts = facts::hosts(&hypervisors);
                    state.hosts_at = Some(now);
                }
                Err(error) => problem = Some(error),
            }
        }
        if let Err(error) = self.list_servers(now).await {
            problem = Some(error);
        }
        if let Some(error) = &problem {
            tracing::warn!(
                code = error.code(),
                "Nova does not tell what there is: {error}"
            );
        }
        self.state().problem = problem.map(|error| error.to_string());
        self.rounds.send_modify(|round| *round += 1);
    }

    async fn list_servers(&self, now: Timestamp) -> Result<(), OpenStackError> {
        let filter = self.filter(now);
        let found = self.lists.servers(&filter).await?;
        let mut state = self.state();
        if filter.changes_since.is_none() {
            // Servers in a cell that does not answer keep their last known data.
            let silent = found.iter().filter(|server| server.is_partial());
            let silent: BTreeSet<Uuid> = silent.map(|server| server.id).collect();
            state.servers.keep_only(&silent);
            state.listed_all_at = Some(now);
        }
        for server in found {
            if server.is_partial() {
                continue;
            }
            // Uses Nova's own time, so this host's clock does not matter. Nova's timestamps can be
            // compared as text.
            if state.since.as_ref() < server.updated.as_ref() {
                state.since.clone_from(&server.updated);
            }
            if server.status == "DELETED" {
                state.servers.remove(server.id);
            } else {
                state.servers.put(server);
            }
        }
        let NovaState { servers, looks, .. } = &mut *state;
        looks.retain(|id, _| servers.contains(*id));
        state.listed_at = Some(now);
        Ok(())
    }

    /// A single host's list is short, and only a complete list shows which servers have left the
    /// host.
    fn filter(&self, now: Timestamp) -> ServerFilter {
        if let Some(host) = &self.only {
            return ServerFilter::on_host(host);
        }
        let state = self.state();
        let mut filter = ServerFilter::everywhere();
        if is_younger(state.listed_all_at, now, self.settings.full_list_seconds) {
            filter.changes_since.clone_from(&state.since);
        }
        filter
    }
}

async fn poll_forever(cloud: Weak<NovaCloud>) {
    while let Some(alive) = cloud.upgrade() {
        alive.poll().await;
        let pause = seconds(alive.settings.refresh_seconds);
        // Lets this task end with the last driver.
        drop(alive);
        tokio::time::sleep(pause).await;
    }
}

fn is_younger(at: Option<Timestamp>, now: Timestamp, limit_seconds: f64) -> bool {
    let limit = seconds(limit_seconds).as_millis();
    at.is_some_and(|at| u128::from(now.millis_since(at).unsigned_abs()) < limit)
}

pub(super) fn failed(what: &'static str, error: &OpenStackError) -> DriverError {
    DriverError::Failed {
        what,
        detail: format!("{}: {error}", error.code()),
    }
}
