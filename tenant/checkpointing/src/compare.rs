//! One job from many starts with all schemes: what the paper's figures 7 to 10 compare.

use crate::bid_lifetimes::BidLifetimes;
use crate::error::CheckpointingError;
use crate::history::PriceHistory;
use crate::run::{CheckpointedJob, JobEnd, JobResult, Market, run};
use crate::scheme::{SchemeKind, scheme};
use crate::terms::{AdaptKnowledge, CheckpointTerms, checked_work, question};
use ebbtide_model::Money;

/// When jobs are handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starts {
    /// Seconds from one to the next. The first begins with the history.
    pub every_seconds: i64,
    /// None begins in the last so many seconds of the history, so that jobs that wait long can end
    /// within it.
    pub tail_seconds: i64,
}

/// More starts than this say nothing more: one every five minutes of a year.
const MOST_STARTS: i64 = 100_000;

impl Default for Starts {
    /// Every 24 h, none in the last 41 days: the 317 starts of a year that the reference figures
    /// were made with.
    fn default() -> Self {
        Self {
            every_seconds: 86_400,
            tail_seconds: 41 * 86_400,
        }
    }
}

impl Starts {
    /// The starts in a history. Of a history shorter than the tail its first half.
    ///
    /// # Errors
    /// [`CheckpointingError::Question`] for a distance that is not above zero or gives far too many
    /// starts, or a tail below zero.
    pub fn of(self, history: &PriceHistory) -> Result<Vec<i64>, CheckpointingError> {
        let (every, tail) = (self.every_seconds, self.tail_seconds);
        if every <= 0 {
            return Err(question("the time between starts", every, "above zero"));
        }
        if tail < 0 {
            return Err(question("the time without starts", tail, "at least zero"));
        }
        let whole = history.end() - history.start();
        let last = history.end() - if tail < whole { tail } else { whole / 2 };
        if (last - history.start()) / every > MOST_STARTS {
            let allowed = "so long that there are at most a hundred thousand starts";
            return Err(question("the time between starts", every, allowed));
        }
        let starts = (0..).map(|n| history.start() + n * every);
        Ok(starts.take_while(|start| *start < last).collect())
    }
}

/// A scheme against OPT, over the starts from which both finish.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptComparison {
    /// Number of starts.
    pub starts: usize,
    /// Mean cost, per cent above that of OPT.
    pub cost_percent: f64,
    /// Mean time from start to end, per cent above.
    pub time_percent: f64,
    /// Mean product of cost and time, per cent above.
    pub product_percent: f64,
}

/// What a scheme came to with one bid. Means are over the starts from which it finished; NaN if
/// there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemeResult {
    pub kind: SchemeKind,
    /// From how many starts it finished within the history.
    pub finished: usize,
    /// From how many it never even ran.
    pub never_ran: usize,
    /// Mean cost, dollars.
    pub cost: f64,
    /// Mean time from start to end, hours.
    pub hours: f64,
    /// Mean of the product of both, dollar hours.
    pub product: f64,
    /// Mean number of instances launched, of those killed by the provider, of checkpoints.
    pub launches: f64,
    /// Killed by the provider.
    pub kills: f64,
    /// Checkpoints completed.
    pub checkpoints: f64,
    /// Mean hours of work done twice.
    pub lost_hours: f64,
    /// Held against OPT; `None` if OPT is not among the schemes, or they never both finish.
    pub against_opt: Option<OptComparison>,
}

/// All schemes with one bid.
#[derive(Debug, Clone, PartialEq)]
pub struct BidComparison {
    pub bid: Money,
    /// How much of the time the price is not above it, 0 to 1.
    pub available: f64,
    /// Number of starts.
    pub starts: usize,
    /// The schemes, in the order asked for.
    pub schemes: Vec<SchemeResult>,
}

impl BidComparison {
    #[must_use]
    pub fn of(&self, kind: SchemeKind) -> Option<&SchemeResult> {
        self.schemes.iter().find(|result| result.kind == kind)
    }
}

/// Plays a job of `work_seconds` from every start with every scheme.
///
/// # Errors
/// [`CheckpointingError::Question`] for impossible terms, starts, or work that is not above zero.
pub fn compare(
    history: &PriceHistory,
    bid: Money,
    kinds: &[SchemeKind],
    terms: &CheckpointTerms,
    work_seconds: i64,
    starts: Starts,
) -> Result<BidComparison, CheckpointingError> {
    let terms = terms.checked()?;
    checked_work(work_seconds)?;
    let starts = starts.of(history)?;
    let market = Market::new(history, bid);
    let mut sums: Vec<Sums> = kinds.iter().map(|_| Sums::default()).collect();
    let mut known = AdaptHistory::new(&market, terms.adapt.knowledge);
    for start in &starts {
        let lives = known.at(*start);
        let job = CheckpointedJob {
            work_seconds,
            start: *start,
        };
        let played: Vec<JobResult> = kinds
            .iter()
            .map(|kind| run(&market, scheme(*kind), &terms, lives, job))
            .collect();
        let opt = kinds.iter().position(|kind| *kind == SchemeKind::Opt);
        let opt = opt
            .and_then(|i| played.get(i))
            .and_then(|o| done(o, *start));
        for (outcome, sums) in played.iter().zip(&mut sums) {
            sums.add(outcome, *start, opt);
        }
    }
    let schemes = kinds
        .iter()
        .zip(&sums)
        .map(|(kind, sums)| sums.result(*kind));
    Ok(BidComparison {
        bid,
        available: market.availability().share(),
        starts: starts.len(),
        schemes: schemes.collect(),
    })
}

/// What ADAPT knows at each start; starts have to come in order.
pub(crate) struct AdaptHistory<'a> {
    market: &'a Market<'a>,
    lives: BidLifetimes,
    /// Periods that are in `lives` already.
    seen: usize,
    whole: bool,
}

impl<'a> AdaptHistory<'a> {
    pub(crate) fn new(market: &'a Market<'a>, knowledge: AdaptKnowledge) -> Self {
        let whole = knowledge == AdaptKnowledge::Whole;
        let lives = if whole {
            BidLifetimes::until(market.availability(), i64::MAX)
        } else {
            BidLifetimes::default()
        };
        Self {
            market,
            lives,
            seen: 0,
            whole,
        }
    }

    pub(crate) fn at(&mut self, start: i64) -> &BidLifetimes {
        let periods = self.market.availability().periods();
        while let Some(period) = periods.get(self.seen).filter(|_| !self.whole) {
            let Some(until) = period.until.filter(|until| *until <= start) else {
                break;
            };
            self.lives.add(until - period.from);
            self.seen += 1;
        }
        &self.lives
    }
}

/// (millionths, seconds) of a job that is done.
fn done(outcome: &JobResult, start: i64) -> Option<(u64, i64)> {
    match outcome.ending {
        JobEnd::Done(at) => Some((outcome.cost.micros(), at - start)),
        _ => None,
    }
}

/// Sums over starts, exact where money is concerned.
#[derive(Debug, Clone, Copy, Default)]
struct Triple {
    count: usize,
    micros: u128,
    seconds: i128,
    product: f64,
}

impl Triple {
    fn add(&mut self, (micros, seconds): (u64, i64)) {
        self.count += 1;
        self.micros += u128::from(micros);
        self.seconds += i128::from(seconds);
        self.product += micros as f64 / 1e6 * (seconds as f64 / 3600.0);
    }
}

#[derive(Debug, Clone, Default)]
struct Sums {
    own: Triple,
    /// Over the starts from which OPT finished, too: own and OPT's.
    paired: (Triple, Triple),
    never_ran: usize,
    launches: u64,
    kills: u64,
    checkpoints: u64,
    lost_seconds: i64,
}

impl Sums {
    fn add(&mut self, outcome: &JobResult, start: i64, opt: Option<(u64, i64)>) {
        self.never_ran += usize::from(outcome.ending == JobEnd::NeverRuns);
        let Some(own) = done(outcome, start) else {
            return;
        };
        self.own.add(own);
        if let Some(opt) = opt {
            self.paired.0.add(own);
            self.paired.1.add(opt);
        }
        self.launches += u64::from(outcome.launches);
        self.kills += u64::from(outcome.kills);
        self.checkpoints += u64::from(outcome.checkpoints);
        self.lost_seconds += outcome.lost_seconds;
    }

    fn result(&self, kind: SchemeKind) -> SchemeResult {
        // 0/0 is NaN, as the documentation says.
        let mean = |sum: f64| sum / self.own.count as f64;
        let (own, opt) = &self.paired;
        let percent = |own: f64, opt: f64| 100.0 * (own / opt - 1.0);
        SchemeResult {
            kind,
            finished: self.own.count,
            never_ran: self.never_ran,
            cost: mean(self.own.micros as f64 / 1e6),
            hours: mean(self.own.seconds as f64 / 3600.0),
            product: mean(self.own.product),
            launches: mean(self.launches as f64),
            kills: mean(self.kills as f64),
            checkpoints: mean(self.checkpoints as f64),
            lost_hours: mean(self.lost_seconds as f64 / 3600.0),
            // A price of zero has no per cent.
            against_opt: (own.count > 0 && opt.micros > 0).then(|| OptComparison {
                starts: own.count,
                cost_percent: percent(own.micros as f64, opt.micros as f64),
                time_percent: percent(own.seconds as f64, opt.seconds as f64),
                product_percent: percent(own.product, opt.product),
            }),
        }
    }
}

/// The band of prices that covers the middle 90 % of the time: 5 % of it the price is lower, 5 %
/// higher.
#[must_use]
pub fn band(history: &PriceHistory) -> (Money, Money) {
    (history.quantile(0.05), history.quantile(0.95))
}

/// About `count` bids from `low` to `high`, even, each a multiple of a thousandth of a dollar (as
/// prices are), none twice. Where the band is narrower than that, its ends.
#[must_use]
pub fn bids(low: Money, high: Money, count: u32) -> Vec<Money> {
    const STEP: u64 = 1000;
    let (low, high) = (low.micros(), high.micros().max(low.micros()));
    if high - low < STEP {
        let ends = if low < high {
            vec![low, high]
        } else {
            vec![low]
        };
        return ends.into_iter().map(Money::from_micros).collect();
    }
    let pieces = u64::from(count.max(2) - 1);
    let mut bids: Vec<u64> = (0..=pieces)
        .map(|i| {
            let exact =
                u128::from(low) + u128::from(high - low) * u128::from(i) / u128::from(pieces);
            let exact = u64::try_from(exact).unwrap_or(high);
            // Half a thousandth up.
            ((exact + STEP / 2) / STEP * STEP).clamp(low, high)
        })
        .collect();
    bids.dedup();
    bids.into_iter().map(Money::from_micros).collect()
}
