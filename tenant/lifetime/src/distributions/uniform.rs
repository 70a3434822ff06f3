//! The uniform model: what the paper compares with.

use crate::Lifetime;
use crate::error::{LifetimeError, positive};

const NAME: &str = "uniform";

/// `F(t) = t / L` up to the maximum `L` (the paper's text prints "24 - t" for it).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uniform {
    end: f64,
}

impl Uniform {
    /// A model from the maximum lifetime, hours.
    ///
    /// # Errors
    /// [`LifetimeError::Parameter`] unless it is finite and above zero.
    pub fn new(maximum: f64) -> Result<Self, LifetimeError> {
        Ok(Self {
            end: positive(NAME, "maximum", maximum)?,
        })
    }
}

impl Lifetime for Uniform {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn maximum(&self) -> f64 {
        self.end
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        (t / self.end).clamp(0.0, 1.0)
    }

    fn density(&self, t: f64) -> f64 {
        if (0.0..self.end).contains(&t) {
            1.0 / self.end
        } else {
            0.0
        }
    }

    fn cdf_integral(&self, from: f64, to: f64) -> f64 {
        let inside = |t: f64| {
            let t = t.clamp(0.0, self.end);
            t * t / (2.0 * self.end)
        };
        inside(to) - inside(from) + (to - self.end).max(0.0) - (from - self.end).max(0.0)
    }

    fn quantile(&self, p: f64) -> f64 {
        (p * self.end).clamp(0.0, self.end)
    }
}
