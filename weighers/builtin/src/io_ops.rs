//! Keeps away from busy hosts: fewer instances that are being built or are leaving are better.
//!
//! - Raw number: how many such instances the host has. It is a burden, hence the negative
//!   multiplier.
//! - Normalised: the number over the largest number. Hosts that are all equally busy all get 1,
//!   that is −1 after the multiplier.
//! - Multiplier: `io_ops_weight_multiplier`, default −1.0; aggregates may set the same key in their
//!   metadata.
//! - To gather I/O work on busy hosts, make the multiplier positive.
//!
//! Source: Nova, `nova/scheduler/weights/io_ops.py` (`IoOpsWeigher`, `minval = 0`).

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct IoOps;

impl Weigher for IoOps {
    fn name(&self) -> &str {
        "io_ops"
    }

    fn multiplier_key(&self) -> &str {
        "io_ops_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        -1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumIoOps]
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
        columns::map(hosts, Column::NumIoOps, out, |operations| operations)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::NumIoOps)
    }
}
