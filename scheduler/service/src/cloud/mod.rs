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
mod reclaims;
mod region;
mod removals;
mod unresolved_request;

pub(crate) use budgets::CloudBudgets;
pub(crate) use early_release::EarlyRelease;
pub(crate) use market::CloudMarket;
pub(crate) use openstack::OpenStackView;
pub(crate) use reclaims::HostReclaims;
pub(crate) use region::RegionView;
pub(crate) use removals::HostRemovals;
pub(crate) use unresolved_request::UnresolvedRequest;

use crate::advice::{AdviceService, LifeTimes, RunningLife};
use crate::error::ServiceError;
use crate::lease::HeldLease;
use crate::plugins::Plugins;
use crate::region_actor::{RegionActor, SequencedEvent};
use ebbtide_engine::{CloudTotals, HostSummary};
use ebbtide_live_plugins::PluginControl;
use ebbtide_market::FlavorPrice;
use ebbtide_model::{
    Aggregate, Decision, DecisionId, Evacuation, EvacuationId, Flavor, PastLife, PricePoint,
    Server, ServerGroup, ServerId,
};
use ebbtide_nova_service::{LIVES_KEPT, LIVES_LATE};
use ebbtide_region::RegionRecord;
use ebbtide_store::{DecisionFilter, EvacuationFilter, LifeFilter, ServerFilter, Store};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::broadcast;

/// What comes of a call.
///
/// The traits here are not `async_trait`s: the bounds of their methods on lifetimes make the
/// compiler prove for each method anew that all futures below it may change threads, which took
/// half of the time in which this crate compiles.
pub(crate) type Answer<'a, T> = BoxFuture<'a, Result<T, ServiceError>>;

/// A server, with its evacuation if that is under way or ended recently.
#[derive(Debug, Clone)]
pub(crate) struct ListedServer {
    pub(crate) server: Server,
    pub(crate) evacuation: Option<Evacuation>,
}

/// Totals of a cloud, and what its scheduler works with.
#[derive(Debug, Clone)]
pub(crate) struct CloudSummary {
    pub(crate) totals: CloudTotals,
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
pub(crate) trait CloudView: Send + Sync {
    fn summary(&self) -> Answer<'_, CloudSummary>;
    /// All hosts with both states, by name.
    fn hosts(&self) -> Answer<'_, Vec<HostSummary>>;
    fn host<'a>(&'a self, name: &'a str) -> Answer<'a, Option<(HostSummary, Vec<ListedServer>)>>;
    /// A server by id, also one that is gone.
    fn server(&self, id: ServerId) -> Answer<'_, Option<ListedServer>>;
    /// The only server that is not gone with this name or id.
    fn server_named<'a>(&'a self, name: &'a str) -> Answer<'a, ListedServer>;
    fn servers<'a>(&'a self, filter: &'a ServerFilter) -> Answer<'a, Vec<ListedServer>>;
    fn evacuation(&self, id: EvacuationId) -> Answer<'_, Option<Evacuation>>;
    fn evacuations<'a>(&'a self, filter: &'a EvacuationFilter) -> Answer<'a, Vec<Evacuation>>;
    fn groups(&self) -> Answer<'_, Vec<ServerGroup>>;
    fn aggregates(&self) -> Answer<'_, Vec<Aggregate>>;
    /// All flavors, by name. With `projects` those that one of them may use.
    fn flavors<'a>(&'a self, projects: Option<&'a [String]>) -> Answer<'a, Vec<Flavor>>;
    /// One of them, by name or id.
    fn flavor<'a>(&'a self, name: &'a str, projects: Option<&'a [String]>) -> Answer<'a, Flavor>;
    /// A flavor and a server group (`""`: none) by their names or ids.
    fn flavor_and_group<'a>(
        &'a self,
        flavor: &'a str,
        group: &'a str,
    ) -> Answer<'a, (Flavor, Option<ServerGroup>)>;
    /// A flavor by name or id with its price and at most `changes` changes of that. With `projects`
    /// only if one of them may use it.
    fn priced_flavor<'a>(
        &'a self,
        name: &'a str,
        projects: Option<&'a [String]>,
        changes: u32,
    ) -> Answer<'a, PricedFlavor>;
    /// Past lives, the latest launch first.
    fn lives<'a>(&'a self, filter: &'a LifeFilter) -> Answer<'a, Vec<PastLife>>;
    /// The present lives of preemptible servers, of one flavor or of all.
    fn running_lives<'a>(&'a self, flavor: Option<&'a str>) -> Answer<'a, Vec<RunningLife>>;
    fn decision(&self, id: DecisionId) -> Answer<'_, Option<Decision>>;
    /// The last decision about a server.
    fn decision_for_server(&self, id: ServerId) -> Answer<'_, Option<Decision>>;
    /// Newest first.
    fn decisions<'a>(&'a self, filter: &'a DecisionFilter) -> Answer<'a, Vec<Decision>>;
    /// The decision that a request would get now, and what it does not know. Changes nothing.
    fn what_if(&self, unresolved: UnresolvedRequest) -> Answer<'_, (Decision, Vec<String>)>;
    /// What decisions depend on now, to try plugins on.
    fn record(&self) -> Answer<'_, RegionRecord>;
    /// All events from now on.
    fn events(&self) -> broadcast::Receiver<SequencedEvent>;
}

/// The parts of a standalone region that change it or that OpenStack mode does not have.
#[derive(Clone)]
pub(crate) struct Standalone {
    pub(crate) region_actor: RegionActor,
    pub(crate) store: Store,
    pub(crate) duty: HeldLease,
    pub(crate) plugins: Plugins,
}

/// The state that the calls use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) cloud: Arc<dyn CloudView>,
    pub(crate) advice: AdviceService,
    pub(crate) budgets: Arc<dyn CloudBudgets>,
    pub(crate) early_release: Arc<dyn EarlyRelease>,
    pub(crate) market: Arc<dyn CloudMarket>,
    pub(crate) reclaims: Arc<dyn HostReclaims>,
    pub(crate) removals: Arc<dyn HostRemovals>,
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
        V: CloudView
            + CloudBudgets
            + EarlyRelease
            + CloudMarket
            + HostReclaims
            + HostRemovals
            + 'static,
    {
        Self {
            advice: AdviceService::new(view.clone(), lives),
            budgets: view.clone(),
            early_release: view.clone(),
            market: view.clone(),
            reclaims: view.clone(),
            removals: view.clone(),
            plugins,
            cloud: view,
            standalone,
        }
    }

    /// The standalone region.
    ///
    /// # Errors
    /// On an OpenStack: [`ServiceError::OpenStackCommand`] with the command that it has instead.
    pub(crate) fn standalone(&self, command: &'static str) -> Result<&Standalone, ServiceError> {
        let standalone = self.standalone.as_ref();
        standalone.ok_or(ServiceError::OpenStackCommand { command })
    }
}
