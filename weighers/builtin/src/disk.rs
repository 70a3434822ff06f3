//! Spreads by free local disk: hosts with more of it are better.
//!
//! - Raw number: free disk in MiB before the request, no allocation ratio in it. Over-committed
//!   hosts count as having none.
//! - Normalised: free disk over the largest free disk, so hosts that are all alike get 1.
//! - Multiplier: `disk_weight_multiplier`, default 1.0; aggregates may set the same key in their
//!   metadata.
//! - To pack instead of spread, make the multiplier negative.
//!
//! Source: Nova, `nova/scheduler/weights/disk.py` (`DiskWeigher`, `minval = 0`).

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Weigher for Disk {
    fn name(&self) -> &str {
        "disk"
    }

    fn multiplier_key(&self) -> &str {
        "disk_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeDiskMb]
    }

    fn bounds(&self) -> Bounds {
        columns::FROM_ZERO
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        columns::map(hosts, Column::FreeDiskMb, out, |free| free)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::FreeDiskMb)
    }
}
