//! Avoids preemption while any host has enough free capacity: a host that takes the request as it
//! is beats one where instances must leave.
//!
//! - Raw number: −1 if the request fits the host only when instances leave, else 0.
//! - Normalised: 1 for a host with enough free capacity if another has not enough; 0 for all if all
//!   are alike, so a cloud with capacity everywhere (or nowhere) ranks as without this weigher.
//! - Multiplier: `preemption_needed_weight_multiplier`, default 10,000; aggregates may set the same
//!   key in their metadata.
//! - Why 10,000: it must exceed all that the other weighers can take from a host with free
//!   capacity. That is at most 1,000 each for `eviction_cost`, `partial_hour_sum` and
//!   `preemptible_count`, and 9 for Nova's ordinary ones at their defaults: 3,009. It stays below
//!   Nova's 1,000,000 for hosts whose builds fail. Raise it if you raise those.
//! - Negative prefers hosts where instances must leave: of use only for keeping large hosts whole.
//!
//! Needed under the ranking policy `nova` only; `tiered` puts hosts with enough free capacity first
//! by construction.
//!
//! Source: López García et al. 2019, Algorithm 3 (overcommit rank); the scale ends at 0 as in the
//! authors' prototype opie.

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// Above the sum of everything that could speak against a host with room; see the module's text.
pub const DEFAULT_MULTIPLIER: f64 = 10_000.0;

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct PreemptionNeeded;

impl Weigher for PreemptionNeeded {
    fn name(&self) -> &str {
        "preemption_needed"
    }

    fn multiplier_key(&self) -> &str {
        "preemption_needed_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        DEFAULT_MULTIPLIER
    }

    fn needs(&self) -> &[Column] {
        &[Column::PreemptionNeeded]
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
        columns::map(hosts, Column::PreemptionNeeded, out, columns::negated)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Negated(Column::PreemptionNeeded)
    }
}
