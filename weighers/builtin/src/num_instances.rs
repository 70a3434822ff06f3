//! Packs or spreads by the number of instances, whatever their size. Off by default.
//!
//! - Raw number: instances on the host, leaving ones and claims included.
//! - Normalised: the smallest number becomes 0, the largest 1; hosts that are all alike get 0.
//! - Multiplier: `num_instances_weight_multiplier`, default 0.0 (off); aggregates may set the same
//!   key in their metadata.
//! - Positive packs (many instances are better), negative spreads.
//!
//! Source: Nova, `nova/scheduler/weights/num_instances.py` (`NumInstancesWeigher`, no bounds).

use crate::columns;
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumInstances;

impl Weigher for NumInstances {
    fn name(&self) -> &str {
        "num_instances"
    }

    fn multiplier_key(&self) -> &str {
        "num_instances_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        0.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumInstances]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        columns::map(hosts, Column::NumInstances, out, |instances| instances)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::NumInstances)
    }
}
