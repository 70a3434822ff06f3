//! Hosts that operators remove for good ([ADR 73]).
//!
//! Nova's table of services is the record of removed hosts: a deleted nova-compute is a row until
//! the operator archives it. The scheduler removes what Ebbtide has of such a host: the reclaim in
//! the ledger, what is remembered of its agent, and the agent's queue. It does so by itself some
//! moments after the compute service was deleted, and when the operator asks.
//!
//! [ADR 73]: ../../../../docs/development/adr/0073-novas-services-say-which-hosts-are-removed.md

use crate::Tasks;
use crate::error::NovaServiceError;
use crate::evacuate::{Evacuations, PreemptionDriver};
use crate::facts::Facts;
use crate::reclaims::ComputeServices;
use ebbtide_model::names;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::LedgerError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Interval of looks at Nova's deleted services: one query for each cell.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Why a host is not removed or readmitted.
#[derive(Debug, Error)]
pub enum RemovalError {
    /// Neither Nova nor the ledger knows a host of this name.
    #[error("there is no host {0:?}")]
    NoHost(String),
    /// Something is in the way.
    #[error("host {host:?} cannot be removed: {why}")]
    InUse {
        host: String,
        /// What it is, and what to do first.
        why: String,
    },
    /// Nova registers hosts, not the scheduler.
    #[error(
        "Nova has no compute service of host {0:?}; start nova-compute on it, which registers the \
         host, and then its agent"
    )]
    Unregistered(String),
    /// The ledger, Nova or the bus to the agents.
    #[error(transparent)]
    Cloud(#[from] NovaServiceError),
}

impl From<LedgerError> for RemovalError {
    fn from(error: LedgerError) -> Self {
        Self::Cloud(error.into())
    }
}

/// What a removed host leaves at the broker of the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedAgent {
    /// The queue of its agent.
    pub queue: String,
    /// Why the queue is still there; `None`: it is deleted, or was not there.
    pub problem: Option<String>,
}

/// The removed hosts that a scheduler has looked at: the reason for which one is not removed yet,
/// or `None` for one that is.
type LookedAt = BTreeMap<String, Option<String>>;

/// Removes hosts and readmits them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HostRemovals {
    facts: Facts,
    preempting: PreemptionDriver,
    /// The reason for which Nova's API cannot be used, in words.
    services: Result<Arc<dyn ComputeServices>, String>,
}

/// Looks regularly for hosts whose compute service was deleted.
pub(crate) fn start(removals: HostRemovals, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("removed-hosts", async move {
        let mut looked_at = LookedAt::new();
        while pause(&stop, LOOK_EVERY).await {
            if let Err(error) = removals.look(&mut looked_at).await {
                tracing::warn!(code = error.code(), "removed hosts: {error}");
            }
        }
    });
}

impl HostRemovals {
    pub(crate) fn new(
        facts: &Facts,
        preempting: &PreemptionDriver,
        services: Result<Arc<dyn ComputeServices>, String>,
    ) -> Self {
        Self {
            facts: facts.clone(),
            preempting: preempting.clone(),
            services,
        }
    }

    /// Removes what Ebbtide has of a host that Nova does not have any more. Safe to repeat.
    pub(crate) async fn remove(&self, name: &str) -> Result<RemovedAgent, RemovalError> {
        let evacuations = self.evacuations()?;
        self.facts.database.freshen().await;
        // Lists of hosts name the compute node, the agent has the name of the service.
        let service = self.facts.read(|cloud| cloud.service_host(name));
        let host = service.unwrap_or_else(|| name.to_owned());
        self.check_removable(evacuations, &host).await?;
        let ledger = evacuations.ledger();
        while let Some(row) = ledger.reclaim(&host).await? {
            ledger.delete_reclaim(&host, row.version).await?;
        }
        evacuations.forget_agent(&host);
        Ok(evacuations.delete_queue_of(&host).await)
    }

    async fn check_removable(
        &self,
        evacuations: &Evacuations,
        host: &str,
    ) -> Result<(), RemovalError> {
        let refuse = |why: String| {
            Err(RemovalError::InUse {
                host: names::shorten(host),
                why,
            })
        };
        let running = evacuations.under_way_on(host).await?;
        if running > 0 {
            return refuse(format!(
                "evacuations under way: {running}; wait until `ebbtide evacuation list` shows that they have ended"
            ));
        }
        let servers = self.facts.read(|cloud| cloud.servers_on(host));
        if servers > 0 {
            return refuse(format!(
                "servers on it: {servers}; `openstack server list --all-projects --host {host}` lists them, migrate or delete them first"
            ));
        }
        if let Some(id) = self.compute_service(host).await? {
            return refuse(format!(
                "Nova still has its compute service; first: openstack compute service delete {id}"
            ));
        }
        if !self.is_known(evacuations, host).await? {
            return Err(RemovalError::NoHost(names::shorten(host)));
        }
        if evacuations.is_heard(host).await? {
            return refuse(
                "its agent still reads its queue; stop the agent, and try again".to_owned(),
            );
        }
        Ok(())
    }

    /// Nova's id of the compute service of a host, or how to find it. `None`: Nova has none.
    async fn compute_service(&self, host: &str) -> Result<Option<String>, NovaServiceError> {
        if let Ok(services) = &self.services
            && let Some(state) = services.state(host).await?
        {
            return Ok(Some(state.id));
        }
        let is_there = self.facts.read(|cloud| cloud.has_service(host));
        let id = || format!("ID (`openstack compute service list --host {host}` shows it)");
        Ok(is_there.then(id))
    }

    /// Whether a host that Nova does not have was there once: names that were mistyped are refused.
    async fn is_known(
        &self,
        evacuations: &Evacuations,
        host: &str,
    ) -> Result<bool, NovaServiceError> {
        Ok(evacuations.has_refused_agent(host)
            || evacuations.ledger().reclaim(host).await?.is_some()
            || self.removed_hosts().await?.contains(host))
    }

    /// Hosts whose compute service was deleted.
    async fn removed_hosts(&self) -> Result<BTreeSet<String>, NovaServiceError> {
        let mut removed = BTreeSet::new();
        for cell in self.facts.database.nova().enabled_cells() {
            removed.extend(cell.removed_hosts().await?);
        }
        // Another cell may have one of that name.
        self.facts
            .read(|cloud| removed.retain(|host| !cloud.has_service(host)));
        Ok(removed)
    }

    /// Lets a host register again: Nova does that, so there is nothing to undo.
    pub(crate) async fn readmit(&self, name: &str) -> Result<(), RemovalError> {
        self.facts.database.freshen().await;
        let is_there = |cloud: &ebbtide_nova_cloud::Cloud| {
            cloud.has_service(name) || cloud.service_host(name).is_some()
        };
        match self.facts.read(is_there) {
            true => Ok(()),
            false => Err(RemovalError::Unregistered(names::shorten(name))),
        }
    }

    /// Looks once at the hosts whose compute service was deleted.
    pub(crate) async fn look(&self, looked_at: &mut LookedAt) -> Result<(), NovaServiceError> {
        let Some(evacuations) = self.preempting.get() else {
            return Ok(());
        };
        self.facts.database.freshen().await;
        let removed = self.removed_hosts().await?;
        looked_at.retain(|host, _| removed.contains(host));
        for host in removed {
            let is_done = looked_at.get(&host).is_some_and(Option::is_none);
            // The agent of a removed host makes its queue again when it starts.
            if is_done && !evacuations.has_refused_agent(&host) {
                continue;
            }
            let why = match self.remove(&host).await {
                Ok(left) => {
                    log_removal(&host, &left);
                    None
                }
                Err(RemovalError::Cloud(error)) => return Err(error),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = &why
                && looked_at.get(&host) != Some(&Some(why.clone()))
            {
                tracing::info!(host, "its compute service was deleted: {why}");
            }
            looked_at.insert(host, why);
        }
        Ok(())
    }

    fn evacuations(&self) -> Result<&Evacuations, RemovalError> {
        self.preempting.ledger()?;
        let missing = "there is no ledger ([ebbtide] connection), so hosts have no agents, and \
                       `openstack compute service delete` is all that a removal takes";
        let missing = || NovaServiceError::Config(missing.to_owned());
        self.preempting.get().ok_or_else(|| missing().into())
    }
}

fn log_removal(host: &str, left: &RemovedAgent) {
    let queue = &left.queue;
    match &left.problem {
        None => tracing::info!(
            host,
            queue,
            "the host is removed: its agent's queue is deleted"
        ),
        Some(problem) => tracing::warn!(
            code = "EB-DOOR-072",
            host,
            "the host is removed, and the queue of its agent is still at the broker: {problem}; \
             there: rabbitmqctl delete_queue {queue}"
        ),
    }
}
