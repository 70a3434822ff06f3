//! A standalone region as the API sees it: running state from the actor, the rest from the store.

use super::{Answer, CloudSummary, CloudView, ListedServer, PricedFlavor, UnresolvedRequest};
use crate::advice::RunningLife;
use crate::agent_queues::AgentQueues;
use crate::error::ServiceError;
use crate::plugins::Plugins;
use crate::region_actor::{RegionActor, SequencedEvent, not_read};
use ebbtide_bus::BusStatus;
use ebbtide_engine::HostSummary;
use ebbtide_model::{
    Aggregate, Decision, DecisionId, Evacuation, EvacuationId, Flavor, PastLife, Seconds, Server,
    ServerGroup, ServerId, ServerStatus,
};
use ebbtide_region::{Region, RegionConfig, RegionError, RegionRecord};
use ebbtide_runtime::clock;
use ebbtide_store::{
    DecisionFilter, EvacuationFilter, LifeFilter, PriceFilter, ServerFilter, Store,
};
use tokio::sync::{broadcast, watch};

/// A record has the evacuations of so long, which budgets count.
const RECORDED: Seconds = Seconds(24 * 3600);

/// The view of a standalone region.
pub(crate) struct RegionView {
    pub(crate) region_actor: RegionActor,
    pub(crate) store: Store,
    pub(crate) bus: watch::Receiver<BusStatus>,
    /// `amqp` or `in-process`.
    pub(crate) bus_kind: &'static str,
    pub(crate) plugins: Plugins,
    pub(crate) policy: String,
    pub(crate) database: String,
    pub(crate) config: RegionConfig,
    pub(crate) queues: AgentQueues,
}

impl RegionView {
    /// The servers with their evacuations, in one look at the region.
    async fn listed(&self, servers: Vec<Server>) -> Result<Vec<ListedServer>, ServiceError> {
        if servers.iter().all(|server| server.evacuation_id.is_none()) {
            let without = |server| ListedServer {
                server,
                evacuation: None,
            };
            return Ok(servers.into_iter().map(without).collect());
        }
        let look = move |region: &Region| servers.into_iter().map(|s| listed(region, s)).collect();
        self.region_actor.read(look).await
    }
}

fn listed(region: &Region, server: Server) -> ListedServer {
    let evacuation = server.evacuation_id.and_then(|id| region.evacuation(id));
    ListedServer {
        evacuation: evacuation.cloned(),
        server,
    }
}

impl CloudView for RegionView {
    fn summary(&self) -> Answer<'_, CloudSummary> {
        Box::pin(async move {
            Ok(CloudSummary {
                totals: self.region_actor.read(Region::summary).await?,
                policy: self.policy.clone(),
                cost_module: self.plugins.engine().config().cost_module.clone(),
                bus: self.bus_kind.to_owned(),
                bus_connected: self.bus.borrow().is_ready(),
                database: self.database.clone(),
            })
        })
    }

    fn hosts(&self) -> Answer<'_, Vec<HostSummary>> {
        Box::pin(async move { self.region_actor.read(Region::hosts).await })
    }

    fn host<'a>(&'a self, name: &'a str) -> Answer<'a, Option<(HostSummary, Vec<ListedServer>)>> {
        Box::pin(async move {
            let name = name.to_owned();
            let look = move |region: &Region| {
                let host = region.host(&name)?;
                let servers = region.servers_on(&name).cloned();
                Some((host, servers.map(|s| listed(region, s)).collect()))
            };
            self.region_actor.read(look).await
        })
    }

    fn server(&self, id: ServerId) -> Answer<'_, Option<ListedServer>> {
        Box::pin(async move {
            let found = self.store.server(id).await.map_err(|e| not_read(&e))?;
            Ok(self.listed(found.into_iter().collect()).await?.pop())
        })
    }

    fn server_named<'a>(&'a self, name: &'a str) -> Answer<'a, ListedServer> {
        Box::pin(async move {
            let name = name.to_owned();
            let look = move |region: &Region| -> Result<_, RegionError> {
                Ok(listed(region, region.find_server(&name)?.clone()))
            };
            Ok(self.region_actor.read(look).await??)
        })
    }

    fn servers<'a>(&'a self, filter: &'a ServerFilter) -> Answer<'a, Vec<ListedServer>> {
        Box::pin(async move {
            let servers = self.store.servers(filter).await.map_err(|e| not_read(&e))?;
            self.listed(servers).await
        })
    }

    fn evacuation(&self, id: EvacuationId) -> Answer<'_, Option<Evacuation>> {
        Box::pin(async move { self.store.evacuation(id).await.map_err(|e| not_read(&e)) })
    }

    fn evacuations<'a>(&'a self, filter: &'a EvacuationFilter) -> Answer<'a, Vec<Evacuation>> {
        Box::pin(async move {
            let found = self.store.evacuations(filter).await;
            found.map_err(|e| not_read(&e))
        })
    }

    fn groups(&self) -> Answer<'_, Vec<ServerGroup>> {
        Box::pin(async move { self.region_actor.read(Region::groups).await })
    }

    fn aggregates(&self) -> Answer<'_, Vec<Aggregate>> {
        Box::pin(async move { self.region_actor.read(Region::aggregates).await })
    }

    /// A region's flavors are everybody's.
    fn flavors<'a>(&'a self, _projects: Option<&'a [String]>) -> Answer<'a, Vec<Flavor>> {
        Box::pin(async move { self.region_actor.read(Region::flavors).await })
    }

    fn flavor<'a>(&'a self, name: &'a str, _projects: Option<&'a [String]>) -> Answer<'a, Flavor> {
        Box::pin(async move {
            let name = name.to_owned();
            let look = move |region: &Region| region.find_flavor(&name).cloned();
            Ok(self.region_actor.read(look).await??)
        })
    }

    fn flavor_and_group<'a>(
        &'a self,
        flavor: &'a str,
        group: &'a str,
    ) -> Answer<'a, (Flavor, Option<ServerGroup>)> {
        Box::pin(async move {
            let (flavor, group) = (flavor.to_owned(), group.to_owned());
            let look = move |region: &Region| -> Result<_, RegionError> {
                let flavor = region.find_flavor(&flavor)?.clone();
                let group = match group.as_str() {
                    "" => None,
                    name => Some(region.find_group(name)?.clone()),
                };
                Ok((flavor, group))
            };
            Ok(self.region_actor.read(look).await??)
        })
    }

    /// Every project may use every flavor of a region.
    fn priced_flavor<'a>(
        &'a self,
        name: &'a str,
        _projects: Option<&'a [String]>,
        changes: u32,
    ) -> Answer<'a, PricedFlavor> {
        Box::pin(async move {
            let name = name.to_owned();
            let look = move |region: &Region| -> Result<_, RegionError> {
                let flavor = region.find_flavor(&name)?;
                Ok((flavor.clone(), region.flavor_price(flavor)))
            };
            let (flavor, price) = self.region_actor.read(look).await??;
            let filter = PriceFilter {
                flavor: Some(flavor.name.clone()),
                limit: changes,
                ..PriceFilter::default()
            };
            let changes = self.store.prices(&filter).await;
            Ok(PricedFlavor {
                changes: changes.map_err(|e| not_read(&e))?,
                flavor,
                price,
            })
        })
    }

    fn lives<'a>(&'a self, filter: &'a LifeFilter) -> Answer<'a, Vec<PastLife>> {
        Box::pin(async move { self.store.lives(filter).await.map_err(|e| not_read(&e)) })
    }

    /// A server that comes back has a new launch.
    fn running_lives<'a>(&'a self, flavor: Option<&'a str>) -> Answer<'a, Vec<RunningLife>> {
        Box::pin(async move {
            let flavor = flavor.map(str::to_owned);
            let look = move |region: &Region| {
                let name = flavor.as_deref();
                let servers = region
                    .servers()
                    .filter(|server| name.is_none_or(|name| server.flavor.name == name));
                let runs = |server: &&Server| {
                    matches!(
                        server.status,
                        ServerStatus::Active | ServerStatus::Evacuating | ServerStatus::Reserved
                    )
                };
                let running = servers.filter(runs);
                running
                    .filter_map(|server| RunningLife::new(server, server.launched_at?))
                    .collect()
            };
            self.region_actor.read(look).await
        })
    }

    fn decision(&self, id: DecisionId) -> Answer<'_, Option<Decision>> {
        Box::pin(async move { self.store.decision(id).await.map_err(|e| not_read(&e)) })
    }

    fn decision_for_server(&self, id: ServerId) -> Answer<'_, Option<Decision>> {
        Box::pin(async move {
            let found = self.store.decision_for_server(id).await;
            found.map_err(|e| not_read(&e))
        })
    }

    fn decisions<'a>(&'a self, filter: &'a DecisionFilter) -> Answer<'a, Vec<Decision>> {
        Box::pin(async move { self.store.decisions(filter).await.map_err(|e| not_read(&e)) })
    }

    fn what_if(&self, unresolved: UnresolvedRequest) -> Answer<'_, (Decision, Vec<String>)> {
        Box::pin(async move {
            unresolved.is_for_region()?;
            let (flavor, group) = (
                &unresolved.wanted.flavor,
                unresolved.wanted.group.as_deref(),
            );
            let resolved = self.flavor_and_group(flavor, group.unwrap_or_default());
            let (flavor, group) = resolved.await?;
            let request = unresolved.resolved(flavor, group)?;
            Ok((self.region_actor.what_if(request).await?, Vec::new()))
        })
    }

    fn record(&self) -> Answer<'_, RegionRecord> {
        Box::pin(async move {
            let at = clock::now();
            let state = self.store.load(at.minus(RECORDED)).await?;
            let engine = self.plugins.engine().config().clone();
            Ok(RegionRecord::new(at, engine, self.config.clone(), state))
        })
    }

    fn events(&self) -> broadcast::Receiver<SequencedEvent> {
        self.region_actor.watch()
    }
}
