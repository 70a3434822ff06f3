//! Weibull's model: a hazard that falls or rises as a power of the age.

use crate::Lifetime;
use crate::error::{LifetimeError, maximum_of, positive};

const NAME: &str = "weibull";

/// `F(t) = 1 - exp(-(λ t)^k)`, with a maximum lifetime or without. The hazard falls with age for `k
/// < 1`, rises for `k > 1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weibull {
    rate: f64,
    shape: f64,
    end: f64,
}

impl Weibull {
    /// A model from the rate λ, per hour, the shape k, and the maximum lifetime, hours (infinite
    /// for none).
    ///
    /// # Errors
    /// [`LifetimeError::Parameter`] unless all are above zero and rate and shape are finite.
    pub fn new(rate: f64, shape: f64, maximum: f64) -> Result<Self, LifetimeError> {
        Ok(Self {
            rate: positive(NAME, "lambda", rate)?,
            shape: positive(NAME, "k", shape)?,
            end: maximum_of(NAME, maximum)?,
        })
    }
}

impl Lifetime for Weibull {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![("lambda", self.rate), ("k", self.shape)]
    }

    fn maximum(&self) -> f64 {
        self.end
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        -(-(self.rate * t.max(0.0)).powf(self.shape)).exp_m1()
    }

    fn density(&self, t: f64) -> f64 {
        if !(0.0..self.end).contains(&t) {
            return 0.0;
        }
        let x = self.rate * t;
        self.shape * self.rate * x.powf(self.shape - 1.0) * (-x.powf(self.shape)).exp()
    }

    fn quantile(&self, p: f64) -> f64 {
        ((-(-p).ln_1p()).powf(1.0 / self.shape) / self.rate)
            .max(0.0)
            .min(self.end)
    }
}
