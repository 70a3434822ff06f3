//! Keeps hosts with PCI devices free for who needs them, and fills those that have few left first.
//!
//! - Raw number: 100 less the free devices in all pools, of which at most 99 count.
//! - Normalised: the host with most free devices becomes 0, the one with fewest 1; hosts that are
//!   all alike get 0.
//! - Multiplier: `pci_weight_multiplier`, default 1.0; aggregates may set the same key in their
//!   metadata. Nova refuses a negative one in its configuration, but takes it from an aggregate.
//!
//! Source: Nova, `nova/scheduler/weights/pci.py` (`PCIWeigher`, no bounds). It asks nothing about
//! the request.

use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError};

/// Beyond that there is no shortage, and more devices make no difference.
const MAX_DEVICES: f64 = 100.0;

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pci;

impl Weigher for Pci {
    fn name(&self) -> &str {
        "pci"
    }

    fn multiplier_key(&self) -> &str {
        "pci_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreePciDevices]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        let free = hosts.column(Column::FreePciDevices)?;
        hosts.check_room(out)?;
        for (out, free) in out.iter_mut().zip(free) {
            *out = MAX_DEVICES - free.min(MAX_DEVICES - 1.0);
        }
        Ok(())
    }
}
