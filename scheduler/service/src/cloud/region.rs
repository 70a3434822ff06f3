//! A standalone region as the API sees it: running state from the actor, the rest from the store.

use super::{CloudSummary, CloudView, ListedServer, PricedFlavor, Question};
use crate::advice::RunningLife;
use crate::error::ServiceError;
use crate::plugins::Plugins;
use crate::region_actor::{RegionActor, SequencedEvent, not_read};
use async_trait::async_trait;
use ebbtide_bus::BusStatus;
use ebbtide_model::{
    Aggregate, Decision, DecisionId, Evacuation, EvacuationId, Flavor, PastLife, Server,
    ServerGroup, ServerId, ServerStatus,
};
use ebbtide_region::{HostView, Region, RegionError};
use ebbtide_store::{
    DecisionFilter, EvacuationFilter, LifeFilter, PriceFilter, ServerFilter, Store,
};
use tokio::sync::{broadcast, watch};

/// The view of a standalone region.
pub(crate) struct RegionView {
    pub(crate) region_actor: RegionActor,
    pub(crate) store: Store,
    pub(crate) bus: watch::Receiver<BusStatus>,
    /// `amqp` or `in-process`.
    pub(crate) carrier: &'static str,
    pub(crate) plugins: Plugins,
    pub(crate) policy: String,
    pub(crate) database: String,
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

#[async_trait]
impl CloudView for RegionView {
    async fn summary(&self) -> Result<CloudSummary, ServiceError> {
        Ok(CloudSummary {
            totals: self.region_actor.read(Region::summary).await?,
            policy: self.policy.clone(),
            cost_module: self.plugins.engine().config().cost_module.clone(),
            bus: self.carrier.to_owned(),
            bus_connected: self.bus.borrow().is_ready(),
            database: self.database.clone(),
        })
    }

    async fn hosts(&self) -> Result<Vec<HostView>, ServiceError> {
        self.region_actor.read(Region::hosts).await
    }

    async fn host(
        &self,
        name: &str,
    ) -> Result<Option<(HostView, Vec<ListedServer>)>, ServiceError> {
        let name = name.to_owned();
        let look = move |region: &Region| {
            let host = region.host(&name)?;
            let servers = region.servers_on(&name).cloned();
            Some((host, servers.map(|s| listed(region, s)).collect()))
        };
        self.region_actor.read(look).await
    }

    async fn server(&self, id: ServerId) -> Result<Option<ListedServer>, ServiceError> {
        let found = self.store.server(id).await.map_err(|e| not_read(&e))?;
        Ok(self.listed(found.into_iter().collect()).await?.pop())
    }

    async fn server_named(&self, name: &str) -> Result<ListedServer, ServiceError> {
        let name = name.to_owned();
        let look = move |region: &Region| -> Result<_, RegionError> {
            Ok(listed(region, region.find_server(&name)?.clone()))
        };
        Ok(self.region_actor.read(look).await??)
    }

    async fn servers(&self, filter: &ServerFilter) -> Result<Vec<ListedServer>, ServiceError> {
        let servers = self.store.servers(filter).await.map_err(|e| not_read(&e))?;
        self.listed(servers).await
    }

    async fn evacuation(&self, id: EvacuationId) -> Result<Option<Evacuation>, ServiceError> {
        self.store.evacuation(id).await.map_err(|e| not_read(&e))
    }

    async fn evacuations(
        &self,
        filter: &EvacuationFilter,
    ) -> Result<Vec<Evacuation>, ServiceError> {
        let found = self.store.evacuations(filter).await;
        found.map_err(|e| not_read(&e))
    }

    async fn groups(&self) -> Result<Vec<ServerGroup>, ServiceError> {
        self.region_actor.read(Region::groups).await
    }

    async fn aggregates(&self) -> Result<Vec<Aggregate>, ServiceError> {
        self.region_actor.read(Region::aggregates).await
    }

    async fn flavors(&self) -> Result<Vec<Flavor>, ServiceError> {
        self.region_actor.read(Region::flavors).await
    }

    async fn flavor(&self, name: &str) -> Result<Flavor, ServiceError> {
        let name = name.to_owned();
        let look = move |region: &Region| region.find_flavor(&name).cloned();
        Ok(self.region_actor.read(look).await??)
    }

    async fn flavor_and_group(
        &self,
        flavor: &str,
        group: &str,
    ) -> Result<(Flavor, Option<ServerGroup>), ServiceError> {
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
    }

    /// Every project may use every flavor of a region.
    async fn priced_flavor(
        &self,
        name: &str,
        _projects: Option<&[String]>,
        changes: u32,
    ) -> Result<PricedFlavor, ServiceError> {
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
    }

    async fn lives(&self, filter: &LifeFilter) -> Result<Vec<PastLife>, ServiceError> {
        self.store.lives(filter).await.map_err(|e| not_read(&e))
    }

    /// A server that comes back has a new launch.
    async fn running_lives(&self, flavor: Option<&str>) -> Result<Vec<RunningLife>, ServiceError> {
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
    }

    async fn decision(&self, id: DecisionId) -> Result<Option<Decision>, ServiceError> {
        self.store.decision(id).await.map_err(|e| not_read(&e))
    }

    async fn decision_for_server(&self, id: ServerId) -> Result<Option<Decision>, ServiceError> {
        let found = self.store.decision_for_server(id).await;
        found.map_err(|e| not_read(&e))
    }

    async fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, ServiceError> {
        self.store.decisions(filter).await.map_err(|e| not_read(&e))
    }

    async fn what_if(&self, question: Question) -> Result<(Decision, Vec<String>), ServiceError> {
        question.is_for_region()?;
        let (flavor, group) = (&question.wanted.flavor, question.wanted.group.as_deref());
        let resolved = self.flavor_and_group(flavor, group.unwrap_or_default());
        let (flavor, group) = resolved.await?;
        let request = question.resolved(flavor, group)?;
        Ok((self.region_actor.what_if(request).await?, Vec::new()))
    }

    fn events(&self) -> broadcast::Receiver<SequencedEvent> {
        self.region_actor.watch()
    }
}
