//! The youngest first: as little finished work as possible is lost.
//!
//! - Cost: the age in seconds, at most [`MAX_COST`](ebbtide_cost_api::MAX_COST) (31 years).
//! - Chooses: the set whose instances have together run for the shortest time. Several young
//!   victims may be cheaper than one old one; that is meant, the sum is the work that may have to
//!   be done again.
//!
//! Source: our own; the work that tenants without checkpoints lose.

use crate::columns::map;
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewestFirst;

impl CostModule for NewestFirst {
    fn name(&self) -> &str {
        "newest_first"
    }

    fn unit(&self) -> &str {
        "seconds of running time"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        map(victims, "age_seconds", victims.age_seconds, out, |age| age)
    }
}
