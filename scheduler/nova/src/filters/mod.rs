//! Nova's 22 filters, one a file, and their registry.

mod candidates;
mod numa_topology;
mod pci_passthrough;
mod registry;

pub use numa_topology::NumaTopologyFits;
pub use pci_passthrough::PciPassthrough;
pub use registry::{all, by_name};

use crate::fault::Fault;
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

    /// Whether the host passes. Called for a rebuild only if [`Self::on_rebuild`].
    ///
    /// # Errors
    /// What Nova raises there.
    fn passes(
        &self,
        host: &mut HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, Fault>;
}
