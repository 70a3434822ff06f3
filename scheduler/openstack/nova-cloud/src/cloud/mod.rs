//! The cloud in memory: its state and how updates change it.
//!
//! Each update changes four structures together: the hosts as Nova's filters and weighers see them
//! (a columnar table of `ebbtide-nova`), Placement's data about their root providers (`columns`),
//! the consumers' allocations (`consumers`), and the two states of the cloud for the choice of
//! victims (a host table of `ebbtide-engine`).

mod bids;
mod columns;
mod comebacks;
mod consumers;
pub(crate) mod devices;
pub(crate) mod follow;
mod groups;
mod hosts;
mod instances;
mod lifetimes;
mod provider;
pub(crate) mod providers;
mod reclaim;
mod record;
mod reported;
mod running;
mod usage;
mod view;

pub(crate) use columns::{HostColumns, HostStateKind};
pub use comebacks::{RetainedServerState, RetainedServerView};
pub(crate) use consumers::ConsumerEntry;
pub(crate) use hosts::Node;
pub(crate) use instances::{CloudInstance, HostInstances};
pub(crate) use provider::{Provider, SHARES, capacity};
pub use providers::StaleProviders;
pub use running::OpenPreemption;
pub(crate) use running::OpenPreemptions;
pub use usage::{PreemptibleUsage, PricedServer};
pub use view::flavor_view;

use crate::error::CloudError;
use crate::facts::{CellFacts, HostRef};
use crate::shadow::ShadowRules;
use ebbtide_cost_api::CostModule;
use ebbtide_engine::{Engine, EngineConfig, HostNumber, HostTable};
use ebbtide_evacuation::Lifetimes;
use ebbtide_model::flavor::DEFAULT_GRACE;
use ebbtide_model::{GroupId, Money, Seconds};
use ebbtide_nova::filters::FilterPlugins;
use ebbtide_nova::model::{Aggregate, Options, Service};
use ebbtide_nova::table::{self, HostSet};
use ebbtide_nova::weighing::Plugins;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Cost modules that are not built in.
#[derive(Clone, Default)]
pub struct CostModules(pub Vec<Arc<dyn CostModule>>);

impl fmt::Debug for CostModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|module| module.name());
        f.debug_list().entries(names).finish()
    }
}

/// Settings of the cloud besides Nova's own options.
#[derive(Debug, Clone)]
pub struct CloudSettings {
    /// The engine for victims: cost module, policy, limits.
    pub engine: EngineConfig,
    /// Cost modules that are not built in.
    pub cost_modules: CostModules,
    /// Default grace period of a flavor.
    pub grace: Seconds,
    /// Default time after launch during which an instance cannot be a victim.
    pub protected: Seconds,
    /// A victim that is stopped and not deleted keeps its local disk in Placement.
    pub stop_keeps_disk: bool,
    /// Consider only as many hosts as Placement would return (`max_placement_results`), in the
    /// cloud's order. Placement's own choice is arbitrary; considering all hosts is better and is
    /// the default.
    pub cut_like_placement: bool,
}

impl Default for CloudSettings {
    fn default() -> Self {
        Self {
            engine: EngineConfig::default(),
            cost_modules: CostModules::default(),
            grace: DEFAULT_GRACE,
            protected: Seconds(0),
            stop_keeps_disk: true,
            cut_like_placement: false,
        }
    }
}

/// Plugins by which decisions are made, or with which they are compared.
#[derive(Debug, Clone, Default)]
pub struct DecisionPlugins {
    /// Weighers behind Nova's own.
    pub weighers: Plugins,
    /// Filters behind Nova's own.
    pub filters: FilterPlugins,
    /// Cost modules that are not built in.
    pub cost_modules: CostModules,
    /// The name of the cost module.
    pub cost_module: String,
}

impl DecisionPlugins {
    /// The weighers, the filters, and the settings with the cost module.
    fn apply(self, settings: &CloudSettings) -> (Plugins, FilterPlugins, CloudSettings) {
        let mut settings = settings.clone();
        settings.engine.cost_module = self.cost_module;
        settings.cost_modules = self.cost_modules;
        (self.weighers, self.filters, settings)
    }
}

/// Counts of what the cloud knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Compute nodes that can be scheduled to: with a service, in an enabled cell, with a usable
    /// row.
    pub hosts: usize,
    /// All compute nodes.
    pub compute_nodes: usize,
    /// Providers listed by Placement, including those that are not compute nodes.
    pub providers: usize,
    /// Hosts whose data were not read from Placement; compute rows are used instead.
    pub unread_hosts: usize,
    pub instances: usize,
    /// Preemptible instances.
    pub preemptible: usize,
    /// Preemptible instances that are leaving.
    pub leaving: usize,
}

/// The cloud in memory.
#[derive(Debug)]
pub struct Cloud {
    pub(crate) settings: CloudSettings,
    /// The hosts that exist for Nova: with a service and a usable row.
    pub(crate) table: table::CloudTable,
    pub(crate) columns: HostColumns,
    /// By place in the table.
    pub(crate) at: Arc<Vec<Option<Uuid>>>,
    /// Changes when a host comes or goes.
    pub(crate) layout: u64,
    pub(crate) cells: Vec<CellFacts>,
    pub(crate) of_cell: HashMap<String, HostSet>,
    pub(crate) min_compute_version: i64,
    pub(crate) aggregates: BTreeMap<i64, Arc<Aggregate>>,
    /// The same, as questions want them.
    pub(crate) aggregate_list: Vec<Arc<Aggregate>>,
    pub(crate) aggregates_of: HashMap<String, BTreeSet<i64>>,
    pub(crate) services: HashMap<String, Service>,
    pub(crate) nodes: HashMap<Uuid, Node>,
    /// Compute nodes by service's host.
    pub(crate) nodes_of: HashMap<String, BTreeSet<Uuid>>,
    pub(crate) providers: HashMap<Uuid, Provider>,
    /// How often a provider was found with other traits or without an aggregate that it was in.
    pub(crate) trait_changes: u64,
    /// Providers that are no compute nodes: children, and those that share.
    pub(crate) others: BTreeSet<Uuid>,
    pub(crate) instances: HashMap<Uuid, CloudInstance>,
    pub(crate) host_instances: HashMap<String, HostInstances>,
    pub(crate) consumers: HashMap<Uuid, ConsumerEntry>,
    /// Consumers with allocations on a provider.
    pub(crate) consumers_at: HashMap<Uuid, HashSet<Uuid>>,
    pub(crate) leaving: HashSet<Uuid>,
    /// When servers get their notice because of their maximum lifetime.
    pub(crate) lifetimes: Lifetimes,
    /// Beginnings of lives that are later than the launch, microseconds since 1970.
    pub(crate) started: HashMap<Uuid, i64>,
    /// The most that owners pay for an hour, as far as a market has told.
    pub(crate) bids: HashMap<Uuid, Money>,
    /// Members of server groups that have a disruption budget.
    pub(crate) group_members: HashMap<Uuid, GroupId>,
    /// Preemptions under way, of all schedulers.
    pub(crate) open: OpenPreemptions,
    pub(crate) engine: Engine,
    /// See [`Cloud::decide_simply`].
    pub(crate) simple: bool,
    /// With what decisions are compared; `None`: with nothing.
    pub(crate) shadow: Option<Arc<ShadowRules>>,
    pub(crate) victims: HostTable,
    /// Names of hosts in the victims' table, by place.
    pub(crate) names: Vec<String>,
    pub(crate) named: HashMap<String, usize>,
    /// Their numbers there, by place.
    pub(crate) numbers: Vec<Option<HostNumber>>,
    /// PCI devices of hosts, for requests that need some.
    pub(crate) devices: devices::DeviceColumns,
}

/// The engine for victims.
pub(crate) fn engine(settings: &CloudSettings) -> Result<Engine, CloudError> {
    let modules = settings.cost_modules.0.clone();
    Engine::with_plugins(settings.engine.clone(), Vec::new(), modules)
        .map_err(|error| CloudError::Engine(error.to_string()))
}

impl Cloud {
    /// A cloud without hosts.
    ///
    /// # Errors
    /// [`CloudError::Engine`].
    pub fn new(options: Options, settings: CloudSettings) -> Result<Self, CloudError> {
        let engine = engine(&settings)?;
        let mut victims = HostTable::new();
        victims.set_billing_period(settings.engine.period_seconds);
        Ok(Self {
            settings,
            table: table::CloudTable::new(Vec::new(), options, 0),
            columns: HostColumns::default(),
            at: Arc::default(),
            layout: 0,
            cells: Vec::new(),
            of_cell: HashMap::new(),
            min_compute_version: 0,
            aggregates: BTreeMap::new(),
            aggregate_list: Vec::new(),
            aggregates_of: HashMap::new(),
            services: HashMap::new(),
            nodes: HashMap::new(),
            nodes_of: HashMap::new(),
            providers: HashMap::new(),
            trait_changes: 0,
            others: BTreeSet::new(),
            instances: HashMap::new(),
            host_instances: HashMap::new(),
            consumers: HashMap::new(),
            consumers_at: HashMap::new(),
            leaving: HashSet::new(),
            lifetimes: Lifetimes::default(),
            started: HashMap::new(),
            bids: HashMap::new(),
            group_members: HashMap::new(),
            open: OpenPreemptions::default(),
            engine,
            simple: false,
            shadow: None,
            victims,
            names: Vec::new(),
            named: HashMap::new(),
            numbers: Vec::new(),
            devices: devices::DeviceColumns::default(),
        })
    }

    /// Nova's options.
    #[must_use]
    pub fn options(&self) -> &Options {
        self.table.options()
    }

    /// Decides by these plugins from the next question on, and compares with those in shadow;
    /// `None`: with none.
    ///
    /// # Errors
    /// [`CloudError::Engine`], for example if there is no cost module of this name; then everything
    /// is as before.
    pub fn set_plugins(
        &mut self,
        deciding: DecisionPlugins,
        shadow: Option<DecisionPlugins>,
    ) -> Result<(), CloudError> {
        let rules = shadow.map(|shadow| {
            let (weighers, filters, settings) = shadow.apply(&self.settings);
            let engine = engine(&settings)?;
            Ok::<_, CloudError>(Arc::new(ShadowRules {
                weighers,
                filters,
                engine,
            }))
        });
        let rules = rules.transpose()?;
        let (weighers, filters, settings) = deciding.apply(&self.settings);
        self.engine = engine(&settings)?;
        self.settings = settings;
        self.decide_simply(self.simple);
        self.table.set_plugins(weighers);
        self.table.set_filter_plugins(filters);
        self.shadow = rules;
        Ok(())
    }

    /// Decides the simple way, or no more: every host is looked at, and nothing is skipped by what
    /// is kept ready. The answers are the same; tests and benchmarks compare the two.
    pub fn decide_simply(&mut self, simple: bool) {
        self.simple = simple;
        self.engine.set_simple(simple);
    }

    /// The units of the costs of victims: by the cost module in use, and by the one in shadow.
    #[must_use]
    pub fn cost_units(&self) -> (String, String) {
        let shadow = self.shadow.as_ref();
        let shadow = shadow.map(|rules| rules.engine.cost_unit().to_owned());
        (
            self.engine.cost_unit().to_owned(),
            shadow.unwrap_or_default(),
        )
    }

    /// Takes other options of Nova's into use, from the next question on: those of another release.
    /// Plugins stay.
    pub fn set_options(&mut self, options: Options) {
        self.table.set_options(options);
    }

    /// Our own settings.
    #[must_use]
    pub fn settings(&self) -> &CloudSettings {
        &self.settings
    }

    /// How many of everything there are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let preemptible = |i: &&CloudInstance| i.terms.is_some();
        Counts {
            hosts: self.enabled().count(),
            compute_nodes: self.nodes.len(),
            providers: self
                .providers
                .values()
                .filter(|provider| provider.root.is_some())
                .count(),
            unread_hosts: self
                .nodes
                .keys()
                .filter(|uuid| self.only_believed(**uuid))
                .count(),
            instances: self.instances.len(),
            preemptible: self.instances.values().filter(preemptible).count(),
            leaving: self.leaving.len(),
        }
    }

    /// All compute nodes that are known, in no particular order.
    pub fn compute_nodes(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.nodes.keys().copied()
    }

    /// A host by its compute node; `None` if it is not schedulable.
    #[must_use]
    pub fn host(&self, uuid: Uuid) -> Option<HostRef> {
        let place = self.nodes.get(&uuid)?.place?;
        Some(self.host_at(place))
    }

    /// Hosts in cells that are enabled.
    pub(crate) fn enabled(&self) -> HostSet {
        let mut all = HostSet::none(self.at.len());
        let cells = self.cells.iter().filter(|cell| !cell.disabled);
        for hosts in cells.filter_map(|cell| self.of_cell.get(&cell.uuid)) {
            all.join(hosts);
        }
        all
    }
}
