//! The observed distribution function: of those that ended, or with those that were stopped.

use crate::distributions::Empirical;
use crate::error::LifetimeError;
use crate::observation::Observations;

/// Points (hours, share) of what was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// The empirical distribution function of ended instances alone: the paper's way. It forgets
    /// that stopped instances would have lived longer, so its lifetimes are too short.
    EndedOnly,
    /// Kaplan's and Meier's estimate, with stopped instances as right-censored.
    KaplanMeier,
}

/// The points of a curve, one for each ended instance, times rising.
pub(super) fn points(curve: Curve, seen: &Observations) -> Vec<(f64, f64)> {
    let mut at_risk = match curve {
        Curve::EndedOnly => seen.ended(),
        Curve::KaplanMeier => seen.all().len(),
    };
    let mut alive = 1.0;
    let mut points = Vec::with_capacity(seen.ended());
    for one in seen.all() {
        if one.ended {
            alive *= 1.0 - 1.0 / at_risk as f64;
            points.push((one.hours, 1.0 - alive));
        } else if curve == Curve::EndedOnly {
            continue;
        }
        at_risk -= 1;
    }
    points
}

/// One point a time, and the last share of each: what lies at or beyond the maximum is left out.
pub(super) fn below_maximum(points: &[(f64, f64)], maximum: f64) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for &(time, share) in points.iter().filter(|point| point.0 < maximum) {
        match kept.last_mut() {
            Some(last) if last.0 == time => last.1 = share,
            _ => kept.push((time, share)),
        }
    }
    kept
}

/// The points (hours, share that has ended) of the observed distribution function, one a time, for
/// charts; below the maximum lifetime.
#[must_use]
pub fn observed(curve: Curve, seen: &Observations) -> Vec<(f64, f64)> {
    below_maximum(&points(curve, seen), seen.maximum())
}

/// The empirical model by Kaplan and Meier; with a maximum lifetime, what is left there is its
/// atom.
///
/// # Errors
/// [`LifetimeError::TooFew`] if nothing ended after time 0.
pub fn kaplan_meier(seen: &Observations) -> Result<Empirical, LifetimeError> {
    seen.need(1)?;
    let mut kept = below_maximum(&points(Curve::KaplanMeier, seen), seen.maximum());
    for point in &mut kept {
        point.1 = point.1.min(1.0);
    }
    let share = kept.last().map_or(0.0, |last| last.1);
    if seen.maximum().is_finite() {
        kept.push((seen.maximum(), share));
    } else if let Some(longest) = seen.all().last() {
        // Nothing is known beyond the longest observation; the model ends there.
        if kept.last().is_none_or(|last| last.0 < longest.hours) {
            kept.push((longest.hours, share));
        }
    }
    Empirical::new(&kept)
}
