//! The formulas that can be fitted.

use super::search::Bound;
use crate::Lifetime;
use crate::distributions::{Bathtub, Exponential, GompertzMakeham, Uniform, Weibull};
use crate::error::LifetimeError;

/// A formula with parameters to be found.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The paper's equation 1: A, τ1, τ2, b.
    Bathtub,
    /// Memoryless: λ.
    Exponential,
    /// λ, k.
    Weibull,
    GompertzMakeham,
    /// No parameter but the maximum lifetime.
    Uniform,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Bathtub,
        Self::Exponential,
        Self::Weibull,
        Self::GompertzMakeham,
        Self::Uniform,
    ];

    /// Its name, as in configuration and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bathtub => "bathtub",
            Self::Exponential => "exponential",
            Self::Weibull => "weibull",
            Self::GompertzMakeham => "gompertz-makeham",
            Self::Uniform => "uniform",
        }
    }

    /// The names of its parameters, as those of [`Lifetime::parameters`].
    #[must_use]
    pub fn parameter_names(self) -> &'static [&'static str] {
        match self {
            Self::Bathtub => &["A", "tau1", "tau2", "b"],
            Self::Exponential => &["lambda"],
            Self::Weibull => &["lambda", "k"],
            Self::GompertzMakeham => &["lambda", "alpha", "beta"],
            Self::Uniform => &[],
        }
    }

    /// Bounds of its parameters, in the order of [`Lifetime::parameters`]. A bathtub's τ2 above 10
    /// h or b above 60 h cannot be told from a straight line within a day.
    pub(super) fn bounds(self) -> &'static [Bound] {
        const RATE: Bound = (1e-7, 1e3);
        match self {
            Self::Bathtub => &[(1e-3, 1.5), (1e-2, 50.0), (1e-2, 10.0), (0.1, 60.0)],
            Self::Exponential => &[RATE],
            Self::Weibull => &[RATE, (0.05, 50.0)],
            Self::GompertzMakeham => &[RATE, (1e-12, 1e2), (1e-3, 20.0)],
            Self::Uniform => &[],
        }
    }

    /// Where searches begin, first the paper's own typical values (scaled to the longest life).
    /// `mean` of the observations and `longest` in hours.
    pub(super) fn starts(self, mean: f64, longest: f64) -> Vec<Vec<f64>> {
        match self {
            Self::Bathtub => {
                let end = longest.clamp(0.2, 50.0);
                vec![
                    vec![0.45, end / 24.0, end / 30.0, end],
                    vec![0.25, end / 10.0, end / 30.0, end],
                    vec![0.6, end / 40.0, end / 12.0, end * 1.1],
                    vec![0.6, end / 24.0, (end / 3.0).min(9.0), end * 1.2],
                ]
            }
            Self::Exponential => vec![vec![1.0 / mean]],
            Self::Weibull => vec![vec![1.0 / mean, 1.0], vec![1.0 / mean, 0.5]],
            Self::GompertzMakeham => vec![
                vec![1.0 / mean, 1e-6, 0.1],
                vec![0.3 / mean, 1e-8, 0.7],
                vec![0.5 / mean, 1e-3, 0.1],
            ],
            Self::Uniform => vec![Vec::new()],
        }
    }

    /// The formula at `t`, hours, without maximum and atom: the paper's fits go on beyond the
    /// maximum.
    pub(super) fn formula(self, p: &[f64], t: f64, maximum: f64) -> f64 {
        match (self, p) {
            (Self::Bathtub, &[a, tau1, tau2, b]) => {
                a * (1.0 - (-t / tau1).exp() + ((t - b) / tau2).exp())
            }
            (Self::Exponential, &[rate]) => -(-rate * t).exp_m1(),
            (Self::Weibull, &[rate, shape]) => -(-(rate * t).powf(shape)).exp_m1(),
            (Self::GompertzMakeham, &[lambda, alpha, beta]) => {
                -(-lambda * t - alpha / beta * (beta * t).exp_m1()).exp_m1()
            }
            _ => (t / maximum).min(1.0),
        }
    }

    /// The formula's derivative at `t`, per hour.
    pub(super) fn slope(self, p: &[f64], t: f64, maximum: f64) -> f64 {
        match (self, p) {
            (Self::Bathtub, &[a, tau1, tau2, b]) => {
                a * ((-t / tau1).exp() / tau1 + ((t - b) / tau2).exp() / tau2)
            }
            (Self::Exponential, &[rate]) => rate * (-rate * t).exp(),
            (Self::Weibull, &[rate, shape]) => {
                let x = rate * t;
                shape * rate * x.powf(shape - 1.0) * (-x.powf(shape)).exp()
            }
            (Self::GompertzMakeham, &[lambda, alpha, beta]) => {
                (lambda + alpha * (beta * t).exp()) * (1.0 - self.formula(p, t, maximum))
            }
            _ => 1.0 / maximum,
        }
    }

    /// The model with these parameters.
    ///
    /// # Errors
    /// [`LifetimeError::Parameter`] if they are none of this family.
    pub fn model(self, p: &[f64], maximum: f64) -> Result<Box<dyn Lifetime>, LifetimeError> {
        Ok(match (self, p) {
            (Self::Bathtub, &[a, tau1, tau2, b]) => {
                Box::new(Bathtub::new(a, tau1, tau2, b, maximum)?)
            }
            (Self::Exponential, &[rate]) => Box::new(Exponential::new(rate, maximum)?),
            (Self::Weibull, &[rate, shape]) => Box::new(Weibull::new(rate, shape, maximum)?),
            (Self::GompertzMakeham, &[lambda, alpha, beta]) => {
                Box::new(GompertzMakeham::new(lambda, alpha, beta, maximum)?)
            }
            (Self::Uniform, &[]) => Box::new(Uniform::new(maximum)?),
            _ => {
                return Err(LifetimeError::NoFit {
                    model: self.name(),
                    problem: format!(
                        "it has {} parameters, {} were given",
                        self.bounds().len(),
                        p.len()
                    ),
                });
            }
        })
    }
}
