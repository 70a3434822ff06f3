//! Which scheme to run: chosen by a backtest on the tenant's own prices.
//!
//! No scheme is best in all markets: the ACC paper's own loses to hourly checkpoints where prices
//! stay high for long. So every scheme is played from every start of the history, and the one with
//! the least mean product of cost and time is chosen, which is the paper's measure (its section
//! VII-A).
//!
//! What that is worth on prices that the choice has not seen is measured on the same history: it is
//! cut into parts, for each part but the first a scheme is chosen on what came before, and the part
//! shows what the choice gained.

use crate::compare::{AdaptHistory, Starts};
use crate::error::CheckpointingError;
use crate::history::PriceHistory;
use crate::run::{CheckpointedJob, JobEnd, Market, run};
use crate::scheme::{SchemeKind, scheme};
use crate::terms::{CheckpointTerms, checked_work};
use ebbtide_model::Money;

/// Parts of the history; the first is only learnt from.
const PARTS: usize = 5;
/// A scheme whose jobs end less often than this share of the best one's is not chosen: means over
/// the jobs that ended would favour it.
const ENDED_SHARE: f64 = 0.95;

/// A scheme for one bid on one history, and what to expect of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemeAdvice {
    /// The scheme with the least mean product.
    pub scheme: SchemeKind,
    /// The scheme that follows it; `None` if no other one ends its jobs.
    pub next: Option<SchemeKind>,
    /// Mean product of cost and time of each scheme, dollar hours, over the starts from which all
    /// that count end their jobs; `None` for one that does not count.
    pub products: Vec<(SchemeKind, Option<f64>)>,
    /// Number of starts.
    pub starts: usize,
    /// For each part that the choice had not seen, how many per cent the scheme chosen before was
    /// below the one that followed it then; negative if it was above.
    pub gains_percent: Vec<f64>,
}

impl SchemeAdvice {
    /// The mean of the gains, per cent, with the least and the greatest; `None` if there is no
    /// part that shows one.
    #[must_use]
    pub fn gain(&self) -> Option<(f64, f64, f64)> {
        let gains = &self.gains_percent;
        let least = gains.iter().copied().reduce(f64::min)?;
        let greatest = gains.iter().copied().reduce(f64::max)?;
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        Some((mean, least, greatest))
    }
}

/// What each scheme came to from one start, dollar hours; `None` if the job did not end.
type Played = Vec<Option<f64>>;

/// Chooses among `kinds`; of equals the first.
///
/// # Errors
/// [`CheckpointingError::Question`] for impossible terms, starts, or work that is not above zero;
/// [`CheckpointingError::NeverEnds`] if no job ends within the history.
pub fn advise(
    history: &PriceHistory,
    bid: Money,
    kinds: &[SchemeKind],
    terms: &CheckpointTerms,
    work_seconds: i64,
    starts: Starts,
) -> Result<SchemeAdvice, CheckpointingError> {
    let terms = terms.checked()?;
    checked_work(work_seconds)?;
    let market = Market::new(history, bid);
    let mut known = AdaptHistory::new(&market, terms.adapt.knowledge);
    let played: Vec<Played> = starts
        .of(history)?
        .into_iter()
        .map(|start| {
            let lives = known.at(start);
            let job = CheckpointedJob {
                work_seconds,
                start,
            };
            let each = kinds.iter().map(|kind| {
                let outcome = run(&market, scheme(*kind), &terms, lives, job);
                match outcome.ending {
                    JobEnd::Done(at) => {
                        let dollars = outcome.cost.micros() as f64 / 1e6;
                        Some(dollars * (at - start) as f64 / 3600.0)
                    }
                    _ => None,
                }
            });
            each.collect()
        })
        .collect();
    let means = products(&played, kinds.len());
    let never = || CheckpointingError::NeverEnds {
        job_seconds: work_seconds,
        days: (history.end() - history.start()) as f64 / 86_400.0,
    };
    let (first, next) = best_two(&means).ok_or_else(never)?;
    let kind = |place: usize| kinds.get(place).copied();
    Ok(SchemeAdvice {
        scheme: kind(first).ok_or_else(never)?,
        next: next.and_then(kind),
        products: kinds.iter().copied().zip(means).collect(),
        starts: played.len(),
        gains_percent: gains(&played, kinds.len()),
    })
}

/// The mean product of each scheme over the starts from which all that count end their jobs.
fn products(played: &[Played], kinds: usize) -> Vec<Option<f64>> {
    let of = |row: &Played, kind: usize| row.get(kind).copied().flatten();
    let ended: Vec<usize> = (0..kinds)
        .map(|kind| played.iter().filter(|row| of(row, kind).is_some()).count())
        .collect();
    let most = ended.iter().copied().max().unwrap_or(0);
    let counts = |kind: usize| {
        let own = ended.get(kind).copied().unwrap_or(0);
        own > 0 && own as f64 >= ENDED_SHARE * most as f64
    };
    let counted: Vec<usize> = (0..kinds).filter(|kind| counts(*kind)).collect();
    let all_end = |row: &&Played| counted.iter().all(|kind| of(row, *kind).is_some());
    let rows: Vec<&Played> = played.iter().filter(all_end).collect();
    (0..kinds)
        .map(|kind| {
            let sum: f64 = rows.iter().filter_map(|row| of(row, kind)).sum();
            (counts(kind) && !rows.is_empty()).then(|| sum / rows.len() as f64)
        })
        .collect()
}

/// The places of the least mean and of the one after it.
fn best_two(means: &[Option<f64>]) -> Option<(usize, Option<usize>)> {
    let mut order: Vec<(usize, f64)> = means
        .iter()
        .enumerate()
        .filter_map(|(place, mean)| Some((place, (*mean)?)))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut places = order.into_iter().map(|(place, _)| place);
    Some((places.next()?, places.next()))
}

/// What the choice on everything before a part gained in that part, per cent.
fn gains(played: &[Played], kinds: usize) -> Vec<f64> {
    let cut = |part: usize| played.len() * part / PARTS;
    let of_part = |part: usize| {
        let before = played.get(..cut(part))?;
        let (chosen, next) = best_two(&products(before, kinds))?;
        let rows = played.get(cut(part)..cut(part + 1))?.iter();
        let pairs = rows.filter_map(|row| Some(((*row.get(chosen)?)?, (*row.get(next?)?)?)));
        let (own, other) = pairs.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (other > 0.0).then(|| 100.0 * (1.0 - own / other))
    };
    (1..PARTS).filter_map(of_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_whose_jobs_seldom_end_does_not_count() {
        let mut played: Vec<Played> = (0..20).map(|_| vec![Some(3.0), Some(2.0), None]).collect();
        // The third is the cheapest where it ends at all.
        played[0][2] = Some(0.1);
        let means = products(&played, 3);
        assert_eq!(means, [Some(3.0), Some(2.0), None]);
        assert_eq!(best_two(&means), Some((1, Some(0))));
    }

    #[test]
    fn a_choice_is_judged_on_what_comes_after_it() {
        // The first is better in the first half, the second in the second half.
        let row = |n: usize| match n < 10 {
            true => vec![Some(1.0), Some(2.0)],
            false => vec![Some(4.0), Some(2.0)],
        };
        let played: Vec<Played> = (0..20).map(row).collect();
        let gains = gains(&played, 2);
        assert_eq!(gains.len(), PARTS - 1);
        assert!(
            (gains[0] - 50.0).abs() < 1e-9,
            "seen as it stays: {gains:?}"
        );
        assert!(gains[2] < 0.0, "the market has changed: {gains:?}");
    }
}
