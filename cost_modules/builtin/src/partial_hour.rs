//! The part of the started billing period that the provider cannot charge for. **The default**, and
//! the paper's cost.
//!
//! - Cost: `age mod period`, in seconds. An instance that is evicted 11 minutes into its second
//!   hour costs 660; one of exactly one hour costs 0.
//! - Chooses: instances that have just been paid for. Ages beyond the period play no role.
//! - Option: `period_seconds`, the billing period, default 3600.
//! - Sums: two victims of 10 minutes each are as dear as one of 20.
//!
//! Source: López García et al. 2019, section 4.4.2. The paper's text also speaks of the time
//! *until* the next complete period; that reading gives other victims in each of its four tables,
//! the used-up part gives exactly the marked ones.

use crate::columns::{map, used_of_period};
use ebbtide_cost_api::{CostError, CostForm, CostModule, VictimBatch};

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub struct PartialHour {
    period_seconds: u32,
}

impl PartialHour {
    /// With the billing period in seconds, which [`CostModuleOptions`](crate::CostModuleOptions)
    /// has checked.
    pub(crate) fn new(period_seconds: u32) -> Self {
        Self { period_seconds }
    }
}

impl CostModule for PartialHour {
    fn name(&self) -> &str {
        "partial_hour"
    }

    fn unit(&self) -> &str {
        "seconds of the started billing period"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        let period = f64::from(self.period_seconds);
        map(victims, "age_seconds", victims.age_seconds, out, |age| {
            used_of_period(age, period)
        })
    }

    fn form(&self) -> CostForm {
        CostForm::UsedOfPeriod {
            period_seconds: self.period_seconds,
        }
    }
}
