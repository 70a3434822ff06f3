//! Nova's options for deciding, from the file to [`Options`].

use super::NovaConfError;
use super::not_loaded::{ListEntry, Lists};
use super::sections::TIMES;
use ebbtide_nova::model::Options;
use ebbtide_nova::options::check;
use ebbtide_nova::python::Value;
use ebbtide_nova::release::Release;
use oslo_config::{Config, ConfigError, Opt};
use std::collections::BTreeMap;

/// The options that decisions depend on, with the defaults of [`Options`]. The types and ranges
/// that Nova declares are checked with [`check`]. Nova's other options are not read.
pub(super) const OPTIONS: &[Opt] = &[
    Opt::text("DEFAULT", "servicegroup_driver")
        .choices(&["db", "mc"])
        .default("db")
        .help(
            "db",
            "Where services report: db. With mc (memcached) Ebbtide knows nothing of them.",
        ),
    Opt::text("DEFAULT", "default_availability_zone")
        .default("nova")
        .help("az1", "The zone of computes in no aggregate that has one."),
    Opt::float("DEFAULT", "cpu_allocation_ratio")
        .at_least_float(0.0)
        .help(
            "4.0",
            "How often a CPU is sold, for computes that have not told. Not set: the initial \
             one.",
        ),
    Opt::float("DEFAULT", "ram_allocation_ratio")
        .at_least_float(0.0)
        .help("1.0", "The same of memory."),
    Opt::float("DEFAULT", "disk_allocation_ratio")
        .at_least_float(0.0)
        .help("1.0", "The same of disk."),
    Opt::float("DEFAULT", "initial_cpu_allocation_ratio")
        .at_least_float(0.0)
        .default("4.0")
        .help("2.0", "How often a CPU is sold at first."),
    Opt::float("DEFAULT", "initial_ram_allocation_ratio")
        .at_least_float(0.0)
        .default("1.0")
        .help("1.5", "The same of memory."),
    Opt::float("DEFAULT", "initial_disk_allocation_ratio")
        .at_least_float(0.0)
        .default("1.0")
        .help("1.5", "The same of disk."),
    Opt::bool("compute", "packing_host_numa_cells_allocation_strategy")
        .default("false")
        .help("true", "Whether NUMA cells of a host are filled one after the other."),
    Opt::text("compute", "cpu_shared_set")
        .help("0-3", "CPUs for servers without pinned ones."),
    Opt::bool("workarounds", "disable_fallback_pcpu_query")
        .default("false")
        .help("true", "Whether computes that do not report PCPU are left out for pinned servers."),
    Opt::list("filter_scheduler", "enabled_filters")
        .default("ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter")
        .help(
            "ComputeFilter,ImagePropertiesFilter,NUMATopologyFilter",
            "The filters, in order. A list of your own replaces the default one.",
        ),
    Opt::list("filter_scheduler", "weight_classes")
        .default("nova.scheduler.weights.all_weighers")
        .help(
            "nova.scheduler.weights.ram.RAMWeigher",
            "The weighers, in the order in which their weights are added up. Ebbtide has Nova's \
             own; a class of yours is refused.",
        ),
    Opt::int("filter_scheduler", "host_subset_size")
        .at_least(1)
        .default("1")
        .help("3", "Choose at random among this many of the best hosts."),
    Opt::bool("filter_scheduler", "shuffle_best_same_weighed_hosts")
        .default("false")
        .help("true", "Shuffle the hosts that share the best weight."),
    Opt::bool("filter_scheduler", "track_instance_changes")
        .default("true")
        .help(
            "false",
            "Whether computes tell the schedulers which servers they have; filters of affinity \
             to hosts need it.",
        ),
    Opt::int("filter_scheduler", "max_io_ops_per_host")
        .at_least(0)
        .default("8")
        .help(
            "4",
            "For IoOpsFilter: hosts with so many servers being built, resized or moved get no \
             more.",
        ),
    Opt::int("filter_scheduler", "max_instances_per_host")
        .at_least(1)
        .default("50")
        .help("100", "For NumInstancesFilter: hosts with so many servers get no more."),
    Opt::list("filter_scheduler", "isolated_hosts")
        .help("compute7,compute8", "For IsolatedHostsFilter: hosts kept for some images."),
    Opt::list("filter_scheduler", "isolated_images")
        .help("342b492c-128f-4a42-8d3a-c5088cf27d13", "For IsolatedHostsFilter: these images."),
    Opt::bool("filter_scheduler", "restrict_isolated_hosts_to_isolated_images")
        .default("true")
        .help(
            "false",
            "For IsolatedHostsFilter: whether isolated hosts are for isolated images only.",
        ),
    Opt::text("filter_scheduler", "image_properties_default_architecture")
        .help("x86_64", "For ImagePropertiesFilter: the architecture of images that name none."),
    Opt::text("filter_scheduler", "aggregate_image_properties_isolation_namespace")
        .help(
            "os",
            "For AggregateImagePropertiesIsolation: which image properties count, by what they \
             begin with.",
        ),
    Opt::text("filter_scheduler", "aggregate_image_properties_isolation_separator")
        .default(".")
        .help("_", "For AggregateImagePropertiesIsolation: what stands behind that beginning."),
    Opt::bool("filter_scheduler", "pci_in_placement")
        .default("false")
        .help("true", "Whether PCI devices are looked for in Placement."),
    Opt::float("filter_scheduler", "ram_weight_multiplier")
        .default("1.0")
        .help(
            "-1.0",
            "Free memory: positive spreads, negative packs. Aggregates can override it for \
             their hosts, as all multipliers.",
        ),
    Opt::float("filter_scheduler", "cpu_weight_multiplier")
        .default("1.0")
        .help("-1.0", "Free CPUs: positive spreads, negative packs."),
    Opt::float("filter_scheduler", "disk_weight_multiplier")
        .default("1.0")
        .help("0.0", "Free disk: positive spreads, negative packs."),
    Opt::float("filter_scheduler", "hypervisor_version_weight_multiplier")
        .default("1.0")
        .help(
            "0.0",
            "Version of the hypervisor: positive prefers newer ones, negative older ones.",
        ),
    Opt::float("filter_scheduler", "num_instances_weight_multiplier")
        .default("0.0")
        .help("-1.0", "Servers on the host: positive packs, negative spreads, 0 is off."),
    Opt::float("filter_scheduler", "io_ops_weight_multiplier")
        .default("-1.0")
        .help(
            "-2.0",
            "Servers being built, resized or moved: negative keeps away from busy hosts, \
             positive prefers them.",
        ),
    Opt::float("filter_scheduler", "image_props_weight_multiplier")
        .default("0.0")
        .help(
            "1.0",
            "Servers of like images: positive gathers them, negative spreads them, 0 is off.",
        ),
    Opt::list("filter_scheduler", "image_props_weight_setting")
        .help(
            "os_distro=2,hw_machine_type=0",
            "Which image properties count how much, name=ratio; empty: each counts 1.",
        ),
    Opt::float("filter_scheduler", "pci_weight_multiplier")
        .at_least_float(0.0)
        .default("1.0")
        .help("2.0", "Keeps hosts with free PCI devices for servers that request one."),
    Opt::float("filter_scheduler", "soft_affinity_weight_multiplier")
        .at_least_float(0.0)
        .default("1.0")
        .help("10.0", "Members of a group with the policy soft-affinity on the host."),
    Opt::float("filter_scheduler", "soft_anti_affinity_weight_multiplier")
        .at_least_float(0.0)
        .default("1.0")
        .help("10.0", "Members of a group with the policy soft-anti-affinity on the host."),
    Opt::float("filter_scheduler", "build_failure_weight_multiplier")
        .default("1000000.0")
        .help(
            "100.0",
            "Failed builds: positive keeps away from hosts whose builds fail (the sign is \
             turned round inside).",
        ),
    Opt::float("filter_scheduler", "cross_cell_move_weight_multiplier")
        .default("1000000.0")
        .help("0.0", "Moves: positive keeps them in their cell, negative sends them to another."),
    Opt::float("metrics", "weight_multiplier")
        .default("1.0")
        .help("2.0", "How much the metrics of [metrics] weight_setting count together."),
    Opt::list("metrics", "weight_setting")
        .help("cpu.percent=-1.0", "Which metrics count how much, name=ratio."),
    Opt::bool("metrics", "required")
        .default("true")
        .help(
            "false",
            "Whether a host that lacks a metric fails the request; false: it gets \
             weight_of_unavailable.",
        ),
    Opt::float("metrics", "weight_of_unavailable")
        .default("-10000.0")
        .help("-1.0", "What a host gets that lacks a metric which is not required."),
    Opt::int("scheduler", "max_attempts")
        .at_least(1)
        .default("3")
        .help(
            "5",
            "On how many hosts a server is tried. An answer has one alternative less than that.",
        ),
    Opt::int("scheduler", "max_placement_results")
        .at_least(1)
        .default("1000")
        .help("2000", "How many candidates Placement names at most."),
    Opt::bool("scheduler", "limit_tenants_to_placement_aggregate")
        .default("false")
        .help("true", "Whether aggregates with filter_tenant_id are for these tenants."),
    Opt::bool("scheduler", "placement_aggregate_required_for_tenants")
        .default("false")
        .help("true", "Whether tenants without such an aggregate get nothing."),
    Opt::bool("scheduler", "query_placement_for_image_type_support")
        .default("false")
        .help("true", "Whether Placement is asked for hosts that support the image's format."),
    Opt::bool("scheduler", "enable_isolated_aggregate_filtering")
        .default("false")
        .help(
            "true",
            "Whether aggregates with required traits are for servers that ask for these only.",
        ),
    Opt::bool("scheduler", "image_metadata_prefilter")
        .default("false")
        .help(
            "true",
            "Whether properties of the image are translated into traits that Placement is asked \
             for.",
        ),
    Opt::bool("scheduler", "query_placement_for_routed_network_aggregates")
        .default("false")
        .help("true", "Whether hosts must reach the segments of routed networks."),
];

options! {
    AVAILABLE_FILTERS: Opt::many("filter_scheduler", "available_filters")
        .default("nova.scheduler.filters.all_filters")
        .help(
            "nova.scheduler.filters.all_filters",
            "Which filters may be enabled; may come several times. Ebbtide has Nova's own.",
        );
    PCI_ALIAS: Opt::many("pci", "alias")
        .help(
            r#"{"name": "gpu", "vendor_id": "10de", "product_id": "20b0", "device_type": "type-PCI"}"#,
            "PCI devices that flavors name in pci_passthrough:alias; may come several times. For \
             what-ifs; give the scheduler the lines of nova-api.",
        );
    ZONE_OPTION: Opt::bool("scheduler", "query_placement_for_availability_zone")
        .default("true")
        .help(
            "false",
            "Whether Placement is asked for a zone's hosts. Exists up to Nova 27; later ones \
             always ask.",
        );
}

const FILTERS: &str = "filter_scheduler.enabled_filters";
/// A filter of Nova until 27: since Placement knows zones it only repeats what the query asked.
const ZONE_FILTER: &str = "AvailabilityZoneFilter";

/// What nova.conf says about deciding. What it comes to depends on the release of Nova whose place
/// is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct DecisionOptions {
    given: BTreeMap<String, Value>,
    /// Where AvailabilityZoneFilter is enabled.
    zone_filter: Option<String>,
    /// The lists of filters and weighers with their places.
    lists: Lists,
}

impl DecisionOptions {
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
pub(super) fn read(config: &Config) -> Result<DecisionOptions, NovaConfError> {
    let mut read = DecisionOptions::default();
    for option in OPTIONS.iter().chain(&TIMES) {
        let (group, name) = (option.group, option.name);
        let Some((text, place)) = config.texts(option)?.pop() else {
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
            "enabled_filters" => read.lists.enabled = ListEntry::split(&text, &place),
            "weight_classes" => read.lists.weighers = ListEntry::split(&text, &place),
            _ => {}
        }
        read.given.insert(format!("{group}.{name}"), value);
    }
    let aliases = config.texts(&PCI_ALIAS)?;
    if !aliases.is_empty() {
        let aliases = aliases.into_iter().map(|(alias, _)| Value::Str(alias));
        let key = format!("{}.{}", PCI_ALIAS.group, PCI_ALIAS.name);
        read.given.insert(key, Value::List(aliases.collect()));
    }
    if let Some((text, _)) = config.texts(&ZONE_OPTION)?.pop() {
        let key = format!("{}.{}", ZONE_OPTION.group, ZONE_OPTION.name);
        read.given.insert(key, Value::Str(text));
    }
    let available = config.texts(&AVAILABLE_FILTERS)?;
    if !available.is_empty() {
        read.lists.available = available.iter().map(ListEntry::one).collect();
        let names = available.into_iter().map(|(name, _)| Value::Str(name));
        read.given.insert(
            "filter_scheduler.available_filters".to_owned(),
            Value::List(names.collect()),
        );
    }
    Ok(read)
}
