//! Spreads by free virtual CPUs: hosts with more of them are better.
//!
//! - Raw number: virtual CPUs × allocation ratio − used ones. Over-committed hosts count as having
//!   none.
//! - Normalised: free CPUs over the largest number of free ones, so hosts that are all alike get 1.
//! - Multiplier: `cpu_weight_multiplier`, default 1.0; aggregates may set the same key in their
//!   metadata.
//! - To pack instead of spread, make the multiplier negative.
//!
//! Source: Nova, `nova/scheduler/weights/cpu.py` (`CPUWeigher`, `minval = 0`); the one weigher that
//! knows an allocation ratio.

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu;

impl Weigher for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn multiplier_key(&self) -> &str {
        "cpu_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeVcpus]
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
        columns::map(hosts, Column::FreeVcpus, out, |free| free)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::FreeVcpus)
    }
}
