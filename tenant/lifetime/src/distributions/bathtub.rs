//! The bathtub model of Kadupitiya et al. (HPDC 2020), equations 1 to 3.

use crate::Lifetime;
use crate::distribution::bisect;
use crate::error::{LifetimeError, positive};

const NAME: &str = "bathtub";

/// `F(t) = A (1 - exp(-t/τ1) + exp((t-b)/τ2))` up to the maximum lifetime `L`: many instances end
/// early (rate 1/τ1), then few for hours, then many near `b` (rate 1/τ2). What is left at `L` ends
/// there, an atom of `1 - F(L)` that the paper leaves out of equation 3.
///
/// Where equation 1 passes 1 before `L`, the maximum is where it does. `F(0) = A exp(-b/τ2)` is
/// next to nothing with the paper's values; a fit with a large τ2 has instances that never come up,
/// and they stay in the model as ends at age 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bathtub {
    a: f64,
    tau1: f64,
    tau2: f64,
    b: f64,
    end: f64,
}

impl Bathtub {
    /// A model from `a` (a share) and `tau1`, `tau2`, `b` and `maximum` in hours; the paper has A
    /// of 0.4 to 0.5, τ1 of 0.5 to 1.5 (its text prints "[0.5, 1, 5]"), τ2 of about 0.8, b and L of
    /// about 24.
    ///
    /// # Errors
    /// [`LifetimeError::Parameter`] unless all are finite and above zero and `F(0)` is below 1.
    pub fn new(a: f64, tau1: f64, tau2: f64, b: f64, maximum: f64) -> Result<Self, LifetimeError> {
        let mut model = Self {
            a: positive(NAME, "A", a)?,
            tau1: positive(NAME, "tau1", tau1)?,
            tau2: positive(NAME, "tau2", tau2)?,
            b: positive(NAME, "b", b)?,
            end: positive(NAME, "maximum", maximum)?,
        };
        if model.equation1(0.0) >= 1.0 {
            return Err(LifetimeError::Parameter {
                model: NAME,
                name: "A",
                value: a,
                allowed: "so small that F(0) = A exp(-b/tau2) is below 1",
            });
        }
        if model.equation1(maximum) > 1.0 {
            model.end = bisect(|t| model.equation1(t), 1.0, maximum);
        }
        Ok(model)
    }

    /// Equation 1 as printed, at any time, hours.
    #[must_use]
    pub fn equation1(&self, t: f64) -> f64 {
        self.a * (1.0 - (-t / self.tau1).exp() + ((t - self.b) / self.tau2).exp())
    }

    /// Equation 2: the derivative of equation 1, per hour.
    #[must_use]
    pub fn equation2(&self, t: f64) -> f64 {
        self.a * ((-t / self.tau1).exp() / self.tau1 + ((t - self.b) / self.tau2).exp() / self.tau2)
    }

    /// The antiderivative of equation 1.
    fn antiderivative(&self, t: f64) -> f64 {
        self.a
            * (t + self.tau1 * (-t / self.tau1).exp()
                + self.tau2 * ((t - self.b) / self.tau2).exp())
    }

    /// The share that ends early, the paper's A.
    #[must_use]
    pub fn a(&self) -> f64 {
        self.a
    }

    /// Hours of the early phase, the paper's τ1.
    #[must_use]
    pub fn tau1(&self) -> f64 {
        self.tau1
    }

    /// Hours of the final phase, the paper's τ2.
    #[must_use]
    pub fn tau2(&self) -> f64 {
        self.tau2
    }

    /// When the final phase is on its height, hours; the paper's b.
    #[must_use]
    pub fn b(&self) -> f64 {
        self.b
    }
}

impl Lifetime for Bathtub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("A", self.a),
            ("tau1", self.tau1),
            ("tau2", self.tau2),
            ("b", self.b),
        ]
    }

    fn maximum(&self) -> f64 {
        self.end
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        if t < 0.0 {
            return 0.0;
        }
        self.equation1(t.min(self.end)).min(1.0)
    }

    fn density(&self, t: f64) -> f64 {
        if (0.0..self.end).contains(&t) {
            self.equation2(t)
        } else {
            0.0
        }
    }

    fn cdf_integral(&self, from: f64, to: f64) -> f64 {
        let inside = |t: f64| self.antiderivative(t.clamp(0.0, self.end));
        inside(to) - inside(from) + (to - self.end).max(0.0) - (from - self.end).max(0.0)
    }
}
