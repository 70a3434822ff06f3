//! The memoryless model: the classic assumption about failures.

use crate::Lifetime;
use crate::error::{LifetimeError, maximum_of, positive};

const NAME: &str = "exponential";

/// `F(t) = 1 - exp(-λ t)`, with a maximum lifetime or without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    rate: f64,
    end: f64,
}

impl Exponential {
    /// A model from the rate λ, per hour, and the maximum lifetime, hours (infinite for none).
    ///
    /// # Errors
    /// [`LifetimeError::Parameter`] unless both are above zero and the rate is finite.
    pub fn new(rate: f64, maximum: f64) -> Result<Self, LifetimeError> {
        Ok(Self {
            rate: positive(NAME, "lambda", rate)?,
            end: maximum_of(NAME, maximum)?,
        })
    }
}

impl Lifetime for Exponential {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![("lambda", self.rate)]
    }

    fn maximum(&self) -> f64 {
        self.end
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        -(-self.rate * t.max(0.0)).exp_m1()
    }

    fn density(&self, t: f64) -> f64 {
        if (0.0..self.end).contains(&t) {
            self.rate * (-self.rate * t).exp()
        } else {
            0.0
        }
    }

    fn cdf_integral(&self, from: f64, to: f64) -> f64 {
        let inside = |t: f64| {
            let t = t.clamp(0.0, self.end);
            t + (-self.rate * t).exp_m1() / self.rate
        };
        inside(to) - inside(from) + (to - self.end).max(0.0) - (from - self.end).max(0.0)
    }

    fn quantile(&self, p: f64) -> f64 {
        (-(-p).ln_1p() / self.rate).max(0.0).min(self.end)
    }
}
