//! Nova's options that shape a decision, with Nova's defaults. [`crate::startup`] reads them.

pub(crate) mod convert;
pub(crate) mod loaded;
pub(crate) mod values;

use crate::plugins::{FilterPlugins, Plugins};
use crate::release::Release;

pub use convert::{check, declared_names, float_of, int_of};
pub use loaded::{names_filters, names_weighers};

/// Options. Each field is named like Nova's option and holds Nova's default unless set. A null for
/// a number that is no `Option` here counts as not given: Nova's own answer to such a configuration
/// is a TypeError at some later point.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The release whose scheduler is followed.
    pub release: Release,
    /// `[DEFAULT] service_down_time`, seconds; two and a half times `report_interval` (10) where it
    /// is not longer than that. `None`: one of the two is null, and ComputeFilter cannot start.
    pub service_down_time: Option<i64>,
    /// `[DEFAULT] servicegroup_driver` is `mc`: heartbeats are in memcached, of which a case knows
    /// nothing.
    pub servicegroup_memcached: bool,
    /// `[DEFAULT] default_availability_zone`.
    pub default_availability_zone: String,
    /// `[DEFAULT] cpu_allocation_ratio`, for nodes that have none in the database.
    pub cpu_allocation_ratio: Option<f64>,
    /// `[DEFAULT] ram_allocation_ratio`.
    pub ram_allocation_ratio: Option<f64>,
    /// `[DEFAULT] disk_allocation_ratio`.
    pub disk_allocation_ratio: Option<f64>,
    /// `[DEFAULT] initial_cpu_allocation_ratio`, for nodes that have none at all.
    pub initial_cpu_allocation_ratio: f64,
    /// `[DEFAULT] initial_ram_allocation_ratio`.
    pub initial_ram_allocation_ratio: f64,
    /// `[DEFAULT] initial_disk_allocation_ratio`.
    pub initial_disk_allocation_ratio: f64,
    /// `[compute] packing_host_numa_cells_allocation_strategy`.
    pub packing_host_numa_cells_allocation_strategy: bool,
    /// `[compute] cpu_shared_set`, unset by default.
    pub cpu_shared_set: Option<String>,
    /// `[workarounds] disable_fallback_pcpu_query`.
    pub disable_fallback_pcpu_query: bool,

    /// `[filter_scheduler] enabled_filters`, class names; each is a filter that exists.
    pub enabled_filters: Vec<String>,
    /// `[filter_scheduler] weight_classes`, as given.
    pub weight_classes: Vec<String>,
    /// Class names of the weighers that `weight_classes` stand for, in the order in which they add
    /// up, and behind them the names of `plugins`.
    pub weighers: Vec<String>,
    /// The operator's own weighers. They are none of Nova's options.
    pub plugins: Plugins,
    /// The operator's own filters, behind those of Nova. They are none of Nova's options.
    pub filter_plugins: FilterPlugins,
    /// `[filter_scheduler] host_subset_size`, at least 1. Null, on which Nova's own comparison
    /// fails, stands for all hosts.
    pub host_subset_size: i64,
    /// `[filter_scheduler] shuffle_best_same_weighed_hosts`.
    pub shuffle_best_same_weighed_hosts: bool,
    /// `[filter_scheduler] track_instance_changes`.
    pub track_instance_changes: bool,
    /// `[filter_scheduler] max_io_ops_per_host`; null fails IoOpsFilter.
    pub max_io_ops_per_host: Option<i64>,
    /// `[filter_scheduler] max_instances_per_host`; null fails NumInstancesFilter.
    pub max_instances_per_host: Option<i64>,
    /// `[filter_scheduler] isolated_hosts`; null fails IsolatedHostsFilter.
    pub isolated_hosts: Option<Vec<String>>,
    /// `[filter_scheduler] isolated_images`.
    pub isolated_images: Vec<String>,
    /// `[filter_scheduler] restrict_isolated_hosts_to_isolated_images`.
    pub restrict_isolated_hosts_to_isolated_images: bool,
    /// `[filter_scheduler] image_properties_default_architecture`.
    pub image_properties_default_architecture: Option<String>,
    /// `[filter_scheduler] aggregate_image_properties_isolation_namespace`.
    pub aggregate_image_properties_isolation_namespace: Option<String>,
    /// `[filter_scheduler] aggregate_image_properties_isolation_separator`.
    pub aggregate_image_properties_isolation_separator: Option<String>,
    /// `[filter_scheduler] pci_in_placement`.
    pub pci_in_placement: bool,

    /// `[pci] alias`, as given. The scheduler itself reads none; nova-api does.
    pub pci_alias: Vec<String>,

    /// `[filter_scheduler] ram_weight_multiplier`. Null (an empty value in the file) fails the
    /// request where no aggregate of a host says otherwise; so do the following ones.
    pub ram_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] cpu_weight_multiplier`.
    pub cpu_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] disk_weight_multiplier`.
    pub disk_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] hypervisor_version_weight_multiplier`.
    pub hypervisor_version_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] num_instances_weight_multiplier`.
    pub num_instances_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] io_ops_weight_multiplier`.
    pub io_ops_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] image_props_weight_multiplier`.
    pub image_props_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] image_props_weight_setting`: names and ratios, the bad ones left out.
    pub image_props_weight_setting: Vec<(String, f64)>,
    /// `[filter_scheduler] pci_weight_multiplier`, not negative.
    pub pci_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] soft_affinity_weight_multiplier`, not negative.
    pub soft_affinity_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] soft_anti_affinity_weight_multiplier`, not negative.
    pub soft_anti_affinity_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] build_failure_weight_multiplier`.
    pub build_failure_weight_multiplier: Option<f64>,
    /// `[filter_scheduler] cross_cell_move_weight_multiplier`.
    pub cross_cell_move_weight_multiplier: Option<f64>,

    /// `[metrics] weight_multiplier`.
    pub metrics_weight_multiplier: Option<f64>,
    /// `[metrics] weight_setting`: names and ratios, the bad ones left out.
    pub metrics_weight_setting: Vec<(String, f64)>,
    /// `[metrics] weight_setting` is null: MetricsFilter cannot start.
    pub metrics_weight_setting_null: bool,
    /// `[metrics] required`.
    pub metrics_required: bool,
    /// `[metrics] weight_of_unavailable`.
    pub metrics_weight_of_unavailable: Option<f64>,

    /// `[scheduler] max_attempts`, at least 1.
    pub max_attempts: i64,
    /// `[scheduler] max_placement_results`, at least 1; null: no limit.
    pub max_placement_results: Option<i64>,
    /// `[scheduler] limit_tenants_to_placement_aggregate`.
    pub limit_tenants_to_placement_aggregate: bool,
    /// `[scheduler] placement_aggregate_required_for_tenants`.
    pub placement_aggregate_required_for_tenants: bool,
    /// `[scheduler] query_placement_for_image_type_support`.
    pub query_placement_for_image_type_support: bool,
    /// `[scheduler] enable_isolated_aggregate_filtering`.
    pub enable_isolated_aggregate_filtering: bool,
    /// `[scheduler] image_metadata_prefilter`.
    pub image_metadata_prefilter: bool,
    /// `[scheduler] query_placement_for_routed_network_aggregates`.
    pub query_placement_for_routed_network_aggregates: bool,
    /// `[scheduler] query_placement_for_availability_zone`, which exists up to Nova 27.
    pub query_placement_for_availability_zone: bool,
}

impl Default for Options {
    fn default() -> Self {
        let names = [
            "ComputeFilter",
            "ComputeCapabilitiesFilter",
            "ImagePropertiesFilter",
            "ServerGroupAntiAffinityFilter",
            "ServerGroupAffinityFilter",
        ];
        let weight_classes = vec!["nova.scheduler.weights.all_weighers".to_owned()];
        Self {
            release: Release::NEWEST,
            service_down_time: Some(60),
            servicegroup_memcached: false,
            default_availability_zone: "nova".to_owned(),
            cpu_allocation_ratio: None,
            ram_allocation_ratio: None,
            disk_allocation_ratio: None,
            initial_cpu_allocation_ratio: 4.0,
            initial_ram_allocation_ratio: 1.0,
            initial_disk_allocation_ratio: 1.0,
            packing_host_numa_cells_allocation_strategy: false,
            cpu_shared_set: None,
            disable_fallback_pcpu_query: false,
            enabled_filters: names.map(str::to_owned).to_vec(),
            // All weighers exist, so this cannot fail.
            weighers: loaded::weighers(&weight_classes).unwrap_or_default(),
            plugins: Plugins::default(),
            filter_plugins: FilterPlugins::default(),
            weight_classes,
            host_subset_size: 1,
            shuffle_best_same_weighed_hosts: false,
            track_instance_changes: true,
            max_io_ops_per_host: Some(8),
            max_instances_per_host: Some(50),
            isolated_hosts: Some(Vec::new()),
            isolated_images: Vec::new(),
            restrict_isolated_hosts_to_isolated_images: true,
            image_properties_default_architecture: None,
            aggregate_image_properties_isolation_namespace: None,
            aggregate_image_properties_isolation_separator: Some(".".to_owned()),
            pci_in_placement: false,
            pci_alias: Vec::new(),
            ram_weight_multiplier: Some(1.0),
            cpu_weight_multiplier: Some(1.0),
            disk_weight_multiplier: Some(1.0),
            hypervisor_version_weight_multiplier: Some(1.0),
            num_instances_weight_multiplier: Some(0.0),
            io_ops_weight_multiplier: Some(-1.0),
            image_props_weight_multiplier: Some(0.0),
            image_props_weight_setting: Vec::new(),
            pci_weight_multiplier: Some(1.0),
            soft_affinity_weight_multiplier: Some(1.0),
            soft_anti_affinity_weight_multiplier: Some(1.0),
            build_failure_weight_multiplier: Some(1_000_000.0),
            cross_cell_move_weight_multiplier: Some(1_000_000.0),
            metrics_weight_multiplier: Some(1.0),
            metrics_weight_setting: Vec::new(),
            metrics_weight_setting_null: false,
            metrics_required: true,
            metrics_weight_of_unavailable: Some(-10_000.0),
            max_attempts: 3,
            max_placement_results: Some(1000),
            limit_tenants_to_placement_aggregate: false,
            placement_aggregate_required_for_tenants: false,
            query_placement_for_image_type_support: false,
            enable_isolated_aggregate_filtering: false,
            image_metadata_prefilter: false,
            query_placement_for_routed_network_aggregates: false,
            query_placement_for_availability_zone: true,
        }
    }
}

impl Options {
    /// The same with the operator's weighers behind Nova's own, instead of those that there were.
    #[must_use]
    pub fn with_plugins(mut self, plugins: Plugins) -> Self {
        let before: Vec<&str> = self.plugins.names().collect();
        self.weighers
            .retain(|name| !before.contains(&name.as_str()));
        self.weighers.extend(plugins.names().map(str::to_owned));
        self.plugins = plugins;
        self
    }

    /// The same with the operator's filters behind Nova's own, instead of those that there were.
    #[must_use]
    pub fn with_filter_plugins(mut self, filters: FilterPlugins) -> Self {
        self.filter_plugins = filters;
        self
    }
}
