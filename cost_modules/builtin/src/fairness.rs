//! Partial hours, and more for each further victim of the same project: the loss is spread over
//! projects.
//!
//! - Cost of one victim: as [`partial_hour`](crate::partial_hour), `age mod period`, in seconds.
//! - Surcharge of a set: the *n*-th victim that one decision takes of a project costs `(n − 1) ×
//!   fairness_seconds` more. With the default of 600 four victims of one project cost 0 + 600 +
//!   1200 + 1800 seconds more than one each of four projects.
//! - Chooses: instances that have just been paid for, unless that would hit one project several
//!   times and others cost little more. Two victims of one project are preferred to one each of two
//!   as long as that saves more than `fairness_seconds`.
//! - Options: `period_seconds`, default 3600; `fairness_seconds`, default 600.
//! - What a project has lost in earlier decisions plays no role; disruption budgets limit that.
//!
//! Source: our own; a convex charge by project, the price form of max-min fairness.

use crate::columns::{map, used_of_period};
use ebbtide_cost_api::{CostError, CostForm, CostModule, MAX_COST, SetCost, VictimBatch};

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub struct Fairness {
    period_seconds: u32,
    fairness_seconds: f64,
}

impl Fairness {
    /// With the billing period and the surcharge in seconds, which
    /// [`CostModuleOptions`](crate::CostModuleOptions) has checked.
    pub(crate) fn new(period_seconds: u32, fairness_seconds: u32) -> Self {
        Self {
            period_seconds,
            fairness_seconds: f64::from(fairness_seconds),
        }
    }
}

impl CostModule for Fairness {
    fn name(&self) -> &str {
        "fairness"
    }

    fn unit(&self) -> &str {
        "seconds of the started billing period, and of surcharge for further victims of a project"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        map(victims, "age_seconds", victims.age_seconds, out, |age| {
            used_of_period(age, f64::from(self.period_seconds))
        })
    }

    fn form(&self) -> CostForm {
        CostForm::UsedOfPeriod {
            period_seconds: self.period_seconds,
        }
    }

    fn set_cost(&self) -> SetCost {
        SetCost::PerProject
    }

    fn nth_of_a_project(&self, n: u32) -> f64 {
        (f64::from(n.saturating_sub(1)) * self.fairness_seconds).min(MAX_COST)
    }
}
