//! The money that the provider has earned in the current billing period and may not charge.
//!
//! - Cost: `price per hour × (age mod period) / 3600`, in the operator's currency unit.
//! - Chooses: cheap instances, and those whose billing period has just begun. As `partial_hour`
//!   with the price as weight: with one price for all both choose the same.
//! - Option: `period_seconds`, the billing period, default 3600. The price is always that of an
//!   hour (extra spec `ebbtide:price_per_hour`), so a day's period can cost up to 24 times the
//!   price.
//! - An instance without a price costs 0. If no flavor has one, every set costs 0 and the engine's
//!   rule for ties decides: set prices before choosing this module.
//!
//! Why not the income that the victim would still bring: it is unknown how long the victim would
//! have stayed, and the provider resells its capacity at once, to the preemptor. The certain loss
//! is what has been delivered and will not be paid, because a period that the *provider* breaks off
//! is free for the tenant. If every second is billed, set the period to 1: then next to nothing is
//! lost.
//!
//! Source: our own, from the billing rule of spot instances as Khatua & Mukherjee state it (after a
//! provider's kill the last partial hour is free).

use crate::columns::{check, map, used_of_period};
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};

/// Prices are for an hour.
const SECONDS_PER_HOUR: f64 = 3600.0;

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub struct Revenue {
    period_seconds: f64,
}

impl Revenue {
    /// With the billing period in seconds, which [`CostModuleOptions`](crate::CostModuleOptions)
    /// has checked.
    pub(crate) fn new(period_seconds: u32) -> Self {
        Self {
            period_seconds: f64::from(period_seconds),
        }
    }
}

impl CostModule for Revenue {
    fn name(&self) -> &str {
        "revenue"
    }

    fn unit(&self) -> &str {
        "currency units"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        check(victims, "price_per_hour", victims.price_per_hour.len())?;
        map(victims, "age_seconds", victims.age_seconds, out, |age| {
            used_of_period(age, self.period_seconds)
        })?;
        for (out, &price) in out.iter_mut().zip(victims.price_per_hour) {
            *out = (price * *out / SECONDS_PER_HOUR).clamp(0.0, ebbtide_cost_api::MAX_COST);
        }
        Ok(())
    }
}
