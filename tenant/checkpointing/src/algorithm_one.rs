//! The ACC paper's Algorithm 1, to the letter: one bid for all instance types and the type with the
//! least expected execution time. [`crate::choose`] is ours, which searches bids and knows cost,
//! deadline and budget.

use crate::availability::Availability;
use crate::bid_lifetimes::BidLifetimes;
use crate::error::CheckpointingError;
use crate::expected::expected_execution_time;
use crate::history::PriceHistory;
use crate::terms::question;
use ebbtide_model::Money;

/// An instance type of the list L: one that meets the service level.
#[derive(Debug, Clone, Copy)]
pub struct BidType<'a> {
    /// Its recorded prices.
    pub history: &'a PriceHistory,
    /// C_i, what an hour of it costs on demand.
    pub on_demand: Money,
}

/// What Algorithm 1 finds.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmOne {
    /// A_bid.
    pub bid: Money,
    /// EET_i of each type, seconds; `None` for one that never runs with this bid, or on which no
    /// instance lives as long as the job.
    pub execution: Vec<Option<f64>>,
    /// The place of the type with the least; `None` if there is none.
    pub chosen: Option<usize>,
}

/// Equation 7, A_bid = min C_i; `None` without types.
#[must_use]
pub fn application_bid(types: &[BidType<'_>]) -> Option<Money> {
    types.iter().map(|one| one.on_demand).min()
}

/// Algorithm 1 for a job of `work` seconds, with `restart` seconds r after each failure. Of equal
/// expected times the first type in the list is chosen: the paper leaves that open.
///
/// # Errors
/// [`CheckpointingError::Question`] for a job that is not above zero;
/// [`CheckpointingError::Empty`] without types.
pub fn algorithm_one(
    types: &[BidType<'_>],
    work: i64,
    restart: i64,
) -> Result<AlgorithmOne, CheckpointingError> {
    if work <= 0 {
        return Err(question("the job", work, "above zero"));
    }
    let bid = application_bid(types).ok_or(CheckpointingError::Empty)?;
    let execution: Vec<Option<f64>> = types
        .iter()
        .map(|one| {
            let availability = Availability::new(one.history, bid);
            // The density of a type that never runs is empty, which would be no failure at all.
            availability.periods().first()?;
            let lives = BidLifetimes::until(&availability, i64::MAX);
            expected_execution_time(work, restart, &lives, STEP)
        })
        .collect();
    let times = execution.iter().enumerate();
    let known = times.filter_map(|(place, time)| Some((place, (*time)?)));
    let least = known.min_by(|(_, one), (_, other)| one.total_cmp(other));
    Ok(AlgorithmOne {
        bid,
        chosen: least.map(|(place, _)| place),
        execution,
    })
}

/// The step of the paper's k: a minute.
const STEP: i64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    /// 0.10, and 0.50 for ten minutes of every `period` minutes, for a week.
    fn spiky(period: i64) -> PriceHistory {
        let week = 7 * 86_400;
        let each = (0..week / (period * 60)).flat_map(|n| {
            let at = n * period * 60;
            [
                (at, money("0.10")),
                (at + (period - 10) * 60, money("0.50")),
            ]
        });
        PriceHistory::new(&each.collect::<Vec<_>>(), week).unwrap()
    }

    #[test]
    fn the_lowest_on_demand_price_is_the_bid_and_the_least_expected_time_chooses() {
        let (often, seldom, dear) = (spiky(60), spiky(600), spiky(600));
        let types = [
            BidType {
                history: &often,
                on_demand: money("0.30"),
            },
            BidType {
                history: &seldom,
                on_demand: money("0.60"),
            },
            BidType {
                history: &dear,
                on_demand: money("0.45"),
            },
        ];
        assert_eq!(application_bid(&types), Some(money("0.30")));
        let found = algorithm_one(&types, 45 * 60, 300).unwrap();
        assert_eq!(found.bid, money("0.30"));
        // Lives of 50 and of 590 minutes: no failure within the job.
        assert_eq!(found.execution, [Some(2_700.0); 3]);
        assert_eq!(found.chosen, Some(0), "of equals the first");
        // Two hours are more than any life of the first.
        let found = algorithm_one(&types, 7_200, 300).unwrap();
        assert_eq!(found.execution[0], None);
        assert_eq!(found.chosen, Some(1));
        // With a bid of 0.05 nothing runs.
        let none = BidType {
            history: &often,
            on_demand: money("0.05"),
        };
        let found = algorithm_one(&[none], 60, 0).unwrap();
        assert_eq!((found.execution[0], found.chosen), (None, None));
        assert!(algorithm_one(&[], 60, 0).is_err());
        assert!(algorithm_one(&types, 0, 0).is_err());
    }

    #[test]
    fn the_time_is_the_fraction_of_equation_8() {
        // Lives of 50 and of 170 minutes, alternating.
        let mut changes = Vec::new();
        for n in 0..40 {
            let at = n * 240 * 60;
            changes.push((at, money("0.10")));
            changes.push((at + 50 * 60, money("0.50")));
            changes.push((at + 60 * 60, money("0.10")));
            changes.push((at + 230 * 60, money("0.50")));
        }
        let history = PriceHistory::new(&changes, 40 * 240 * 60).unwrap();
        let types = [BidType {
            history: &history,
            on_demand: money("0.2"),
        }];
        let found = algorithm_one(&types, 100 * 60, 120).unwrap();
        // (w Σ_{k ≥ w} f + Σ_{k < w} (k + r) f) / (1 - Σ_{k < w} f) with f(50) = f(170) = 1/2.
        let printed = (100.0 * 0.5 + (50.0 + 2.0) * 0.5) / (1.0 - 0.5) * 60.0;
        let seconds = found.execution[0].unwrap();
        assert!((seconds - printed).abs() < 1e-6, "{seconds} {printed}");
    }
}
