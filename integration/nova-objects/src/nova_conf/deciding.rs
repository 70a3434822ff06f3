//! Nova's options for deciding, from the file to [`Options`].

use super::NovaConfError;
use super::not_loaded::{Listed, Lists};
use ebbtide_nova::model::Options;
use ebbtide_nova::options::check;
use ebbtide_nova::python::Value;
use ebbtide_nova::release::Release;
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

const FILTERS: &str = "filter_scheduler.enabled_filters";
/// A filter of Nova until 27: since Placement knows zones it only repeats what the query asked.
const ZONE_FILTER: &str = "AvailabilityZoneFilter";

const ZONE_OPTION: Opt = Opt::text("scheduler", "query_placement_for_availability_zone");

/// What nova.conf says about deciding. What it comes to depends on the release of Nova whose place
/// is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Deciding {
    given: BTreeMap<String, Value>,
    /// Where AvailabilityZoneFilter is enabled.
    zone_filter: Option<String>,
    /// The lists of filters and weighers with their places.
    lists: Lists,
}

impl Deciding {
    /// Nova's options as that release reads them, and what the operator should know about them.
    pub(super) fn options(
        &self,
        release: Release,
    ) -> Result<(Options, Vec<String>), NovaConfError> {
        let mut given = self.given.clone();
        let mut notes = Vec::new();
        if !release.has_zone_filter() {
            given.remove(&format!("{}.{}", ZONE_OPTION.group, ZONE_OPTION.name));
            if let (Some(place), Some(Value::Str(text))) =
                (&self.zone_filter, given.get_mut(FILTERS))
            {
                let kept = text.split(',').map(str::trim).filter(|f| *f != ZONE_FILTER);
                *text = kept.collect::<Vec<_>>().join(",");
                notes.push(format!(
                    "{place}: {ZONE_FILTER} has no effect: Placement picks the hosts of a zone"
                ));
            }
        }
        let given = given.iter().map(|(key, value)| (key, value.clone()));
        let options = Options::read_for(release, given);
        let options = options.map_err(|fault| self.lists.explain(&fault))?;
        Ok((options, notes))
    }
}

/// What is given, each by itself checked.
pub(super) fn read(config: &Config) -> Result<Deciding, NovaConfError> {
    let mut read = Deciding::default();
    for (group, names) in OPTIONS {
        for &name in names {
            let Some((text, place)) = config.texts(&Opt::text(group, name))?.pop() else {
                continue;
            };
            let value = Value::Str(text.clone());
            check(group, name, &value).map_err(|allowed| ConfigError::Value {
                place: Box::new(place.clone()),
                group: group.to_owned(),
                name: name.to_owned(),
                shown: text.clone(),
                allowed,
            })?;
            if name == "enabled_filters" && text.contains(ZONE_FILTER) {
                read.zone_filter = Some(place.to_string());
            }
            match name {
                "enabled_filters" => read.lists.enabled = Listed::split(&text, &place),
                "weight_classes" => read.lists.weighers = Listed::split(&text, &place),
                _ => {}
            }
            read.given.insert(format!("{group}.{name}"), value);
        }
    }
    if let Some((text, _)) = config.texts(&ZONE_OPTION)?.pop() {
        let key = format!("{}.{}", ZONE_OPTION.group, ZONE_OPTION.name);
        read.given.insert(key, Value::Str(text));
    }
    let available = config.texts(&AVAILABLE_FILTERS)?;
    if !available.is_empty() {
        read.lists.available = available.iter().map(Listed::one).collect();
        let names = available.into_iter().map(|(name, _)| Value::Str(name));
        read.given.insert(
            "filter_scheduler.available_filters".to_owned(),
            Value::List(names.collect()),
        );
    }
    Ok(read)
}
