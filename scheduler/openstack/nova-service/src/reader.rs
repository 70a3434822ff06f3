//! What the API reads of a running scheduler: hosts, servers and evacuations of the whole cloud,
//! whichever scheduler drives them.

use crate::Tasks;
use crate::error::NovaServiceError;
use crate::evacuate::{Evacuations, PreemptionDriver};
use crate::facts::Facts;
use crate::lives::LifeRecorder;
use crate::metrics::Metrics;
use crate::plugins::{self, NovaServicePlugins};
use crate::preemption::{Preemption, PreemptionPolicy, PreemptionState, Victim, VictimState};
use crate::reclaims::{HostReclaims, ReclaimError};
use crate::removals::{HostRemovals, RemovalError, RemovedAgent};
use crate::select::Selector;
use crate::what_if::{WhatIf, WhatIfError, offered_flavor, server_group};
use ebbtide_bus::{InProcessBroker, QueuePrefix};
use ebbtide_engine::{HostReclaim, HostSummary};
use ebbtide_live_plugins::PluginControl;
use ebbtide_market::FlavorPrice;
use ebbtide_model::{
    Aggregate, BudgetScope, Decision, DisruptionBudget, Evacuation, Flavor, Money, ReclaimTerms,
    Seconds, Server, ServerGroup, ServerId, Timestamp,
};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Cloud, CloudSettings, flavor_view};
use ebbtide_nova_db::{NovaDb, OfferedFlavor};
use ebbtide_openstack::Placement;
use ebbtide_runtime::clock;
use ebbtide_store::ledger::Ledger;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long ended evacuations are shown. The ledger keeps them longer, for bills.
const ENDED_MILLIS: i64 = 24 * 3600 * 1000;

/// Reads the cloud. Cheap to clone.
#[derive(Clone)]
pub struct CloudReader {
    pub(crate) facts: Facts,
    pub(crate) preempting: PreemptionDriver,
    pub(crate) lives: Arc<LifeRecorder>,
    plugins: NovaServicePlugins,
    /// What answers what-ifs.
    selector: Selector,
    reclaims: HostReclaims,
    removals: HostRemovals,
}

/// Whether one of the projects may use it; `None`: whether it is there.
fn is_for_any(offered: &OfferedFlavor, projects: Option<&[String]>) -> bool {
    projects.is_none_or(|all| all.iter().any(|project| offered.is_for(project)))
}

/// The name under which a reader without a scheduler looks at a ledger. It drives nothing.
const READER: &str = "reader";

impl CloudReader {
    /// A reader beside a running scheduler.
    pub(crate) fn new(selector: &Selector, plugins: NovaServicePlugins) -> Self {
        let (facts, preempting) = (&selector.facts, &selector.preempting);
        let unused = || Err("this process does not use it".to_owned());
        Self {
            plugins,
            facts: selector.facts.clone(),
            preempting: selector.preempting.clone(),
            lives: Arc::default(),
            selector: selector.for_what_ifs(),
            reclaims: HostReclaims::new(facts, preempting, unused()),
            removals: HostRemovals::new(facts, preempting, unused()),
        }
    }

    /// Waits until the cloud in memory can be read. For a watchdog: a scheduler for which this does
    /// not return decides nothing either. Blocks the thread.
    pub fn wait_until_readable(&self) {
        self.facts.read(|_: &Cloud| ());
    }

    /// The same, for a scheduler that reclaims hosts.
    pub(crate) fn with_reclaims(self, reclaims: HostReclaims) -> Self {
        Self { reclaims, ..self }
    }

    /// The same, for a scheduler that removes hosts.
    pub(crate) fn with_removals(self, removals: HostRemovals) -> Self {
        Self { removals, ..self }
    }

    /// A reader without a scheduler: the cloud as these databases and Placement have it now.
    /// [`Self::read_again`] follows it.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub async fn of_databases(
        nova: NovaDb,
        placement: Placement,
        ledger: Ledger,
    ) -> Result<Self, NovaServiceError> {
        let cloud = Cloud::new(Options::default(), CloudSettings::default())?;
        let facts = Facts::of_sources(cloud, nova, placement);
        let plugins = plugins::none(&facts)?;
        let owner = ledger.register(READER).await?;
        let evacuations = Evacuations::new(
            facts.clone(),
            ledger,
            owner,
            Arc::new(InProcessBroker::new().connect()),
            QueuePrefix::new(READER)?,
            PreemptionPolicy::default(),
            Tasks::new(CancellationToken::new()),
            Metrics::default(),
        );
        let selector = Selector::observer(facts, PreemptionDriver::ready(evacuations));
        let reader = Self::new(&selector, plugins);
        reader.read_again().await?;
        Ok(reader)
    }

    /// Reads everything anew.
    ///
    /// # Errors
    /// As [`Self::of_databases`].
    pub async fn read_again(&self) -> Result<(), NovaServiceError> {
        self.facts.database.load().await?;
        self.facts.providers.load().await?;
        let ids: Vec<Uuid> = self.facts.read(|cloud| cloud.compute_nodes().collect());
        for id in ids {
            self.facts.providers.refresh(id).await?;
        }
        if let Some(evacuations) = self.preempting.get() {
            evacuations.freshen().await?;
        }
        Ok(())
    }

    /// Returns when everything that was written to Nova's databases before this call is known here,
    /// or when they are too slow. Between requests nothing else reads them.
    pub async fn freshen(&self) {
        self.facts.database.freshen().await;
    }

    /// All hosts with both states, by name.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostSummary> {
        let now = clock::now().as_millis().saturating_mul(1000);
        self.facts.read(|cloud| cloud.host_summaries(now))
    }

    /// All servers that are not deleted, by id.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        self.facts.read(Cloud::servers)
    }

    /// A server that is not deleted.
    #[must_use]
    pub fn server(&self, id: ServerId) -> Option<Server> {
        self.facts.read(|cloud| cloud.server(id.0))
    }

    /// All aggregates, by name.
    #[must_use]
    pub fn aggregates(&self) -> Vec<Aggregate> {
        self.facts.read(Cloud::aggregate_views)
    }

    /// All server groups whose policy Ebbtide knows, by age.
    ///
    /// # Errors
    /// Nova's API database cannot be read.
    pub async fn groups(&self) -> Result<Vec<ServerGroup>, NovaServiceError> {
        let groups = self.facts.database.nova().groups().await?;
        Ok(groups.iter().filter_map(server_group).collect())
    }

    /// A flavor by id or name. With `projects` only if nova-api builds servers of it for one of
    /// them.
    ///
    /// # Errors
    /// [`WhatIfError::NoFlavor`]; Nova's API database cannot be read.
    pub async fn flavor(
        &self,
        id_or_name: &str,
        projects: Option<&[String]>,
    ) -> Result<Flavor, WhatIfError> {
        let nova = self.facts.database.nova();
        let found = offered_flavor(nova, id_or_name, |one| is_for_any(one, projects)).await?;
        Ok(flavor_view(&found))
    }

    /// The flavors of which nova-api builds servers, by name. With `projects` only those of which
    /// it does for one of them.
    ///
    /// # Errors
    /// Nova's API database cannot be read.
    pub async fn flavors(
        &self,
        projects: Option<&[String]>,
    ) -> Result<Vec<Flavor>, NovaServiceError> {
        let offered = self.facts.database.nova().flavors_for_sale().await?;
        let visible = offered.iter().filter(|one| is_for_any(one, projects));
        let mut flavors: Vec<Flavor> = visible.map(|one| flavor_view(&one.flavor)).collect();
        flavors.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(flavors)
    }

    /// What an hour of each flavor costs that says a price, by name. With `projects` only of
    /// flavors of which nova-api builds servers for one of them.
    ///
    /// # Errors
    /// Nova's API database cannot be read.
    pub async fn prices(
        &self,
        projects: Option<&[String]>,
    ) -> Result<Vec<FlavorPrice>, NovaServiceError> {
        let flavors = self.flavors(projects).await?;
        let market = &self.selector.market;
        let mut prices: Vec<FlavorPrice> = flavors.iter().map(|f| market.flavor_price(f)).collect();
        prices.retain(|price| price.base > Money::default());
        Ok(prices)
    }

    /// What an hour of a flavor costs.
    #[must_use]
    pub fn price(&self, flavor: &Flavor) -> FlavorPrice {
        self.selector.market.flavor_price(flavor)
    }

    /// Whether prices follow supply and demand.
    #[must_use]
    pub fn has_market(&self) -> bool {
        self.selector.market.is_open()
    }

    /// All disruption budgets, by scope. None without a ledger.
    ///
    /// # Errors
    /// The ledger is configured and cannot be read.
    pub async fn budgets(&self) -> Result<Vec<DisruptionBudget>, NovaServiceError> {
        let Some(ledger) = self.preempting.ledger()? else {
            return Ok(Vec::new());
        };
        let known = ledger.budgets().await?.into_iter();
        Ok(known.map(|known| known.budget).collect())
    }

    /// Creates or replaces a budget, for all schedulers. False: Nova has no such server group.
    ///
    /// # Errors
    /// There is no ledger, or it cannot be written; Nova's API database cannot be read.
    pub async fn put_budget(&self, budget: &DisruptionBudget) -> Result<bool, NovaServiceError> {
        if let BudgetScope::Group(group) = &budget.scope {
            let nova = self.facts.database.nova();
            if nova.group(&group.to_string()).await?.is_none() {
                return Ok(false);
            }
        }
        self.needed_ledger()?.put_budget(budget).await?;
        Ok(true)
    }

    /// Deletes a budget, for all schedulers. False: there is none.
    ///
    /// # Errors
    /// There is no ledger, or it cannot be written.
    pub async fn delete_budget(&self, scope: &BudgetScope) -> Result<bool, NovaServiceError> {
        Ok(self.needed_ledger()?.delete_budget(scope).await?)
    }

    fn needed_ledger(&self) -> Result<&Ledger, NovaServiceError> {
        let missing = "there is no ledger ([ebbtide] connection), so no server is preempted and a \
                       disruption budget has nothing to limit";
        let ledger = self.preempting.ledger()?;
        ledger.ok_or_else(|| NovaServiceError::Config(missing.to_owned()))
    }

    /// Takes a host back for an outside owner, for all schedulers. With `dry_run` nothing changes.
    ///
    /// # Errors
    /// [`ReclaimError`]; then the host is not reclaimed, or was before.
    pub async fn reclaim_host(
        &self,
        host: &str,
        terms: ReclaimTerms,
        dry_run: bool,
    ) -> Result<HostReclaim, ReclaimError> {
        self.reclaims.reclaim(host, terms, dry_run).await
    }

    /// Returns a host. Victims that have not been acted upon are spared.
    ///
    /// # Errors
    /// [`ReclaimError`]. If Nova cannot be told, any scheduler tells it later.
    pub async fn return_host(&self, host: &str, keep_disabled: bool) -> Result<(), ReclaimError> {
        self.reclaims.give_back(host, keep_disabled).await
    }

    /// The reclaims that are in force, by host; of one host only with `host`.
    ///
    /// # Errors
    /// [`ReclaimError`].
    pub async fn host_reclaims(
        &self,
        host: Option<&str>,
    ) -> Result<Vec<HostReclaim>, ReclaimError> {
        self.reclaims.reclaims(host).await
    }

    /// Removes what Ebbtide has of a host that Nova does not have any more.
    ///
    /// # Errors
    /// [`RemovalError`]; then nothing is removed, or a part, and repeating the call is safe.
    pub async fn remove_host(&self, host: &str) -> Result<RemovedAgent, RemovalError> {
        self.removals.remove(host).await
    }

    /// Says whether a host that was removed may report: Nova registers hosts.
    ///
    /// # Errors
    /// [`RemovalError::Unregistered`]: Nova has no compute service of it.
    pub async fn readmit_host(&self, host: &str) -> Result<(), RemovalError> {
        self.removals.readmit(host).await
    }

    /// The decision that a request for servers would get now. Writes nothing.
    ///
    /// # Errors
    /// [`WhatIfError`]. That there is no host is an answer.
    pub async fn what_if(&self, question: &WhatIf) -> Result<Decision, WhatIfError> {
        let options = self.facts.nova_options();
        let spec = question.request(self.facts.database.nova(), &options);
        let spec = spec.await?;
        self.freshen().await;
        let mut known = question
            .servers
            .iter()
            .filter(|id| self.server(**id).is_some());
        if let Some(known) = known.next() {
            return Err(WhatIfError::Field {
                field: "server_ids",
                problem: format!("server {known} exists; a what-if is about new servers"),
            });
        }
        Ok(self.selector.what_if(spec, question.instances()).await)
    }

    /// Lets a leaving server go before the end of its grace period, whichever scheduler drives its
    /// evacuation. `None`: it is not leaving.
    ///
    /// # Errors
    /// The ledger cannot be read, or the broker does not take the message for the agent.
    pub async fn release_early(
        &self,
        server: ServerId,
    ) -> Result<Option<Evacuation>, NovaServiceError> {
        // Its absence is said where a ledger is configured.
        self.preempting.ledger()?;
        let Some(evacuations) = self.preempting.get() else {
            return Ok(None);
        };
        let released = evacuations.release_early(server).await?;
        Ok(released.map(|(record, place)| {
            let victim = &record.victims[place];
            self.evacuation(&record, victim)
        }))
    }

    /// The plugins, and how they are changed.
    #[must_use]
    pub fn plugins(&self) -> Arc<dyn PluginControl> {
        Arc::new(self.plugins.clone())
    }

    /// The cost module in use.
    #[must_use]
    pub fn cost_module(&self) -> String {
        let name = |cloud: &Cloud| cloud.settings().engine.cost_module.clone();
        self.facts.read(name)
    }

    /// The unit of its costs, and the grace period of flavors without one.
    #[must_use]
    pub fn cloud_defaults(&self) -> (String, Seconds) {
        self.facts
            .read(|cloud| (cloud.cost_units().0, cloud.settings().grace))
    }

    /// True if there is a ledger and it is open, and the bus to the agents is connected.
    #[must_use]
    pub fn bus_is_ready(&self) -> bool {
        self.preempting.bus_is_ready()
    }

    /// Evacuations under way of all schedulers, oldest first; with `ended` also those that ended
    /// within the last day. None without a ledger.
    ///
    /// # Errors
    /// The ledger is configured and cannot be read.
    pub async fn evacuations(&self, ended: bool) -> Result<Vec<Evacuation>, NovaServiceError> {
        let since = ended.then_some(ENDED_MILLIS);
        let records = self.preempting.records(since).await?;
        let all = records.iter().flat_map(|record| {
            let shown = is_shown(record);
            let victims = record.victims.iter().filter(move |_| shown);
            victims.map(|victim| self.evacuation(record, victim))
        });
        let mut all: Vec<Evacuation> = all.collect();
        if !ended {
            all.retain(|evacuation| !evacuation.state.is_final());
        }
        Ok(all)
    }

    /// A victim as an evacuation, with its host by the name that lists of hosts have.
    fn evacuation(&self, record: &Preemption, victim: &Victim) -> Evacuation {
        let mut evacuation = evacuation(record, victim);
        let (name, host) = self.facts.read(|cloud| {
            let server = cloud.server(victim.server.0);
            let (name, host) = server.map(|server| (server.name, server.host)).unzip();
            // A server that has come back elsewhere was a victim on its earlier host.
            let is_there = |name: &String| cloud.service_host(name).as_ref() == Some(&victim.host);
            let host = host.flatten().filter(is_there);
            (name, host.or_else(|| cloud.name_of_service(&victim.host)))
        });
        if let Some(host) = host {
            evacuation.host = host;
        }
        // Records of earlier versions have no name.
        if evacuation.victim_name.is_empty() {
            evacuation.victim_name = name.unwrap_or_default();
        }
        evacuation
    }
}

/// Victims exist once the swap is done: a plan that Placement refused has none.
fn is_shown(record: &Preemption) -> bool {
    !matches!(
        record.state,
        PreemptionState::Planned | PreemptionState::Refused
    )
}

/// A victim of a record as an evacuation. The record has no times of the steps before the notice.
fn evacuation(record: &Preemption, victim: &Victim) -> Evacuation {
    let mut newcomers = record.newcomers.iter();
    let progress = victim.state.progress();
    let mut evacuation = Evacuation {
        id: victim.evacuation,
        victim_id: victim.server,
        victim_name: victim.name.clone(),
        victim_project_id: victim.had.project_id.clone(),
        victim_group_id: None,
        victim_starts: 0,
        cause: record.cause,
        reclaim_owner: record.reclaim_owner.clone(),
        preemptor_id: newcomers
            .find(|newcomer| newcomer.host == victim.host)
            .map(|newcomer| newcomer.instance.into()),
        host: victim.host.clone(),
        decision_id: record.decision_id,
        behaviour: victim.behaviour,
        grace: victim.grace,
        cost: victim.cost,
        state: progress.state,
        attempts: 0,
        give_up_at: record.planned_at,
        spare_requested: progress.spare_requested,
        reason: None,
        claimed_at: record.planned_at,
        notified_at: None,
        draining_at: None,
        deadline_at: None,
        ended_at: None,
    };
    fill(&mut evacuation, &victim.state);
    evacuation
}

/// What a victim's state says beyond its name.
fn fill(evacuation: &mut Evacuation, state: &VictimState) {
    let mut draining = |deadline: Timestamp| {
        evacuation.deadline_at = Some(deadline);
        evacuation.draining_at = Some(deadline.minus(evacuation.grace));
        evacuation.attempts = 1;
    };
    match state {
        VictimState::Claimed | VictimState::Spared => {}
        VictimState::Notified { attempt, until, .. } => {
            (evacuation.attempts, evacuation.give_up_at) = (*attempt, *until);
        }
        VictimState::Draining { deadline } => draining(*deadline),
        VictimState::Evacuated { at, .. } => evacuation.ended_at = Some(*at),
        VictimState::SpareRequested { until, .. } => evacuation.give_up_at = *until,
        VictimState::Failed { reason, .. } => evacuation.reason = Some(reason.clone()),
    }
}
