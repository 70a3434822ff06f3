//! Prefers hosts where an eviction costs less: a host whose cheapest sufficient victim set is
//! cheaper is better.
//!
//! - Raw number: minus the cost of the cheapest set of victims that frees enough capacity, in the
//!   unit of the configured cost module; 0 if no instance has to leave.
//! - Normalised: `1 − cost / largest cost`. No cost is always 1; if all hosts cost nothing, all get
//!   0.
//! - Multiplier: `eviction_cost_weight_multiplier`, default 1,000; aggregates may set the same key
//!   in their metadata.
//! - Why 1,000: a cost difference of 1 % of the largest cost gives 10, more than Nova's ordinary
//!   weighers at their defaults can give together (9). Smaller differences may lose to free memory;
//!   if the minimum must be exact, use the ranking policy `tiered`.
//! - Negative would prefer the dearest victims: of no use.
//!
//! A cost of 0 may still mean victims (an instance that just completed its hour is free);
//! `preemption_needed` tells them apart.
//!
//! Source: López García et al. 2019, section 4.4.2: the rank of a host is the cost of its cheapest
//! sufficient set. This reading gives the victims of all four of the paper's tables;
//! `partial_hour_sum` is the other one.

use crate::columns;
use ebbtide_weigher_api::{
    Bounds, Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// A hundredth of it exceeds what Nova's ordinary weighers give together; see the module's text.
pub const DEFAULT_MULTIPLIER: f64 = 1_000.0;

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvictionCost;

impl Weigher for EvictionCost {
    fn name(&self) -> &str {
        "eviction_cost"
    }

    fn multiplier_key(&self) -> &str {
        "eviction_cost_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        DEFAULT_MULTIPLIER
    }

    fn needs(&self) -> &[Column] {
        &[Column::EvictionCost]
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
        columns::map(hosts, Column::EvictionCost, out, columns::negated)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Negated(Column::EvictionCost)
    }
}
