//! The instances whose owners pay least leave first.
//!
//! - Cost: the most that the owner pays for an hour (`ebbtide server create --max-price`), in the
//!   operator's currency unit; without such a limit the maximum price of the market, and without a
//!   market the flavor's price.
//! - Chooses: the set of victims with the smallest sum of bids, so few and low ones.
//!
//! Source: the auction of spot instances, in which the lowest bids are ended first when capacity is
//! wanted back (Khatua & Mukherjee, section I); EC2 did so until 2017.

use crate::columns::map;
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct LowestBid;

impl CostModule for LowestBid {
    fn name(&self) -> &str {
        "lowest_bid"
    }

    fn unit(&self) -> &str {
        "currency units an hour"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        map(victims, "max_price", victims.max_price, out, |bid| bid)
    }
}
