//! The one list of built-in weighers. A new weigher is a file (or a row in `columns`), a line in
//! `build`, and nothing else.
//!
//! Invariants: names are unique, snake_case, and the multiplier key is the name with
//! `_weight_multiplier` behind it.

use crate::options::{ConfigError, WeigherOptions};
use crate::{
    columns, image_props, interruption_risk, metrics, partial_hour_sum, pci, soft_affinity,
    soft_anti_affinity,
};
use ebbtide_weigher_api::Weigher;
use std::sync::Arc;

/// Every weigher with these options: first Nova's, by module and class as Nova 34 loads them in
/// sorted order, then ours. Totals are sums of floats, so the order in which an operator lists the
/// weighers decides their last bits.
fn build(options: &WeigherOptions) -> Vec<Arc<dyn Weigher>> {
    vec![
        Arc::new(soft_affinity::SoftAffinity),
        Arc::new(soft_anti_affinity::SoftAntiAffinity),
        Arc::new(columns::BUILD_FAILURE),
        Arc::new(columns::CPU),
        Arc::new(columns::CROSS_CELL_MOVE),
        Arc::new(columns::DISK),
        Arc::new(columns::HYPERVISOR_VERSION),
        Arc::new(image_props::ImageProps::default()),
        Arc::new(columns::IO_OPS),
        Arc::new(metrics::Metrics::default()),
        Arc::new(columns::NUM_INSTANCES),
        Arc::new(pci::Pci),
        Arc::new(columns::RAM),
        Arc::new(columns::PREEMPTION_NEEDED),
        Arc::new(columns::EVICTION_COST),
        Arc::new(partial_hour_sum::PartialHourSum::new(
            options.period_seconds,
        )),
        Arc::new(columns::PREEMPTIBLE_COUNT),
        Arc::new(interruption_risk::InterruptionRisk::new(
            options.risk_horizon_seconds,
            options.interruptions.clone(),
        )),
    ]
}

/// Every built-in weigher, with default options: `interruption_risk` has no model then and says
/// nothing.
#[must_use]
pub fn all() -> Vec<Arc<dyn Weigher>> {
    build(&WeigherOptions::default())
}

/// The names of all built-in weighers, in the order of [`all`].
#[must_use]
pub fn names() -> Vec<String> {
    all()
        .iter()
        .map(|weigher| weigher.name().to_owned())
        .collect()
}

/// The weigher of that name. `soft-affinity` is the same as `soft_affinity`.
///
/// # Errors
/// [`ConfigError::UnknownWeigher`], which lists the names, an option that is out of range, or
/// [`ConfigError::NoInterruptions`].
pub fn by_name(name: &str, options: &WeigherOptions) -> Result<Arc<dyn Weigher>, ConfigError> {
    options.check()?;
    let wanted = name.replace('-', "_");
    if wanted == interruption_risk::NAME && options.interruptions.is_none() {
        return Err(ConfigError::NoInterruptions { name: wanted });
    }
    build(options)
        .into_iter()
        .find(|weigher| weigher.name() == wanted)
        .ok_or_else(|| ConfigError::UnknownWeigher {
            name: name.to_owned(),
            known: names(),
        })
}

/// Nova's weighers that speak about what Ebbtide knows, in Nova's order (module, class): affinity,
/// cpu, disk, io_ops, num_instances, ram. The default set; alone enough under the policy `tiered`.
#[must_use]
pub fn nova_default() -> [&'static str; 7] {
    [
        "soft_affinity",
        "soft_anti_affinity",
        "cpu",
        "disk",
        "io_ops",
        "num_instances",
        "ram",
    ]
}

/// The weighers that the policy `nova` needs besides [`nova_default`] to avoid preemption while any
/// host has enough free capacity, and to evict at the least cost. If no instance has to leave, both
/// add exactly nothing, so totals equal Nova's to the last bit.
#[must_use]
pub fn preemption_default() -> [&'static str; 2] {
    ["preemption_needed", "eviction_cost"]
}
