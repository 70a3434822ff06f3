//! Models from observations.

mod curve;
mod family;
mod phases;
mod search;
mod verdict;

pub use curve::{Curve, kaplan_meier, observed};
pub use family::Family;
pub use phases::{PhasesFit, default_phases, distance_from, phases};
pub use verdict::{FitVerdict, verdict};

use crate::Lifetime;
use crate::error::LifetimeError;
use crate::observation::Observations;

/// The shortest lifetime that a likelihood regards, hours (a second): some densities are infinite
/// at 0.
const SHORTEST: f64 = 1.0 / 3600.0;
/// Chances below this count as this: an impossible observation makes a fit bad, not undefined.
const UNLIKELY: f64 = 1e-12;

/// How parameters are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// Least squares, each ended instance with the same weight, on this curve. The paper's way with
    /// [`Curve::EndedOnly`].
    LeastSquares(Curve),
    /// Maximum likelihood with stopped instances as right-censored, and ends at the maximum
    /// lifetime as its atom.
    MaximumLikelihood,
}

/// A fitted model and how good it is.
#[derive(Debug)]
pub struct Fit {
    /// Which formula.
    pub family: Family,
    /// How it was fitted.
    pub method: Estimator,
    /// Its parameters in the order of [`Lifetime::parameters`], times in hours.
    pub parameters: Vec<f64>,
    /// Their standard errors; `None` if the data do not determine them, or they lie on a bound.
    /// Those of least squares are as curve fitting programs print them: they take the points of the
    /// curve for independent, which they are not, and are too small.
    pub standard_errors: Option<Vec<f64>>,
    /// The share of the curve's variance that the formula explains: over all points of the curve
    /// with least squares, over those below the maximum lifetime with maximum likelihood.
    pub r2: f64,
    /// Kolmogorov's and Smirnov's distance between model and curve below the maximum lifetime; the
    /// curve is Kaplan's and Meier's with maximum likelihood.
    pub ks: f64,
    /// The logarithm of the censored likelihood.
    pub log_likelihood: f64,
    /// Akaike's criterion: `2 k - 2 ln L`; the smaller the better, comparable between models of the
    /// same observations.
    pub aic: f64,
    /// The model.
    pub model: Box<dyn Lifetime>,
}

/// Fits one formula.
///
/// # Errors
/// [`LifetimeError::TooFew`] if there are not at least two different ended lifetimes more than
/// parameters; [`LifetimeError::NoFit`] if the search ends nowhere; [`LifetimeError::Parameter`]
/// for a uniform or bathtub model without a maximum.
pub fn fit(family: Family, method: Estimator, seen: &Observations) -> Result<Fit, LifetimeError> {
    let bounds = family.bounds();
    seen.need(bounds.len() + 2)?;
    let maximum = seen.maximum();
    let curve = match method {
        Estimator::LeastSquares(curve) => curve,
        Estimator::MaximumLikelihood => Curve::KaplanMeier,
    };
    let points = curve::points(curve, seen);
    let squares = |p: &[f64]| -> f64 {
        points
            .iter()
            .map(|&(t, share)| (family.formula(p, t, maximum) - share).powi(2))
            .sum()
    };
    let unlikely = |p: &[f64]| -log_likelihood(family, p, seen);
    let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    let longest = points.last().map_or(1.0, |point| point.0);
    let starts = family.starts(mean.max(SHORTEST), longest.min(maximum));
    let found = if bounds.is_empty() {
        Some((Vec::new(), 0.0))
    } else {
        match method {
            Estimator::LeastSquares(_) if family == Family::Bathtub => {
                walled(search::valleys(&squares, bounds, &starts), maximum)
            }
            Estimator::LeastSquares(_) => search::least(&squares, bounds, &starts),
            Estimator::MaximumLikelihood => search::least(&unlikely, bounds, &starts),
        }
    };
    let Some((parameters, _)) = found else {
        return Err(LifetimeError::NoFit {
            model: family.name(),
            problem: "no parameters give a finite cost".to_owned(),
        });
    };
    let on_bound = parameters
        .iter()
        .zip(bounds)
        .any(|(x, bound)| *x <= bound.0 * 1.0001 || *x >= bound.1 * 0.9999);
    let standard_errors = if on_bound || bounds.is_empty() {
        None
    } else {
        match method {
            Estimator::LeastSquares(_) => {
                let spare = points.len() as f64 - parameters.len() as f64;
                // Near the least squares the Hessian of half their sum is JᵀJ plus a part of the
                // residuals' size.
                search::inverse_diagonal(&normal_matrix(family, &parameters, &points, maximum)).map(
                    |diagonal| {
                        let variance = squares(&parameters) / spare;
                        diagonal.iter().map(|d| (d * variance).sqrt()).collect()
                    },
                )
            }
            Estimator::MaximumLikelihood => {
                search::inverse_diagonal(&search::curvature(&unlikely, &parameters))
                    .map(|diagonal| diagonal.iter().map(|d| d.sqrt()).collect())
            }
        }
    };
    // Least squares is about all points of the curve. A likelihood takes what is at the maximum
    // lifetime as the atom.
    let r2 = match method {
        Estimator::LeastSquares(_) => explained(family, &parameters, &points, maximum),
        Estimator::MaximumLikelihood => {
            let below = curve::below_maximum(&points, maximum);
            explained(family, &parameters, &below, maximum)
        }
    };
    let likelihood = log_likelihood(family, &parameters, seen);
    let model = family.model(&parameters, maximum)?;
    Ok(Fit {
        family,
        method,
        standard_errors,
        r2,
        ks: distance(model.as_ref(), &points, maximum),
        log_likelihood: likelihood,
        aic: 2.0 * parameters.len() as f64 - 2.0 * likelihood,
        parameters,
        model,
    })
}

/// Of the valleys of a bathtub's sum of squares, the deepest with a wall at the end of life, as the
/// paper describes the curve: τ2 not longer than a twelfth of the maximum (2 h of a day). A long τ2
/// is a slope without a wall; it is taken if it halves the squares.
fn walled(mut valleys: Vec<(Vec<f64>, f64)>, maximum: f64) -> Option<(Vec<f64>, f64)> {
    valleys.sort_by(|a, b| a.1.total_cmp(&b.1));
    let deepest = valleys.first()?.1;
    let wall = valleys
        .iter()
        .position(|(p, squares)| p[2] <= maximum / 12.0 && *squares <= 2.0 * deepest);
    Some(valleys.swap_remove(wall.unwrap_or(0)))
}

/// The share of the variance of these points that the formula explains.
fn explained(family: Family, p: &[f64], points: &[(f64, f64)], maximum: f64) -> f64 {
    let middle = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let spread: f64 = points.iter().map(|point| (point.1 - middle).powi(2)).sum();
    let squares: f64 = points
        .iter()
        .map(|&(t, share)| (family.formula(p, t, maximum) - share).powi(2))
        .sum();
    1.0 - squares / spread
}

/// The logarithm of the chance of what was seen: the density where an instance ended, the survival
/// where it was stopped or the maximum lifetime ended it.
fn log_likelihood(family: Family, p: &[f64], seen: &Observations) -> f64 {
    let maximum = seen.maximum();
    seen.all()
        .iter()
        .map(|one| {
            let t = one.hours.max(SHORTEST);
            if one.ended && t < maximum {
                // Where a bathtub's formula has passed 1 everybody has ended, and its slope, which
                // grows without bound, means nothing.
                let possible = family.formula(p, t, maximum) <= 1.0;
                let density = if possible {
                    family.slope(p, t, maximum)
                } else {
                    0.0
                };
                density.max(UNLIKELY).ln()
            } else {
                (1.0 - family.formula(p, t.min(maximum), maximum))
                    .max(UNLIKELY)
                    .ln()
            }
        })
        .sum()
}

/// JᵀJ of the formula at the curve's points, by central differences.
fn normal_matrix(family: Family, p: &[f64], points: &[(f64, f64)], maximum: f64) -> Vec<Vec<f64>> {
    let n = p.len();
    let mut matrix = vec![vec![0.0; n]; n];
    for &(t, _) in points {
        let gradient: Vec<f64> = (0..n)
            .map(|i| {
                let step = p[i] * 1e-6;
                let moved = |by: f64| {
                    let mut point = p.to_vec();
                    point[i] += by;
                    family.formula(&point, t, maximum)
                };
                (moved(step) - moved(-step)) / (2.0 * step)
            })
            .collect();
        for i in 0..n {
            for j in 0..n {
                matrix[i][j] += gradient[i] * gradient[j];
            }
        }
    }
    matrix
}

/// The greatest distance between the model and the curve's steps below the maximum lifetime. At the
/// maximum both jump to where everybody has ended, however long the provider took to end them.
fn distance(model: &dyn Lifetime, points: &[(f64, f64)], maximum: f64) -> f64 {
    let mut before = 0.0;
    let mut worst = 0.0f64;
    for (time, share) in curve::below_maximum(points, maximum) {
        let own = model.cdf(time);
        worst = worst.max((own - share).abs()).max((own - before).abs());
        before = share;
    }
    if maximum.is_finite() {
        worst = worst.max((model.cdf(maximum.next_down()) - before).abs());
    }
    worst
}
