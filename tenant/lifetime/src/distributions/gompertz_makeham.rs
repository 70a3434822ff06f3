//! The model of Gompertz and Makeham: a constant hazard and one that grows exponentially with age.

use crate::Lifetime;
use crate::error::{LifetimeError, maximum_of, positive};

const NAME: &str = "gompertz-makeham";

/// `F(t) = 1 - exp(-λ t - (α/β)(exp(β t) - 1))`: hazard `λ + α exp(β t)`, with a maximum lifetime
/// or without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GompertzMakeham {
    lambda: f64,
    alpha: f64,
    beta: f64,
    end: f64,
}

impl GompertzMakeham {
    /// A model from λ and α, per hour, β, per hour, and the maximum lifetime, hours (infinite for
    /// none). λ may be zero.
    ///
    /// # Errors
    /// [`LifetimeError::Parameter`] for a negative λ and anything else that is not above zero and
    /// finite.
    pub fn new(lambda: f64, alpha: f64, beta: f64, maximum: f64) -> Result<Self, LifetimeError> {
        if !(lambda.is_finite() && lambda >= 0.0) {
            return Err(LifetimeError::Parameter {
                model: NAME,
                name: "lambda",
                value: lambda,
                allowed: "a finite number, not negative",
            });
        }
        Ok(Self {
            lambda,
            alpha: positive(NAME, "alpha", alpha)?,
            beta: positive(NAME, "beta", beta)?,
            end: maximum_of(NAME, maximum)?,
        })
    }

    fn cumulative_hazard(&self, t: f64) -> f64 {
        self.lambda * t + self.alpha / self.beta * (self.beta * t).exp_m1()
    }
}

impl Lifetime for GompertzMakeham {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("lambda", self.lambda),
            ("alpha", self.alpha),
            ("beta", self.beta),
        ]
    }

    fn maximum(&self) -> f64 {
        self.end
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        -(-self.cumulative_hazard(t.max(0.0))).exp_m1()
    }

    fn density(&self, t: f64) -> f64 {
        if !(0.0..self.end).contains(&t) {
            return 0.0;
        }
        let survival = (-self.cumulative_hazard(t)).exp();
        // Where the survival is zero the hazard may be infinite, and infinity times zero is not a
        // number.
        if survival > 0.0 {
            (self.lambda + self.alpha * (self.beta * t).exp()) * survival
        } else {
            0.0
        }
    }
}
