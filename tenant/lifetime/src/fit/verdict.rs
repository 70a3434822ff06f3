//! Which model to use, in plain words.

use super::{Estimator, Fit};
use crate::observation::Observations;

/// What to make of several fits of the same observations.
#[derive(Debug, Clone, PartialEq)]
pub struct FitVerdict {
    /// The place of the best formula among the fits that were given.
    pub best: usize,
    /// Whether Kolmogorov's and Smirnov's test at 5 % leaves it standing. The bound is for models
    /// that were not fitted to the same data, so who fails here fails.
    pub fits: bool,
    /// Whether the empirical model is the one to use: no formula stands, and there are enough ended
    /// lifetimes for it.
    pub empirical: bool,
    /// The verdict in words for people.
    pub words: String,
}

/// With this many ended lifetimes the empirical model is steadier than a formula that does not fit.
const ENOUGH: usize = 100;

/// Compares fits by the criterion that they were made by (Akaike's of the likelihood, or of the
/// squares), and holds the best one against Kolmogorov and Smirnov. `None` without fits.
#[must_use]
pub fn verdict(fits: &[Fit], seen: &Observations) -> Option<FitVerdict> {
    let mut order: Vec<usize> = (0..fits.len()).collect();
    let cost = |at: usize| match fits[at].method {
        Estimator::MaximumLikelihood => fits[at].aic,
        Estimator::LeastSquares(_) => {
            let unexplained = (1.0 - fits[at].r2).max(f64::MIN_POSITIVE);
            seen.ended() as f64 * unexplained.ln() + 2.0 * fits[at].parameters.len() as f64
        }
    };
    order.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)));
    let &best = order.first()?;
    let winner = &fits[best];
    let bound = 1.358 / (seen.ended() as f64).sqrt();
    let standing = winner.ks <= bound;
    let mut words = match order.get(1) {
        Some(&second) => {
            let (ahead, figures) = match winner.method {
                Estimator::MaximumLikelihood => (
                    fits[second].aic - winner.aic,
                    format!("AIC {:.1} against {:.1}", winner.aic, fits[second].aic),
                ),
                // Points of a distribution function lean on their neighbours, so Akaike's criterion
                // of the squares exaggerates.
                Estimator::LeastSquares(_) => (
                    (winner.r2 - fits[second].r2) * 200.0,
                    format!("R² {:.3} against {:.3}", winner.r2, fits[second].r2),
                ),
            };
            let how = if ahead < 2.0 {
                "no better than"
            } else if ahead < 10.0 {
                "somewhat better than"
            } else {
                "clearly better than"
            };
            format!(
                "{} is {how} {} ({figures}).",
                winner.family.name(),
                fits[second].family.name()
            )
        }
        None => format!("{} was the only choice.", winner.family.name()),
    };
    let farthest = winner.ks * 100.0;
    words.push_str(&if standing {
        format!(
            " Its largest error is {farthest:.1} percentage points: use {}.",
            winner.family.name()
        )
    } else if seen.ended() >= ENOUGH {
        format!(
            " But its largest error is {farthest:.1} percentage points, and sampling noise explains {:.1}: use the empirical model, \
             {} ended lifetimes are enough for it.",
            bound * 100.0,
            seen.ended()
        )
    } else {
        format!(
            " But its largest error is {farthest:.1} percentage points, and sampling noise explains {:.1}. {} ended lifetimes are \
             few for the empirical model: use {} with care until there are {ENOUGH}.",
            bound * 100.0,
            seen.ended(),
            winner.family.name()
        )
    });
    if seen.censored() > 0 && winner.method == Estimator::LeastSquares(super::Curve::EndedOnly) {
        words.push_str(&format!(
            " {} instances that their users stopped were left out, so real lifetimes are longer than it says.",
            seen.censored()
        ));
    }
    Some(FitVerdict {
        best,
        fits: standing,
        empirical: !standing && seen.ended() >= ENOUGH,
        words,
    })
}
