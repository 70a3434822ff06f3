//! Keeps away from hosts on which builds fail.
//!
//! - Raw number: builds that failed there since the last that went well.
//! - Normalised: the smallest number becomes 0, the largest 1; hosts that are all alike get 0.
//! - Multiplier: **minus** `build_failure_weight_multiplier`, default 1,000,000.0, so that the
//!   worst host loses to all others whatever it offers; aggregates may set the same key in their
//!   metadata, and theirs is turned round in the same way.
//! - To switch it off, make the multiplier 0.
//!
//! Source: Nova, `nova/scheduler/weights/compute.py` (`BuildFailureWeigher`, no bounds).

use crate::columns;
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildFailure;

impl Weigher for BuildFailure {
    fn name(&self) -> &str {
        "build_failure"
    }

    fn multiplier_key(&self) -> &str {
        "build_failure_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1_000_000.0
    }

    fn multiplier_sign(&self) -> f64 {
        -1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FailedBuilds]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        columns::map(hosts, Column::FailedBuilds, out, |failed| failed)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::FailedBuilds)
    }
}
