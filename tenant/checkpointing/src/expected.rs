//! Expected execution time, the ACC paper's equation 8.

use crate::bid_lifetimes::BidLifetimes;

/// The expected time in seconds that a job of `work` seconds takes on instances whose lives are
/// `lives`, with no checkpoint: every failure begins anew, after `restart` seconds. `None` if no
/// instance lives long enough, so that the job would never end.
///
/// With f(k) the chance of failure in step k of `step` seconds and T the number of steps that the
/// work has, EET = T (1 - Σ f(k)) + Σ (k + r + EET) f(k), k from 0 to T - 1, thus EET = T + Σ (k +
/// r) f(k) / (1 - Σ f(k)).
///
/// That is the paper's fraction, (T Σ' f(k) + Σ (k + r) f(k)) / (1 - Σ f(k)) with Σ' over k from T
/// on, since Σ' f = 1 - Σ f: all lives end at some time, and those of which no end is known are
/// taken to last until the job is done. It counts execution only, not the waiting until the price
/// comes down again.
#[must_use]
pub fn expected_execution_time(
    work: i64,
    restart: i64,
    lives: &BidLifetimes,
    step: i64,
) -> Option<f64> {
    let step = step.max(1);
    let steps = usize::try_from(work / step).unwrap_or(0);
    let (mut chance, mut lost) = (0.0, 0.0);
    for (k, f) in lives.density(step).take(steps).enumerate() {
        chance += f;
        lost += ((k as i64 * step) + restart) as f64 * f;
    }
    // What counts is the sample: not one of the lives was long enough.
    if lives.chance_before(steps as i64 * step) >= 1.0 {
        return None;
    }
    Some(work as f64 + lost / (1.0 - chance))
}
