//! Nova's filters, one a file, and their registry.

mod aggregate_image_properties_isolation;
mod aggregate_instance_extra_specs;
mod aggregate_io_ops;
mod aggregate_multi_tenancy_isolation;
mod aggregate_num_instances;
mod aggregate_type_affinity;
mod all_hosts;
pub(crate) mod attributes;
mod availability_zone;
mod candidates;
mod compute;
pub(crate) mod compute_capabilities;
mod different_host;
mod hints;
mod image_properties;
mod io_ops;
mod isolated_hosts;
mod json;
mod metrics;
mod network;
mod num_instances;
mod numa_topology;
mod pci_passthrough;
mod plugins;
mod registry;
mod same_host;
mod server_group_affinity;
mod server_group_anti_affinity;
mod simple_cidr_affinity;
mod values;

pub use aggregate_image_properties_isolation::AggregateImagePropertiesIsolation;
pub use aggregate_instance_extra_specs::AggregateInstanceExtraSpecs;
pub use aggregate_io_ops::AggregateIoOps;
pub use aggregate_multi_tenancy_isolation::AggregateMultiTenancyIsolation;
pub use aggregate_num_instances::AggregateNumInstances;
pub use aggregate_type_affinity::AggregateTypeAffinity;
pub use all_hosts::AllHosts;
pub use availability_zone::AvailabilityZone;
pub use compute::Compute;
pub use compute_capabilities::ComputeCapabilities;
pub use different_host::DifferentHost;
pub use image_properties::ImageProperties;
pub use io_ops::IoOps;
pub use isolated_hosts::IsolatedHosts;
pub use json::Json;
pub use metrics::Metrics;
pub use num_instances::NumInstances;
pub use numa_topology::NumaTopologyFits;
pub use pci_passthrough::PciPassthrough;
pub use plugins::{FilterPlugins, PreemptibleHold};
pub use same_host::SameHost;
pub use server_group_affinity::ServerGroupAffinity;
pub use server_group_anti_affinity::ServerGroupAntiAffinity;
pub use simple_cidr_affinity::SimpleCidrAffinity;

pub use registry::{all, by_name};

use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// What every filter may know besides host and request.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Options, read and checked.
    pub options: &'a crate::model::Options,
    /// Microseconds since 1970, UTC.
    pub now: i64,
}

/// One filter. It judges one host; some narrow the host's allocation candidates and set limits.
pub trait Filter: Sync {
    /// Nova's class name.
    fn name(&self) -> &'static str;

    /// True if it runs for the first instance of a request only (`run_filter_once_per_request`).
    fn once_per_request(&self) -> bool {
        false
    }

    /// True if it runs for a rebuild (`RUN_ON_REBUILD`).
    fn on_rebuild(&self) -> bool {
        false
    }

    /// Whether it can start at all with these options.
    ///
    /// # Errors
    /// What its constructor raises.
    fn starts(&self, _options: &crate::model::Options) -> Result<(), NovaException> {
        Ok(())
    }

    /// Whether the host passes. Called for a rebuild only if [`Self::on_rebuild`], and not if
    /// [`Self::narrows`].
    ///
    /// # Errors
    /// What Nova raises there.
    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException>;

    /// True if it changes hosts for this request: their allocation candidates, their limits. Then
    /// [`Self::narrow`] is called.
    fn narrows(&self, _spec: &RequestSpec) -> bool {
        false
    }

    /// Whether the host passes, and with what.
    ///
    /// # Errors
    /// What Nova raises there.
    fn narrow(
        &self,
        host: &mut HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        self.passes(host, spec, context)
    }
}
