//! What Nova's scheduler works with, as plain data: host states, aggregates, requests, options.

mod aggregate;
mod cpu_set;
mod host;
mod numa;
mod pci;
mod request;

pub use crate::image::{Image, ImageProps};
pub use crate::options::Options;
pub use crate::python::OrderedMap;
pub use aggregate::Aggregate;
pub use cpu_set::CpuSet;
pub use host::{AllocationCandidate, HostState, InstanceFacts, Metric, Service};
pub use numa::{
    InstanceNumaCell, InstanceNumaTopology, NetworkMetadata, NumaCell, NumaTopology, PagesTopology,
};
pub use pci::{PciDevice, PciPool, PciRequest};
pub use request::{
    Destination, Flavor, InstanceGroup, RequestGroup, RequestLevelParams, RequestSpec,
};
