//! Fewer victims first, then the oldest.
//!
//! - Cost: `horizon − min(age, horizon)`, in seconds: what is missing until the instance has had
//!   its full time.
//! - Chooses: of sets with the same number of victims, the one whose ages add up to most. A smaller
//!   set beats a larger one as long as the ages of the larger one add up to less than the horizon:
//!   k victims cost at most k × horizon, and k + 1 victims cost (k + 1) × horizon less their ages.
//!   So with the default, many instances of some weeks never replace one young one.
//! - Why a horizon: a cost must not be negative, and without the constant part the "cheapest" way
//!   to be rid of old instances would be to evict more of them.
//! - Instances older than the horizon cost 0. They are all alike to this module, and any number of
//!   them is cheaper than one younger; make the horizon longer than your instances live.
//! - Option: `horizon_seconds`, default 31,536,000 (365 days).
//!
//! Source: our own; the fair-share reading of "first come, first to go".

use crate::columns::map;
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub struct OldestFirst {
    horizon_seconds: f64,
}

impl OldestFirst {
    /// With the horizon in seconds, which [`CostModuleOptions`](crate::CostModuleOptions) has
    /// checked.
    pub(crate) fn new(horizon_seconds: u32) -> Self {
        Self {
            horizon_seconds: f64::from(horizon_seconds),
        }
    }
}

impl CostModule for OldestFirst {
    fn name(&self) -> &str {
        "oldest_first"
    }

    fn unit(&self) -> &str {
        "seconds until the horizon"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        map(victims, "age_seconds", victims.age_seconds, out, |age| {
            self.horizon_seconds - age.clamp(0.0, self.horizon_seconds)
        })
    }
}
