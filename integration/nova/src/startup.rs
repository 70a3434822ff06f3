//! Reads Nova's configuration as oslo.config checks an override, and loads filters and weighers as
//! nova-scheduler does when it starts. It stands above the filters, which read the options.

use crate::fault::NovaException;
use crate::filters;
use crate::options::values::{OptionValues, clamp};
use crate::options::{Options, convert, loaded};
use crate::python::{Value, number};
use crate::release::Release;
use std::collections::BTreeMap;

/// An option that Nova has no longer.
const ZONE_OPTION: &str = "scheduler.query_placement_for_availability_zone";

/// Names and ratios of a list of `name=ratio`. What has no name, no `=` or no number is left out
/// (`parse_options`).
fn ratios(settings: &[String]) -> Vec<(String, f64)> {
    settings
        .iter()
        .filter_map(|setting| setting.split_once('='))
        .filter(|(name, _)| !name.is_empty())
        .filter_map(|(name, ratio)| number::float(ratio).map(|ratio| (name.to_owned(), ratio)))
        .collect()
}

impl Options {
    /// Reads options by `group.name`, and loads filters and weighers as Nova does when it starts.
    /// Options are checked in the order given; where several are wrong, the first decides the class
    /// of the error.
    ///
    /// # Errors
    /// NoSuchGroupError, NoSuchOptError, ValueError, TypeError, AttributeError, OverflowError for
    /// an option; SchedulerHostFilterNotFound, ClassNotFound, ImportError, ModuleNotFoundError for
    /// what does not load.
    pub fn read<'a, V: Into<Value>>(
        config: impl IntoIterator<Item = (&'a String, V)>,
    ) -> Result<Self, NovaException> {
        Self::read_for(Release::NEWEST, config)
    }

    /// The same for another release of Nova, which may have options and filters that later ones
    /// have not.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_for<'a, V: Into<Value>>(
        release: Release,
        config: impl IntoIterator<Item = (&'a String, V)>,
    ) -> Result<Self, NovaException> {
        let mut given = OptionValues(BTreeMap::new());
        let mut options = Self {
            release,
            ..Self::default()
        };
        for (key, value) in config {
            let (group, name) = key
                .split_once('.')
                .ok_or_else(|| NovaException::new("ValueError", format!("{key:?} has no group")))?;
            if release.has_zone_filter() && key == ZONE_OPTION {
                // Null is as good as false.
                options.query_placement_for_availability_zone = match value.into() {
                    Value::None => false,
                    value => convert::boolean(&value)? == Value::Bool(true),
                };
                continue;
            }
            let value = convert::declared(group, name)?.convert(&value.into())?;
            given.0.insert(key.clone(), value);
        }
        options.take_general(&given);
        options.take_lists(&given)?;
        options.take_filtering(&given);
        options.take_weighing(&given);
        options.take_scheduling(&given);
        Ok(options)
    }

    /// What HostManager loads, in its order.
    fn take_lists(&mut self, given: &OptionValues) -> Result<(), NovaException> {
        let mut available = vec!["nova.scheduler.filters.all_filters".to_owned()];
        given.words("filter_scheduler.available_filters", &mut available)?;
        given.words(
            "filter_scheduler.enabled_filters",
            &mut self.enabled_filters,
        )?;
        let mut metrics = Vec::new();
        let metrics_given = given.words("metrics.weight_setting", &mut metrics);
        self.metrics_weight_setting = ratios(&metrics);
        self.metrics_weight_setting_null = metrics_given.is_err();
        let zone_filter = self.release.has_zone_filter();
        self.enabled_filters =
            loaded::filters(&available, &self.enabled_filters, zone_filter, |name| {
                filters::by_name(name).map_or(Ok(()), |filter| filter.starts(self))
            })?;
        given.words("filter_scheduler.weight_classes", &mut self.weight_classes)?;
        self.weighers = loaded::weighers(&self.weight_classes)?;
        let mut image_props = Vec::new();
        let image_props_given = given.words(
            "filter_scheduler.image_props_weight_setting",
            &mut image_props,
        );
        if self
            .weighers
            .iter()
            .any(|name| name == "ImagePropertiesWeigher")
        {
            image_props_given?;
        }
        if self.weighers.iter().any(|name| name == "MetricsWeigher") {
            metrics_given?;
        }
        self.image_props_weight_setting = ratios(&image_props);
        // A null list of images is as good as an empty one; a null list of hosts is not.
        let mut hosts = Vec::new();
        let hosts_given = given.words("filter_scheduler.isolated_hosts", &mut hosts);
        self.isolated_hosts = hosts_given.is_ok().then_some(hosts);
        given
            .words(
                "filter_scheduler.isolated_images",
                &mut self.isolated_images,
            )
            .ok();
        Ok(())
    }

    fn take_general(&mut self, given: &OptionValues) {
        given.optional_int("DEFAULT.service_down_time", &mut self.service_down_time);
        let mut report_interval = Some(10);
        given.optional_int("DEFAULT.report_interval", &mut report_interval);
        // What ComputeFilter does to the option when it starts (`nova/servicegroup/api.py`).
        self.service_down_time =
            self.service_down_time
                .zip(report_interval)
                .map(|(down_time, interval)| {
                    if down_time <= interval {
                        clamp(i128::from(interval) * 5 / 2)
                    } else {
                        down_time
                    }
                });
        if let Some(Value::Str(driver)) = given.set("DEFAULT.servicegroup_driver") {
            self.servicegroup_memcached = driver == "mc";
        }
        if let Some(Value::Str(zone)) = given.set("DEFAULT.default_availability_zone") {
            self.default_availability_zone.clone_from(zone);
        }
        given.optional_float(
            "DEFAULT.cpu_allocation_ratio",
            &mut self.cpu_allocation_ratio,
        );
        given.optional_float(
            "DEFAULT.ram_allocation_ratio",
            &mut self.ram_allocation_ratio,
        );
        given.optional_float(
            "DEFAULT.disk_allocation_ratio",
            &mut self.disk_allocation_ratio,
        );
        given.float(
            "DEFAULT.initial_cpu_allocation_ratio",
            &mut self.initial_cpu_allocation_ratio,
        );
        given.float(
            "DEFAULT.initial_ram_allocation_ratio",
            &mut self.initial_ram_allocation_ratio,
        );
        given.float(
            "DEFAULT.initial_disk_allocation_ratio",
            &mut self.initial_disk_allocation_ratio,
        );
        given.bool(
            "compute.packing_host_numa_cells_allocation_strategy",
            &mut self.packing_host_numa_cells_allocation_strategy,
        );
        given.optional_text("compute.cpu_shared_set", &mut self.cpu_shared_set);
        given.bool(
            "workarounds.disable_fallback_pcpu_query",
            &mut self.disable_fallback_pcpu_query,
        );
    }

    fn take_filtering(&mut self, given: &OptionValues) {
        given.int(
            "filter_scheduler.host_subset_size",
            &mut self.host_subset_size,
        );
        if let Some(Value::None) = given.set("filter_scheduler.host_subset_size") {
            self.host_subset_size = i64::MAX;
        }
        given.bool(
            "filter_scheduler.shuffle_best_same_weighed_hosts",
            &mut self.shuffle_best_same_weighed_hosts,
        );
        given.bool(
            "filter_scheduler.track_instance_changes",
            &mut self.track_instance_changes,
        );
        given.optional_int(
            "filter_scheduler.max_io_ops_per_host",
            &mut self.max_io_ops_per_host,
        );
        given.optional_int(
            "filter_scheduler.max_instances_per_host",
            &mut self.max_instances_per_host,
        );
        given.bool(
            "filter_scheduler.restrict_isolated_hosts_to_isolated_images",
            &mut self.restrict_isolated_hosts_to_isolated_images,
        );
        given.optional_text(
            "filter_scheduler.image_properties_default_architecture",
            &mut self.image_properties_default_architecture,
        );
        given.optional_text(
            "filter_scheduler.aggregate_image_properties_isolation_namespace",
            &mut self.aggregate_image_properties_isolation_namespace,
        );
        given.optional_text(
            "filter_scheduler.aggregate_image_properties_isolation_separator",
            &mut self.aggregate_image_properties_isolation_separator,
        );
        given.bool(
            "filter_scheduler.pci_in_placement",
            &mut self.pci_in_placement,
        );
        // Null is as good as no alias: what needs one fails either way.
        given.words("pci.alias", &mut self.pci_alias).ok();
    }

    fn take_weighing(&mut self, given: &OptionValues) {
        let multipliers: [(&str, &mut Option<f64>); 12] = [
            ("ram_weight_multiplier", &mut self.ram_weight_multiplier),
            ("cpu_weight_multiplier", &mut self.cpu_weight_multiplier),
            ("disk_weight_multiplier", &mut self.disk_weight_multiplier),
            (
                "hypervisor_version_weight_multiplier",
                &mut self.hypervisor_version_weight_multiplier,
            ),
            (
                "num_instances_weight_multiplier",
                &mut self.num_instances_weight_multiplier,
            ),
            (
                "io_ops_weight_multiplier",
                &mut self.io_ops_weight_multiplier,
            ),
            (
                "image_props_weight_multiplier",
                &mut self.image_props_weight_multiplier,
            ),
            ("pci_weight_multiplier", &mut self.pci_weight_multiplier),
            (
                "soft_affinity_weight_multiplier",
                &mut self.soft_affinity_weight_multiplier,
            ),
            (
                "soft_anti_affinity_weight_multiplier",
                &mut self.soft_anti_affinity_weight_multiplier,
            ),
            (
                "build_failure_weight_multiplier",
                &mut self.build_failure_weight_multiplier,
            ),
            (
                "cross_cell_move_weight_multiplier",
                &mut self.cross_cell_move_weight_multiplier,
            ),
        ];
        for (name, field) in multipliers {
            given.optional_float(&format!("filter_scheduler.{name}"), field);
        }
        given.optional_float(
            "metrics.weight_multiplier",
            &mut self.metrics_weight_multiplier,
        );
        given.bool("metrics.required", &mut self.metrics_required);
        given.optional_float(
            "metrics.weight_of_unavailable",
            &mut self.metrics_weight_of_unavailable,
        );
    }

    fn take_scheduling(&mut self, given: &OptionValues) {
        given.int("scheduler.max_attempts", &mut self.max_attempts);
        given.optional_int(
            "scheduler.max_placement_results",
            &mut self.max_placement_results,
        );
        let switches: [(&str, &mut bool); 6] = [
            (
                "limit_tenants_to_placement_aggregate",
                &mut self.limit_tenants_to_placement_aggregate,
            ),
            (
                "placement_aggregate_required_for_tenants",
                &mut self.placement_aggregate_required_for_tenants,
            ),
            (
                "query_placement_for_image_type_support",
                &mut self.query_placement_for_image_type_support,
            ),
            (
                "enable_isolated_aggregate_filtering",
                &mut self.enable_isolated_aggregate_filtering,
            ),
            (
                "image_metadata_prefilter",
                &mut self.image_metadata_prefilter,
            ),
            (
                "query_placement_for_routed_network_aggregates",
                &mut self.query_placement_for_routed_network_aggregates,
            ),
        ];
        for (name, field) in switches {
            given.bool(&format!("scheduler.{name}"), field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &serde_json::Value) -> Result<Options, &'static str> {
        let config: BTreeMap<String, serde_json::Value> =
            config.as_object().unwrap().clone().into_iter().collect();
        Options::read(&config).map_err(|fault| fault.class)
    }

    #[test]
    fn nothing_given_is_novas_default() {
        assert_eq!(read(&serde_json::json!({})), Ok(Options::default()));
    }

    #[test]
    fn bad_entries_of_a_weight_setting_are_left_out() {
        let options = read(&serde_json::json!({"metrics.weight_setting": ["a=1", "b", "=2", "c=x", "d=inf=1", "a=-2"]})).unwrap();
        assert_eq!(
            options.metrics_weight_setting,
            [("a".to_owned(), 1.0), ("a".to_owned(), -2.0)]
        );
    }

    #[test]
    fn null_lists_fail_where_nova_walks_them() {
        assert_eq!(
            read(&serde_json::json!({"filter_scheduler.weight_classes": null})),
            Err("TypeError")
        );
        assert_eq!(
            read(&serde_json::json!({"filter_scheduler.enabled_filters": null})),
            Err("TypeError")
        );
        assert_eq!(read(&serde_json::json!({"x": 1})), Err("ValueError"));
    }

    #[test]
    fn infinite_multipliers_are_taken_as_nova_takes_them() {
        let options =
            read(&serde_json::json!({"filter_scheduler.ram_weight_multiplier": "inf"})).unwrap();
        assert_eq!(options.ram_weight_multiplier, Some(f64::INFINITY));
    }
}
