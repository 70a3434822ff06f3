//! Nova's options for deciding, from the file to [`Options`].

use super::NovaConfError;
use ebbtide_nova::model::Options;
use ebbtide_nova::options::check;
use ebbtide_nova::python::Value;
use oslo_config::{Config, ConfigError, Opt};
use std::collections::BTreeMap;

/// The options that decisions depend on. All others of Nova's may say what they like.
const OPTIONS: [(&str, &[&str]); 6] = [
    (
        "DEFAULT",
        &[
            "service_down_time",
            "report_interval",
            "servicegroup_driver",
            "default_availability_zone",
            "cpu_allocation_ratio",
            "ram_allocation_ratio",
            "disk_allocation_ratio",
            "initial_cpu_allocation_ratio",
            "initial_ram_allocation_ratio",
            "initial_disk_allocation_ratio",
        ],
    ),
    (
        "compute",
        &[
            "packing_host_numa_cells_allocation_strategy",
            "cpu_shared_set",
        ],
    ),
    ("workarounds", &["disable_fallback_pcpu_query"]),
    (
        "filter_scheduler",
        &[
            "enabled_filters",
            "weight_classes",
            "host_subset_size",
            "shuffle_best_same_weighed_hosts",
            "track_instance_changes",
            "max_io_ops_per_host",
            "max_instances_per_host",
            "isolated_hosts",
            "isolated_images",
            "restrict_isolated_hosts_to_isolated_images",
            "image_properties_default_architecture",
            "aggregate_image_properties_isolation_namespace",
            "aggregate_image_properties_isolation_separator",
            "pci_in_placement",
            "ram_weight_multiplier",
            "cpu_weight_multiplier",
            "disk_weight_multiplier",
            "hypervisor_version_weight_multiplier",
            "num_instances_weight_multiplier",
            "io_ops_weight_multiplier",
            "image_props_weight_multiplier",
            "image_props_weight_setting",
            "pci_weight_multiplier",
            "soft_affinity_weight_multiplier",
            "soft_anti_affinity_weight_multiplier",
            "build_failure_weight_multiplier",
            "cross_cell_move_weight_multiplier",
        ],
    ),
    (
        "metrics",
        &[
            "weight_multiplier",
            "weight_setting",
            "required",
            "weight_of_unavailable",
        ],
    ),
    (
        "scheduler",
        &[
            "max_attempts",
            "max_placement_results",
            "limit_tenants_to_placement_aggregate",
            "placement_aggregate_required_for_tenants",
            "query_placement_for_image_type_support",
            "enable_isolated_aggregate_filtering",
            "image_metadata_prefilter",
            "query_placement_for_routed_network_aggregates",
        ],
    ),
];

const AVAILABLE_FILTERS: Opt = Opt::many("filter_scheduler", "available_filters");

/// A filter of Nova until 30: since Placement knows zones it only repeats what the query asked.
const ZONE_FILTER: &str = "AvailabilityZoneFilter";

/// The options, and what the operator should know about them.
pub(super) fn read(config: &Config) -> Result<(Options, Vec<String>), NovaConfError> {
    let mut given: BTreeMap<String, Value> = BTreeMap::new();
    let mut notes = Vec::new();
    for (group, names) in OPTIONS {
        for &name in names {
            let Some((text, place)) = config.texts(&Opt::text(group, name))?.pop() else {
                continue;
            };
            let mut value = Value::Str(text.clone());
            check(group, name, &value).map_err(|allowed| ConfigError::Value {
                place: Box::new(place.clone()),
                group: group.to_owned(),
                name: name.to_owned(),
                shown: text.clone(),
                allowed,
            })?;
            if name == "enabled_filters" && text.contains(ZONE_FILTER) {
                let kept = text.split(',').map(str::trim).filter(|f| *f != ZONE_FILTER);
                value = Value::Str(kept.collect::<Vec<_>>().join(","));
                notes.push(format!(
                    "{place}: {ZONE_FILTER} has no effect: Placement picks the hosts of a zone"
                ));
            }
            given.insert(format!("{group}.{name}"), value);
        }
    }
    let available = config.texts(&AVAILABLE_FILTERS)?;
    if !available.is_empty() {
        let names = available.into_iter().map(|(name, _)| Value::Str(name));
        given.insert(
            "filter_scheduler.available_filters".to_owned(),
            Value::List(names.collect()),
        );
    }
    let options = Options::read(given.iter().map(|(key, value)| (key, value.clone())));
    let options = options.map_err(|fault| NovaConfError::Loading(fault.to_string()))?;
    Ok((options, notes))
}
