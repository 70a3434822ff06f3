//! Which bid and which instance type. Extends the ACC paper's Algorithm 1, which compares all types
//! at one bid, the lowest on-demand price, by the expected execution time alone (equations 7 and
//! 8).

use crate::availability::Availability;
use crate::bid_lifetimes::BidLifetimes;
use crate::error::CheckpointingError;
use crate::expected::expected_execution_time;
use crate::history::PriceHistory;
use crate::terms::{CheckpointTerms, question};
use ebbtide_model::Money;

/// An instance type that may be bid for.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub name: &'a str,
    /// What it cost.
    pub history: &'a PriceHistory,
    /// How fast it works, against the machine on which the job's length was measured: 2 halves the
    /// work.
    pub speed: f64,
}

/// What is wanted most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BidGoal {
    /// The least product of expected cost and time, the paper's measure. The default.
    #[default]
    Product,
    /// The least expected cost.
    Cost,
    /// The least expected time.
    Time,
}

/// A type with a bid, and what to expect of both.
#[derive(Debug, Clone, PartialEq)]
pub struct BidOffer {
    /// The place of the candidate in the list.
    pub candidate: usize,
    pub bid: Money,
    /// How much of the time the price is not above it, 0 to 1.
    pub available: f64,
    /// Mean life of an instance in hours; infinite if the price never went above the bid.
    pub life_hours: f64,
    /// Equation 8: expected hours of execution without checkpoints, infinite if no instance lived
    /// long enough.
    pub execution_hours: f64,
    /// Expected hours from start to end: execution, stretched by the share of the time in which it
    /// can run.
    pub hours: f64,
    /// Expected cost in dollars: the mean price while it is not above the bid, for every begun hour
    /// of execution.
    pub cost: f64,
}

impl BidOffer {
    fn measure(&self, goal: BidGoal) -> f64 {
        match goal {
            BidGoal::Product => self.cost * self.hours,
            BidGoal::Cost => self.cost,
            BidGoal::Time => self.hours,
        }
    }
}

/// What to expect of each candidate with each of its bids. Bids that never run are left out.
///
/// # Errors
/// [`CheckpointingError::Question`] for impossible terms, a job that is not above zero, or a speed
/// that is not; [`CheckpointingError::NeverRuns`] if no bid ever reaches a price.
pub fn offers(
    candidates: &[Candidate<'_>],
    bids: impl Fn(&Candidate<'_>) -> Vec<Money>,
    work_seconds: i64,
    terms: &CheckpointTerms,
) -> Result<Vec<BidOffer>, CheckpointingError> {
    let terms = terms.checked()?;
    if work_seconds <= 0 {
        return Err(question("the job", work_seconds, "above zero"));
    }
    let mut offers = Vec::new();
    let (mut highest, mut lowest) = (Money::default(), None);
    for (place, candidate) in candidates.iter().enumerate() {
        if !(candidate.speed.is_finite() && candidate.speed > 0.0) {
            return Err(CheckpointingError::Question {
                what: "the speed of an instance type",
                value: candidate.speed.to_string(),
                allowed: "a finite number above zero".to_owned(),
            });
        }
        let least = candidate.history.extremes().0;
        lowest = Some(lowest.unwrap_or(least).min(least));
        for bid in bids(candidate) {
            highest = highest.max(bid);
            offers.extend(offer(place, candidate, bid, work_seconds, &terms));
        }
    }
    if offers.is_empty() {
        return Err(CheckpointingError::NeverRuns {
            bid: highest.to_string(),
            lowest: lowest.unwrap_or_default().to_string(),
        });
    }
    Ok(offers)
}

fn offer(
    place: usize,
    candidate: &Candidate<'_>,
    bid: Money,
    work_seconds: i64,
    terms: &CheckpointTerms,
) -> Option<BidOffer> {
    let price = candidate.history.mean_up_to(bid)?;
    let availability = Availability::new(candidate.history, bid);
    let lives = BidLifetimes::until(&availability, i64::MAX);
    let work = (work_seconds as f64 / candidate.speed).ceil().max(1.0) as i64;
    // Steps of a minute, as the paper's k.
    let execution = expected_execution_time(work, terms.restart_seconds, &lives, 60);
    let hours = execution.map_or(f64::INFINITY, |seconds| seconds / 3600.0);
    Some(BidOffer {
        candidate: place,
        bid,
        available: availability.share(),
        life_hours: lives.mean().map_or(f64::INFINITY, |mean| mean / 3600.0),
        execution_hours: hours,
        hours: hours / availability.share(),
        cost: price * hours.ceil(),
    })
}

/// Selects the offer that serves the goal best among those that keep the deadline and the budget;
/// of equals the lower bid. Returns its index, or `None` if no offer keeps them.
///
/// The paper's Algorithm 1 minimises the execution time at one bid and knows neither deadline nor
/// budget. The default here is the product of cost and time, by which the paper compares checkpoint
/// schemes.
#[must_use]
pub fn choose(
    offers: &[BidOffer],
    goal: BidGoal,
    deadline_hours: Option<f64>,
    budget: Option<Money>,
) -> Option<usize> {
    let within = |offer: &BidOffer| {
        offer.hours.is_finite()
            && deadline_hours.is_none_or(|deadline| offer.hours <= deadline)
            && budget.is_none_or(|budget| offer.cost <= budget.micros() as f64 / 1e6)
    };
    let allowed = offers.iter().enumerate().filter(|(_, offer)| within(offer));
    let best = allowed.min_by(|(_, a), (_, b)| {
        let order = a.measure(goal).total_cmp(&b.measure(goal));
        order.then(a.bid.cmp(&b.bid))
    });
    best.map(|(place, _)| place)
}
