//! Price histories from a seed, for markets of which there is no public record.

use crate::error::CheckpointingError;
use crate::history::PriceHistory;
use ebbtide_model::Money;

const DAY: i64 = 86_400;
/// The longest generated history, days.
const LONGEST: u32 = 10_000;

/// A market like Amazon's of 2015: a low price for most of the time, and rare spikes to several
/// times the on-demand price. The records of 2010 have no such spikes: there the price moves by
/// some per cent many times a day.
///
/// The numbers are chosen, not fitted. The low price is uniform in 0.05 to 0.07 dollars an hour and
/// holds for 600 s + 3 days · u². A spike is uniform in 0.2 to 2.2 dollars and lasts 300 s + 2 h ·
/// u, or, for one spike in five, 300 s + 1 day · u. Each u is uniform in 0 to 1. The numbers come
/// from Knuth's MMIX generator, begun with 2 · `seed` + 1, so that a seed gives the same market on
/// every machine. The history begins at 0 and has at least `days` days.
///
/// # Errors
/// [`CheckpointingError::Question`] for no days or more than 10,000.
pub fn spiky_market(seed: u64, days: u32) -> Result<PriceHistory, CheckpointingError> {
    if !(1..=LONGEST).contains(&days) {
        return Err(CheckpointingError::Question {
            what: "the length of a generated market",
            value: days.to_string(),
            allowed: format!("1 to {LONGEST} days"),
        });
    }
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let money = |dollars: f64| Money::from_micros((dollars * 1e6) as u64);
    let (mut at, mut changes) = (0_i64, Vec::new());
    while at < i64::from(days) * DAY {
        let low = 0.05 + 0.02 * uniform();
        changes.push((at, money(low)));
        at += 600 + (uniform().powi(2) * 3.0 * DAY as f64) as i64;
        changes.push((at, money(0.2 + 2.0 * uniform())));
        let longest = if uniform() < 0.2 { DAY as f64 } else { 7_200.0 };
        at += 300 + (uniform() * longest) as i64;
    }
    PriceHistory::new(&changes, at)
}
