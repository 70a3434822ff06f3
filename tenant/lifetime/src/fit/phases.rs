//! Piecewise phases from observations: in each phase, the ends over the hours lived in it.

use crate::Lifetime;
use crate::distributions::{Phase, Phases};
use crate::error::LifetimeError;
use crate::observation::Observations;

/// Where the paper's three phases end, as shares of the maximum lifetime: 3 h, 22 h and 24 h of a
/// day (its section 3.1).
const PAPER: [f64; 3] = [3.0 / 24.0, 22.0 / 24.0, 1.0];

/// Phases with their standard errors.
#[derive(Debug, Clone, PartialEq)]
pub struct PhasesFit {
    /// The model.
    pub model: Phases,
    /// The standard error of each hazard, per hour; zero where nothing ended.
    pub standard_errors: Vec<f64>,
    /// The logarithm of the censored likelihood.
    pub log_likelihood: f64,
    /// Akaike's criterion, as that of [`super::Fit`].
    pub aic: f64,
}

/// The ends of the paper's three phases, hours; without a maximum lifetime they are scaled to the
/// longest observation and the last one never ends.
#[must_use]
pub fn default_phases(seen: &Observations) -> Vec<f64> {
    if seen.maximum().is_finite() {
        return PAPER.map(|share| share * seen.maximum()).to_vec();
    }
    let longest = seen.all().last().map_or(0.0, |one| one.hours);
    vec![PAPER[0] * longest, PAPER[1] * longest, f64::INFINITY]
}

/// Fits hazards that are constant in phases that end at `ends`, hours, by maximum likelihood with
/// stopped instances as right-censored: the number of ends over the time lived, in each phase. Ends
/// at the maximum lifetime are its atom, no hazard.
///
/// # Errors
/// [`LifetimeError::TooFew`] with fewer than two different ended lifetimes;
/// [`LifetimeError::Points`] for ends that do not rise, or a last phase without an end in which
/// nothing ended.
pub fn phases(ends: &[f64], seen: &Observations) -> Result<PhasesFit, LifetimeError> {
    seen.need(2)?;
    let mut from = 0.0;
    let mut parts = Vec::with_capacity(ends.len());
    let mut standard_errors = Vec::with_capacity(ends.len());
    let mut log_likelihood = 0.0;
    for &until in ends {
        let (mut ended, mut lived) = (0.0f64, 0.0);
        for one in seen.all() {
            let t = one.hours.min(seen.maximum());
            if t > from {
                lived += t.min(until) - from;
            }
            let here = t >= from && t < until;
            if one.ended && here && one.hours < seen.maximum() {
                ended += 1.0;
            }
        }
        let hazard = if lived > 0.0 { ended / lived } else { 0.0 };
        if ended > 0.0 && hazard > 0.0 {
            log_likelihood += ended * hazard.ln() - hazard * lived;
        }
        standard_errors.push(if lived > 0.0 {
            ended.sqrt() / lived
        } else {
            0.0
        });
        parts.push(Phase { until, hazard });
        from = until;
    }
    let count = parts.len() as f64;
    Ok(PhasesFit {
        model: Phases::new(parts)?,
        standard_errors,
        log_likelihood,
        aic: 2.0 * count - 2.0 * log_likelihood,
    })
}

/// Kolmogorov's and Smirnov's distance between any model and Kaplan's and Meier's estimate, below
/// the maximum lifetime.
#[must_use]
pub fn distance_from(model: &dyn Lifetime, seen: &Observations) -> f64 {
    let points = super::curve::points(super::Curve::KaplanMeier, seen);
    super::distance(model, &points, seen.maximum())
}
