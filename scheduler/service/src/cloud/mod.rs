//! The cloud behind the API, as the handlers see it ([ADR 39], [ADR 43]).
//!
//! Handlers read through [`CloudView`] and do not know which cloud answers. What only a standalone
//! region can do goes through [`Api::standalone`], which names the OpenStack command instead.
//!
//! [ADR 39]: ../../../../docs/development/adr/0039-one-control-plane-over-two-clouds.md
//! [ADR 43]: ../../../../docs/development/adr/0043-the-api-reads-a-cloud-view.md

mod budgets;
mod changes;
mod early_release;
mod listing;
mod market;
mod openstack;
mod question;
mod region;

pub(crate) use budgets::CloudBudgets;
pub(crate) use early_release::EarlyRelease;
pub(crate) use market::CloudMarket;
pub(crate) use openstack::OpenStackView;
pub(crate) use question::Question;
pub(crate) use region::RegionView;

use crate::advice::{AdviceService, LifeTimes, RunningLife};
use crate::duty::Duty;
use crate::error::ServiceError;
use crate::plugins::Plugins;
use crate::region_actor::{RegionActor, SequencedEvent};
use async_trait::async_trait;
use ebbtide_live_plugins::PluginControl;
use ebbtide_market::FlavorPrice;
use ebbtide_model::{
    Aggregate, Decision, DecisionId, Evacuation, EvacuationId, Flavor, PastLife, PricePoint,
    Server, ServerGroup, ServerId,
};
use ebbtide_nova_service::{LIVES_KEPT, LIVES_LATE};
use ebbtide_region::{HostView, RegionConfig, RegionSummary};
use ebbtide_store::{DecisionFilter, EvacuationFilter, LifeFilter, ServerFilter, Store};
use std::sync::Arc;
use tokio::sync::broadcast;

/// A server, with its evacuation if that is under way or ended recently.
#[derive(Debug, Clone)]
pub(crate) struct ListedServer {
    pub(crate) server: Server,
    pub(crate) evacuation: Option<Evacuation>,
}

/// Totals of a cloud, and what its scheduler works with.
#[derive(Debug, Clone)]
pub(crate) struct CloudSummary {
    pub(crate) totals: RegionSummary,
    pub(crate) policy: String,
    pub(crate) cost_module: String,
    /// `amqp` or `in-process`.
    pub(crate) bus: String,
    pub(crate) bus_connected: bool,
    /// `sqlite`, `mariadb` or `postgresql`; empty without a database.
    pub(crate) database: String,
}

/// A flavor with what an hour of it costs.
#[derive(Debug, Clone)]
pub(crate) struct PricedFlavor {
    pub(crate) flavor: Flavor,
    pub(crate) price: FlavorPrice,
    /// The last changes of the price, the latest first.
    pub(crate) changes: Vec<PricePoint>,
}

/// Everything that read-only calls need of a cloud. A server, host or decision that does not exist
/// is `None`; names that fit several objects are an error.
#[async_trait]
pub(crate) trait CloudView: Send + Sync {
    async fn summary(&self) -> Result<CloudSummary, ServiceError>;
    /// All hosts with both states, by name.
    async fn hosts(&self) -> Result<Vec<HostView>, ServiceError>;
    async fn host(&self, name: &str)
    -> Result<Option<(HostView, Vec<ListedServer>)>, ServiceError>;
    /// A server by id, also one that is gone.
    async fn server(&self, id: ServerId) -> Result<Option<ListedServer>, ServiceError>;
    /// The only server that is not gone with this name or id.
    async fn server_named(&self, name: &str) -> Result<ListedServer, ServiceError>;
    async fn servers(&self, filter: &ServerFilter) -> Result<Vec<ListedServer>, ServiceError>;
    async fn evacuation(&self, id: EvacuationId) -> Result<Option<Evacuation>, ServiceError>;
    async fn evacuations(&self, filter: &EvacuationFilter)
    -> Result<Vec<Evacuation>, ServiceError>;
    async fn groups(&self) -> Result<Vec<ServerGroup>, ServiceError>;
    async fn aggregates(&self) -> Result<Vec<Aggregate>, ServiceError>;
    async fn flavors(&self) -> Result<Vec<Flavor>, ServiceError>;
    async fn flavor(&self, name: &str) -> Result<Flavor, ServiceError>;
    /// A flavor and a server group (`""`: none) by their names or ids.
    async fn flavor_and_group(
        &self,
        flavor: &str,
        group: &str,
    ) -> Result<(Flavor, Option<ServerGroup>), ServiceError>;
    /// A flavor by name or id with its price and at most `changes` changes of that. With `projects`
    /// only if one of them may use it.
    async fn priced_flavor(
        &self,
        name: &str,
        projects: Option<&[String]>,
        changes: u32,
    ) -> Result<PricedFlavor, ServiceError>;
    /// Past lives, the latest launch first.
    async fn lives(&self, filter: &LifeFilter) -> Result<Vec<PastLife>, ServiceError>;
    /// The present lives of preemptible servers, of one flavor or of all.
    async fn running_lives(&self, flavor: Option<&str>) -> Result<Vec<RunningLife>, ServiceError>;
    async fn decision(&self, id: DecisionId) -> Result<Option<Decision>, ServiceError>;
    /// The last decision about a server.
    async fn decision_for_server(&self, id: ServerId) -> Result<Option<Decision>, ServiceError>;
    /// Newest first.
    async fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, ServiceError>;
    /// The decision that a request would get now, and what it does not know. Changes nothing.
    async fn what_if(&self, question: Question) -> Result<(Decision, Vec<String>), ServiceError>;
    /// All events from now on.
    fn events(&self) -> broadcast::Receiver<SequencedEvent>;
}

/// The parts of a standalone region that change it or that OpenStack mode does not have.
#[derive(Clone)]
pub(crate) struct Standalone {
    pub(crate) region_actor: RegionActor,
    pub(crate) store: Store,
    pub(crate) duty: Duty,
    pub(crate) plugins: Plugins,
    pub(crate) region: RegionConfig,
}

/// What the caller of an OpenStack gets instead of a call that only a standalone region has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Instead {
    /// OpenStack has a command for it.
    Command(&'static str),
    /// The feature is to come.
    NotYet(&'static str),
}

/// The state that the calls use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) cloud: Arc<dyn CloudView>,
    pub(crate) advice: AdviceService,
    pub(crate) budgets: Arc<dyn CloudBudgets>,
    pub(crate) early_release: Arc<dyn EarlyRelease>,
    pub(crate) market: Arc<dyn CloudMarket>,
    pub(crate) plugins: Arc<dyn PluginControl>,
    /// `None` on an OpenStack.
    standalone: Option<Standalone>,
}

impl Api {
    /// The API of a standalone region.
    pub(crate) fn of_region(view: RegionView, standalone: Standalone, lives: LifeTimes) -> Self {
        let plugins = Arc::new(standalone.plugins.live().clone());
        Self::new(Arc::new(view), plugins, lives, Some(standalone))
    }

    /// The API of an OpenStack.
    pub(crate) fn of_openstack(view: Arc<OpenStackView>) -> Self {
        let lives = LifeTimes {
            retention: LIVES_KEPT,
            late: LIVES_LATE,
        };
        let plugins = view.reader().plugins();
        Self::new(view, plugins, lives, None)
    }

    fn new<V>(
        view: Arc<V>,
        plugins: Arc<dyn PluginControl>,
        lives: LifeTimes,
        standalone: Option<Standalone>,
    ) -> Self
    where
        V: CloudView + CloudBudgets + EarlyRelease + CloudMarket + 'static,
    {
        Self {
            advice: AdviceService::new(view.clone(), lives),
            budgets: view.clone(),
            early_release: view.clone(),
            market: view.clone(),
            plugins,
            cloud: view,
            standalone,
        }
    }

    /// The standalone region.
    ///
    /// # Errors
    /// On an OpenStack: [`ServiceError::OpenStackCommand`] or [`ServiceError::NotOnOpenStackYet`].
    pub(crate) fn standalone(&self, instead: Instead) -> Result<&Standalone, ServiceError> {
        self.standalone.as_ref().ok_or(match instead {
            Instead::Command(command) => ServiceError::OpenStackCommand { command },
            Instead::NotYet(feature) => ServiceError::NotOnOpenStackYet { feature },
        })
    }
}
