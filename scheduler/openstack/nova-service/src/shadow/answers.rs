//! Waits for nova-scheduler's answers, and records the shadow's decisions beside them.
//!
//! The reply itself goes to its caller alone. What it claims is in Placement: a server that gets a
//! host holds its amounts there before the caller has its reply.

use super::verdict::{NovaAnswer, compare};
use crate::Tasks;
use crate::decisions::Decisions;
use crate::facts::Facts;
use ebbtide_model::{ComparisonVerdict, Decision, ServerId};
use ebbtide_nova::hosts::ComputeRow;
use ebbtide_nova_db::CallerWait;
use ebbtide_runtime::task::pause;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Pauses between two looks, in milliseconds; together a little more than the time after which a
/// caller gives up (`rpc_response_timeout`).
const PAUSES: [u64; 10] = [100, 100, 150, 250, 500, 1000, 2000, 4000, 16_000, 40_000];
/// Most requests whose answers are waited for.
const MOST_OPEN: u32 = 2000;
/// Most looks at Placement at the same time.
const LOOKS: usize = 4;

/// A copy of a request that the shadow has decided.
pub(crate) struct ObservedRequest {
    pub(crate) decision: Decision,
    /// A rebuild on the server's own host, which claims nothing.
    pub(crate) rebuild: bool,
    /// What the hosts that were ranked had reported.
    pub(crate) reports: HostReports,
}

/// What hosts had reported when a decision was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HostReports(BTreeMap<String, Vec<ComputeRow>>);

impl HostReports {
    /// Those of the hosts that a decision ranked.
    pub(crate) fn of(decision: &Decision, facts: &Facts) -> Self {
        let instances = decision.explanation.instances.iter();
        let ranked = instances.flat_map(|instance| &instance.ranking);
        let hosts: BTreeSet<&String> = ranked.map(|ranked| &ranked.host).collect();
        let rows = facts.read(|cloud| {
            let hosts = hosts.into_iter();
            hosts
                .map(|host| (host.clone(), cloud.reports_of(host)))
                .collect()
        });
        Self(rows)
    }

    /// The hosts that have reported something else since.
    fn changed(&self, facts: &Facts) -> Vec<String> {
        facts.read(|cloud| {
            let hosts = self.0.iter();
            let changed = hosts.filter(|(host, rows)| cloud.reports_of(host) != **rows);
            changed.map(|(host, _)| host.clone()).collect()
        })
    }
}

/// What waits for answers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Answers {
    facts: Facts,
    decisions: Decisions,
    tasks: Tasks,
    open: Arc<AtomicU32>,
    looks: Arc<Semaphore>,
}

/// A request whose answer is not known. Dropping it ends that.
pub(crate) struct OpenRequest {
    open: Arc<AtomicU32>,
    /// How many others there were when it arrived.
    beside: u32,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One server of a request.
struct AwaitedServer {
    id: ServerId,
    /// Where it was before: a move leaves this host.
    home: Option<String>,
    host: Option<String>,
    /// Its caller has an answer, and it has no host.
    refused: bool,
}

impl AwaitedServer {
    fn is_known(&self) -> bool {
        self.host.is_some() || self.refused
    }
}

impl Answers {
    pub(crate) fn new(facts: &Facts, decisions: &Decisions, tasks: &Tasks) -> Self {
        Self {
            facts: facts.clone(),
            decisions: decisions.clone(),
            tasks: tasks.clone(),
            open: Arc::default(),
            looks: Arc::new(Semaphore::new(LOOKS)),
        }
    }

    pub(crate) fn arrived(&self) -> OpenRequest {
        OpenRequest {
            beside: self.open.fetch_add(1, Ordering::Relaxed),
            open: Arc::clone(&self.open),
        }
    }

    /// Records the decision as soon as the answer of nova-scheduler is known.
    pub(crate) fn follow(&self, observed: ObservedRequest, open: OpenRequest) {
        if observed.rebuild {
            let why = NovaAnswer::Unknown("a rebuild on its own host claims nothing");
            return self.record(observed.decision, &why, open.beside);
        }
        if open.beside >= MOST_OPEN {
            let why = NovaAnswer::Unknown("too many requests had no answer yet");
            return self.record(observed.decision, &why, open.beside);
        }
        let this = self.clone();
        self.tasks.spawn("shadow-answer", async move {
            let answer = this.wait(&observed.decision, &observed.reports).await;
            this.record(observed.decision, &answer, open.beside);
        });
    }

    async fn wait(&self, decision: &Decision, reports: &HostReports) -> NovaAnswer {
        let ids = decision.request.server_ids.iter().copied();
        let mut servers: Vec<AwaitedServer> = ids.map(|id| self.awaited(id)).collect();
        self.look_at_all(&mut servers).await;
        // What is claimed already was in the way while the shadow decided.
        let raced = servers.iter().any(|server| server.host.is_some());
        // nova-scheduler reads the hosts again for each request, and may have read these.
        let mut changed = BTreeSet::new();
        let mut ended = false;
        for millis in PAUSES {
            if ended || servers.iter().all(AwaitedServer::is_known) {
                break;
            }
            // At the end there is one more look, without the rest of the pauses.
            ended = !pause(self.tasks.stop(), Duration::from_millis(millis)).await;
            self.look_at_all(&mut servers).await;
            if servers.iter().all(AwaitedServer::is_known) {
                // By now a compute may have reported what it got from this very answer.
                break;
            }
            self.facts.database.freshen().await;
            changed.extend(reports.changed(&self.facts));
        }
        if ended && !servers.iter().all(AwaitedServer::is_known) {
            return NovaAnswer::Unknown("the shadow ended before the answer");
        }
        let hosts = servers.into_iter().map(|server| server.host).collect();
        NovaAnswer::Hosts {
            hosts,
            raced,
            changed,
        }
    }

    fn awaited(&self, id: ServerId) -> AwaitedServer {
        let known = self.facts.read(|cloud| cloud.server(id.0));
        AwaitedServer {
            id,
            home: known.and_then(|server| server.host),
            host: None,
            refused: false,
        }
    }

    async fn look_at_all(&self, servers: &mut [AwaitedServer]) {
        let unknown = servers.iter_mut().filter(|server| !server.is_known());
        for server in unknown {
            let Ok(_turn) = self.looks.acquire().await else {
                return;
            };
            // In this order: a caller that has its answer has what is claimed for it, too.
            let gone = self.caller_is_gone(server.id).await;
            server.host = self.claimed_host(server).await;
            server.refused = gone && server.host.is_none();
        }
    }

    /// Whether no caller waits for a host for a server any more.
    async fn caller_is_gone(&self, id: ServerId) -> bool {
        let nova = self.facts.database.nova();
        match nova.caller_waits(&id.to_string()).await {
            Ok(CallerWait::Gone(_)) => true,
            Ok(_) => false,
            Err(error) => {
                tracing::debug!(code = error.code(), "{error}");
                false
            }
        }
    }

    /// The host on which a server holds something now, unless that is the one it comes from.
    async fn claimed_host(&self, server: &AwaitedServer) -> Option<String> {
        let placement = self.facts.providers.placement(super::NAME);
        let held = match placement.allocations(server.id.0).await {
            Ok(held) => held,
            Err(error) => {
                tracing::debug!(code = error.code(), "{error}");
                return None;
            }
        };
        let providers = held.allocations.into_keys();
        let mut hosts = providers.filter_map(|provider| {
            let host = self.facts.read(|cloud| cloud.host(provider))?;
            Some(host.host)
        });
        hosts.find(|host| server.home.as_ref() != Some(host))
    }

    fn record(&self, mut decision: Decision, answer: &NovaAnswer, beside: u32) {
        let comparison = compare(&decision, answer, beside);
        if comparison.verdict != ComparisonVerdict::Same {
            tracing::info!(
                request = %decision.trace.request_id,
                verdict = comparison.verdict.as_str(),
                "{}",
                comparison.reason
            );
        }
        decision.trace.comparison = Some(Box::new(comparison));
        self.decisions.record_made(decision);
    }
}
