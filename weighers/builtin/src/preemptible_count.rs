//! Prefers hosts with fewer preemptible instances, whether or not any has to leave. For comparison
//! with opie; not in use by default.
//!
//! - Raw number: minus the preemptible instances on the host that are not leaving.
//! - Normalised: `1 − number / largest number`. A host without any is always 1; where no host has
//!   any, all get 0.
//! - Multiplier: `preemptible_count_weight_multiplier`, default 1,000 (opie's); aggregates may set
//!   the same key in their metadata.
//! - Negative gathers normal instances where preemptible ones are.
//!
//! Source: opie (the prototype of López García et al.), `PreemptibleCountWeigher`: `maxval = 0`,
//! multiplier 1,000.

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// The default of opie's own option.
pub const DEFAULT_MULTIPLIER: f64 = 1_000.0;

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct PreemptibleCount;

impl Weigher for PreemptibleCount {
    fn name(&self) -> &str {
        "preemptible_count"
    }

    fn multiplier_key(&self) -> &str {
        "preemptible_count_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        DEFAULT_MULTIPLIER
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumPreemptible]
    }

    fn bounds(&self) -> Bounds {
        columns::UP_TO_ZERO
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        columns::map(hosts, Column::NumPreemptible, out, columns::negated)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Negated(Column::NumPreemptible)
    }
}
