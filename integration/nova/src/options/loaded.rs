//! Which classes the names in `available_filters`, `enabled_filters` and `weight_classes` stand
//! for, and what Nova raises at start for names that stand for none (`nova/loadables.py`,
//! `HostManager._choose_host_filters`).

use crate::fault::NovaException;

/// Filters by module under `nova.scheduler.filters`.
const FILTERS: [(&str, &[&str]); 16] = [
    (
        "affinity_filter",
        &[
            "DifferentHostFilter",
            "SameHostFilter",
            "ServerGroupAffinityFilter",
            "ServerGroupAntiAffinityFilter",
            "SimpleCIDRAffinityFilter",
        ],
    ),
    (
        "aggregate_image_properties_isolation",
        &["AggregateImagePropertiesIsolation"],
    ),
    (
        "aggregate_instance_extra_specs",
        &["AggregateInstanceExtraSpecsFilter"],
    ),
    (
        "aggregate_multitenancy_isolation",
        &["AggregateMultiTenancyIsolation"],
    ),
    ("all_hosts_filter", &["AllHostsFilter"]),
    (
        "compute_capabilities_filter",
        &["ComputeCapabilitiesFilter"],
    ),
    ("compute_filter", &["ComputeFilter"]),
    ("image_props_filter", &["ImagePropertiesFilter"]),
    ("io_ops_filter", &["AggregateIoOpsFilter", "IoOpsFilter"]),
    ("isolated_hosts_filter", &["IsolatedHostsFilter"]),
    ("json_filter", &["JsonFilter"]),
    ("metrics_filter", &["MetricsFilter"]),
    (
        "num_instances_filter",
        &["AggregateNumInstancesFilter", "NumInstancesFilter"],
    ),
    ("numa_topology_filter", &["NUMATopologyFilter"]),
    ("pci_passthrough_filter", &["PciPassthroughFilter"]),
    ("type_filter", &["AggregateTypeAffinityFilter"]),
];

/// Weighers by module under `nova.scheduler.weights`, modules and classes sorted: Nova's own order
/// is that of the directory in the file system, and we choose this one.
const WEIGHERS: [(&str, &[&str]); 12] = [
    (
        "affinity",
        &[
            "ServerGroupSoftAffinityWeigher",
            "ServerGroupSoftAntiAffinityWeigher",
        ],
    ),
    ("compute", &["BuildFailureWeigher"]),
    ("cpu", &["CPUWeigher"]),
    ("cross_cell", &["CrossCellWeigher"]),
    ("disk", &["DiskWeigher"]),
    ("hypervisor_version", &["HypervisorVersionWeigher"]),
    ("image_props", &["ImagePropertiesWeigher"]),
    ("io_ops", &["IoOpsWeigher"]),
    ("metrics", &["MetricsWeigher"]),
    ("num_instances", &["NumInstancesWeigher"]),
    ("pci", &["PCIWeigher"]),
    ("ram", &["RAMWeigher"]),
];

/// Names in Nova's modules that can be imported but are no filter or weigher.
const OTHERS: [&str; 14] = [
    "LOG",
    "CONF",
    "logging",
    "nova",
    "filters",
    "weights",
    "utils",
    "extra_specs_ops",
    "objects",
    "fields",
    "servicegroup",
    "BaseHostFilter",
    "BaseHostWeigher",
    "hardware",
];

/// A kind of loadable classes.
struct Kind {
    package: &'static str,
    all: &'static str,
    modules: &'static [(&'static str, &'static [&'static str])],
    abstract_class: &'static str,
}

const FILTER: Kind = Kind {
    package: "nova.scheduler.filters",
    all: "all_filters",
    modules: &FILTERS,
    abstract_class: "BaseHostFilter",
};
const WEIGHER: Kind = Kind {
    package: "nova.scheduler.weights",
    all: "all_weighers",
    modules: &WEIGHERS,
    abstract_class: "BaseHostWeigher",
};

impl Kind {
    fn classes(&self) -> impl Iterator<Item = &'static str> {
        self.modules
            .iter()
            .flat_map(|(_, classes)| classes.iter().copied())
    }

    /// The classes that a dotted name stands for.
    fn matching(&self, name: &str) -> Result<Vec<&'static str>, NovaException> {
        let (module, class) = name.rsplit_once('.').unwrap_or(("", name));
        if module.is_empty() {
            return Err(NovaException::new(
                "ValueError",
                format!("empty module name in {name:?}"),
            ));
        }
        let wrong = || {
            NovaException::new(
                "ClassNotFound",
                format!("{name} is not a class of the right type"),
            )
        };
        let unknown = || {
            NovaException::new(
                "ImportError",
                format!("class {class} cannot be found in {module}"),
            )
        };
        for kind in [&FILTER, &WEIGHER] {
            let same = kind.package == self.package;
            if module == kind.package {
                return match class {
                    _ if class == kind.all => Ok(kind.classes().collect()),
                    _ if class == kind.abstract_class && same => Ok(vec![kind.abstract_class]),
                    _ if kind.modules.iter().any(|(module, _)| *module == class) => Err(wrong()),
                    "WeighedHost"
                    | "HostWeightHandler"
                    | "HostFilterHandler"
                    | "CandidateFilterMixin" => Err(wrong()),
                    _ if OTHERS.contains(&class) => Err(wrong()),
                    _ => Err(unknown()),
                };
            }
            let Some(inner) = module
                .strip_prefix(kind.package)
                .and_then(|rest| rest.strip_prefix('.'))
            else {
                continue;
            };
            let Some((_, classes)) = kind.modules.iter().find(|(name, _)| *name == inner) else {
                continue;
            };
            return match classes.iter().find(|known| **known == class) {
                Some(known) if same => Ok(vec![known]),
                Some(_) => Err(wrong()),
                None if class.starts_with('_') || OTHERS.contains(&class) => Err(wrong()),
                None => Err(unknown()),
            };
        }
        match module {
            "nova.weights" | "nova.filters" | "nova" | "nova.scheduler" => Err(wrong()),
            _ => Err(NovaException::new(
                "ModuleNotFoundError",
                format!("no module named {module:?}"),
            )),
        }
    }
}

/// Whether an entry of `available_filters` stands for filters of Nova.
#[must_use]
pub fn names_filters(entry: &str) -> bool {
    FILTER.matching(entry).is_ok()
}

/// Whether an entry of `weight_classes` stands for weighers of Nova.
#[must_use]
pub fn names_weighers(entry: &str) -> bool {
    weighers(&[entry.to_owned()]).is_ok()
}

/// The class names of the filters that run, in order. Each is started before the next is looked at.
/// `zone_filter`: the release still has AvailabilityZoneFilter.
///
/// # Errors
/// SchedulerHostFilterNotFound, whatever importing `available_filters` raises, and what a filter
/// raises that cannot start.
pub(crate) fn filters(
    available: &[String],
    enabled: &[String],
    zone_filter: bool,
    start: impl Fn(&str) -> Result<(), NovaException>,
) -> Result<Vec<String>, NovaException> {
    let mut known = Vec::new();
    for name in available {
        known.extend(FILTER.matching(name)?);
    }
    if zone_filter {
        known.push("AvailabilityZoneFilter");
    }
    let mut bad = Vec::new();
    for name in enabled {
        if known.contains(&name.as_str()) {
            start(name)?;
        } else {
            bad.push(name.as_str());
        }
    }
    if bad.is_empty() {
        Ok(enabled.to_vec())
    } else {
        Err(NovaException::new(
            "SchedulerHostFilterNotFound",
            bad.join(", "),
        ))
    }
}

/// The class names of the weighers that run, in the order in which they add up.
///
/// # Errors
/// ValueError, ModuleNotFoundError, ImportError, ClassNotFound, TypeError (an abstract class).
pub(crate) fn weighers(classes: &[String]) -> Result<Vec<String>, NovaException> {
    let mut names = Vec::new();
    for class in classes {
        names.extend(WEIGHER.matching(class)?);
    }
    if names.contains(&WEIGHER.abstract_class) {
        return Err(NovaException::new(
            "TypeError",
            "BaseHostWeigher is abstract",
        ));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(name: &str) -> Result<Vec<String>, &'static str> {
        weighers(&[name.to_owned()]).map_err(|fault| fault.class)
    }

    #[test]
    fn a_weigher_that_cannot_be_imported_fails_as_its_import_does() {
        assert_eq!(
            weigh("nova.scheduler.weights.ram.RAMWeigher"),
            Ok(vec!["RAMWeigher".to_owned()])
        );
        assert_eq!(
            weigh("nova.scheduler.weights.all_weighers").map(|all| all.len()),
            Ok(13)
        );
        assert_eq!(weigh("RAMWeigher"), Err("ValueError"));
        assert_eq!(
            weigh("nova.scheduler.weights.nosuch.X"),
            Err("ModuleNotFoundError")
        );
        assert_eq!(
            weigh("nova.scheduler.weights.ram.NoSuch"),
            Err("ImportError")
        );
        assert_eq!(
            weigh("nova.scheduler.weights.RAMWeigher"),
            Err("ImportError")
        );
        assert_eq!(
            weigh("nova.scheduler.weights.BaseHostWeigher"),
            Err("TypeError")
        );
        assert_eq!(
            weigh("nova.scheduler.weights.affinity._SoftAffinityWeigherBase"),
            Err("ClassNotFound")
        );
        assert_eq!(
            weigh("nova.scheduler.filters.compute_filter.ComputeFilter"),
            Err("ClassNotFound")
        );
    }

    #[test]
    fn a_filter_that_is_not_available_is_not_found() {
        let all = ["nova.scheduler.filters.all_filters".to_owned()];
        let class = |enabled: &str| {
            filters(&all, &[enabled.to_owned()], false, |_| Ok(())).map_err(|fault| fault.class)
        };
        assert_eq!(class("JsonFilter"), Ok(vec!["JsonFilter".to_owned()]));
        assert_eq!(class("RamFilter"), Err("SchedulerHostFilterNotFound"));
        assert_eq!(
            class("AvailabilityZoneFilter"),
            Err("SchedulerHostFilterNotFound")
        );
        let old = filters(&all, &["AvailabilityZoneFilter".to_owned()], true, |_| {
            Ok(())
        });
        assert!(old.is_ok(), "Nova had it up to 27");
        assert_eq!(
            filters(&[], &["JsonFilter".to_owned()], false, |_| Ok(())).map_err(|f| f.class),
            Err("SchedulerHostFilterNotFound")
        );
    }
}
