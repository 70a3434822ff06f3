//! Nova's weighers by class name, each with what it is here.

use crate::model::Options;
use crate::plugins::NovaWeigher;
use crate::release::Feature;
use ebbtide_weigher_api::Weigher;
use ebbtide_weighers as builtin;
use std::sync::Arc;

/// MetricsWeigher, which reads metrics.
pub(super) const METRICS: &str = "MetricsWeigher";
/// BuildFailureWeigher, which turns its multiplier round.
pub(super) const BUILD_FAILURE: &str = "BuildFailureWeigher";
/// ImagePropertiesWeigher, which reads image properties.
pub(super) const IMAGE_PROPERTIES: &str = "ImagePropertiesWeigher";

/// All class names by module and class, in which order they add up unless configured otherwise.
/// Nova's own order is that of its directory on disk; sorted is our choice.
#[must_use]
pub fn classes() -> [&'static str; 13] {
    [
        "ServerGroupSoftAffinityWeigher",
        "ServerGroupSoftAntiAffinityWeigher",
        BUILD_FAILURE,
        "CPUWeigher",
        "CrossCellWeigher",
        "DiskWeigher",
        "HypervisorVersionWeigher",
        IMAGE_PROPERTIES,
        "IoOpsWeigher",
        METRICS,
        "NumInstancesWeigher",
        "PCIWeigher",
        "RAMWeigher",
    ]
}

/// A weigher with its settings; `None` if there is none of that name, or none yet in the release.
#[must_use]
pub fn by_class(class: &str, options: &Options) -> Option<NovaWeigher> {
    let nova = classes().into_iter().find(|known| *known == class);
    let Some(class) = nova else {
        return options.plugins.get(class);
    };
    let feature = match class {
        "HypervisorVersionWeigher" => Some(Feature::HypervisorVersionWeigher),
        "NumInstancesWeigher" => Some(Feature::NumInstancesWeigher),
        IMAGE_PROPERTIES => Some(Feature::ImagePropertiesWeigher),
        _ => None,
    };
    if feature.is_some_and(|feature| !options.release.has(feature)) {
        return None;
    }
    let o = options;
    let (weigher, configured): (Arc<dyn Weigher>, Option<f64>) = match class {
        "ServerGroupSoftAffinityWeigher" => (
            Arc::new(builtin::soft_affinity::SoftAffinity),
            o.soft_affinity_weight_multiplier,
        ),
        "ServerGroupSoftAntiAffinityWeigher" => (
            Arc::new(builtin::soft_anti_affinity::SoftAntiAffinity),
            o.soft_anti_affinity_weight_multiplier,
        ),
        BUILD_FAILURE => (
            Arc::new(builtin::columns::BUILD_FAILURE),
            o.build_failure_weight_multiplier,
        ),
        "CPUWeigher" => (Arc::new(builtin::columns::CPU), o.cpu_weight_multiplier),
        "CrossCellWeigher" => (
            Arc::new(builtin::columns::CROSS_CELL_MOVE),
            o.cross_cell_move_weight_multiplier,
        ),
        "DiskWeigher" => (Arc::new(builtin::columns::DISK), o.disk_weight_multiplier),
        "HypervisorVersionWeigher" => (
            Arc::new(builtin::columns::HYPERVISOR_VERSION),
            o.hypervisor_version_weight_multiplier,
        ),
        IMAGE_PROPERTIES => (
            Arc::new(builtin::image_props::ImageProps::new(
                o.image_props_weight_setting.clone(),
            )),
            o.image_props_weight_multiplier,
        ),
        "IoOpsWeigher" => (
            Arc::new(builtin::columns::IO_OPS),
            o.io_ops_weight_multiplier,
        ),
        METRICS => (
            Arc::new(builtin::metrics::Metrics::new(
                o.metrics_weight_setting.clone(),
                o.metrics_required,
                o.metrics_weight_of_unavailable,
            )),
            o.metrics_weight_multiplier,
        ),
        "NumInstancesWeigher" => (
            Arc::new(builtin::columns::NUM_INSTANCES),
            o.num_instances_weight_multiplier,
        ),
        "PCIWeigher" => (Arc::new(builtin::pci::Pci), o.pci_weight_multiplier),
        "RAMWeigher" => (Arc::new(builtin::columns::RAM), o.ram_weight_multiplier),
        _ => return None,
    };
    Some(NovaWeigher {
        class,
        weigher,
        configured,
    })
}
