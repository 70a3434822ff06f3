//! The one list of filters, which [`by_name`] searches. A new filter has more places than its file
//! and its line here: see docs/development/checklists/filter.md.

use super::{
    AggregateImagePropertiesIsolation, AggregateInstanceExtraSpecs, AggregateIoOps,
    AggregateMultiTenancyIsolation, AggregateNumInstances, AggregateTypeAffinity, AllHosts,
    AvailabilityZone, Compute, ComputeCapabilities, DifferentHost, Filter, ImageProperties, IoOps,
    IsolatedHosts, Json, Metrics, NumInstances, NumaTopologyFits, PciPassthrough, SameHost,
    ServerGroupAffinity, ServerGroupAntiAffinity, SimpleCidrAffinity,
};

/// All filters, by the name of their type.
const ALL: [&dyn Filter; 22] = [
    &AggregateImagePropertiesIsolation,
    &AggregateInstanceExtraSpecs,
    &AggregateIoOps,
    &AggregateMultiTenancyIsolation,
    &AggregateNumInstances,
    &AggregateTypeAffinity,
    &AllHosts,
    &Compute,
    &ComputeCapabilities,
    &DifferentHost,
    &ImageProperties,
    &IoOps,
    &IsolatedHosts,
    &Json,
    &Metrics,
    &NumInstances,
    &NumaTopologyFits,
    &PciPassthrough,
    &SameHost,
    &ServerGroupAffinity,
    &ServerGroupAntiAffinity,
    &SimpleCidrAffinity,
];

/// Filters that the newest release has no longer.
const FORMER: [&dyn Filter; 1] = [&AvailabilityZone];

/// All filters, by class name.
#[must_use]
pub fn all() -> Vec<&'static dyn Filter> {
    ALL.to_vec()
}

/// The filter of one of Nova's class names.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Filter> {
    let mut all = ALL.into_iter().chain(FORMER);
    all.find(|filter| filter.name() == name)
}
