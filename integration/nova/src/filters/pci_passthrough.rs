//! PciPassthroughFilter: the host has the PCI devices that the request needs, all at once, from the
//! providers that Placement chose. Candidates whose providers cannot give them are dropped; without
//! any left the host fails.
//!
//! Source: `nova/scheduler/filters/pci_passthrough_filter.py`. No options of its own;
//! `[filter_scheduler] pci_in_placement` shows in the candidates' mappings.

use super::candidates::keep_good;
use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};
use crate::pci::{PciStats, ProviderMapping};

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct PciPassthrough;

impl Filter for PciPassthrough {
    fn name(&self) -> &'static str {
        "PciPassthroughFilter"
    }

    /// Without devices it has nothing to say.
    fn passes(
        &self,
        _: &HostState,
        _: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        Ok(true)
    }

    fn narrows(&self, spec: &RequestSpec) -> bool {
        spec.pci_requests
            .as_ref()
            .is_some_and(|requests| !requests.is_empty())
    }

    fn narrow(
        &self,
        host: &mut HostState,
        spec: &RequestSpec,
        _context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let requests = spec.pci_requests.as_deref().unwrap_or_default();
        keep_good(host, |host, candidate| match PciStats::of(host) {
            Some(stats) => stats.supports(
                requests,
                ProviderMapping::Candidate(&candidate.mappings),
                None,
            ),
            // The node was never updated.
            None => Ok(false),
        })
    }
}
