//! Spreads by free memory: hosts with more free memory are better.
//!
//! - Raw number: free memory in MiB before the request, no allocation ratio in it. Over-committed
//!   hosts count as having none.
//! - Normalised: free memory over the largest free memory, so hosts that are all alike get 1.
//! - Multiplier: `ram_weight_multiplier`, default 1.0; aggregates may set the same key in their
//!   metadata.
//! - To pack instead of spread, make the multiplier negative.
//!
//! Source: Nova, `nova/scheduler/weights/ram.py` (`RAMWeigher`, `minval = 0`).

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ram;

impl Weigher for Ram {
    fn name(&self) -> &str {
        "ram"
    }

    fn multiplier_key(&self) -> &str {
        "ram_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeRamMb]
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
        columns::map(hosts, Column::FreeRamMb, out, |free| free)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::FreeRamMb)
    }
}
