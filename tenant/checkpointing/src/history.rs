//! A price over time.

use crate::error::CheckpointingError;
use ebbtide_model::Money;

/// A price that changes at known times and holds in between.
///
/// Invariants: at least one change; times rise strictly; the end lies after the last change or at
/// it, and after the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceHistory {
    times: Vec<i64>,
    prices: Vec<Money>,
    end: i64,
}

impl PriceHistory {
    /// The price that changes as `changes` say, (time, price), and holds until `end`.
    ///
    /// # Errors
    /// [`CheckpointingError::Empty`], [`CheckpointingError::Unsorted`],
    /// [`CheckpointingError::Duplicate`]; [`CheckpointingError::Question`] for an end that is not
    /// after the beginning.
    pub fn new(changes: &[(i64, Money)], end: i64) -> Result<Self, CheckpointingError> {
        Self::placed(changes, end, |i| format!("price {}", i + 1))
    }

    /// The same with `place` saying where change `i` stands, for errors.
    pub(crate) fn placed(
        changes: &[(i64, Money)],
        end: i64,
        place: impl Fn(usize) -> String,
    ) -> Result<Self, CheckpointingError> {
        let Some((first, last)) = changes.first().zip(changes.last()) else {
            return Err(CheckpointingError::Empty);
        };
        for (i, pair) in changes.windows(2).enumerate() {
            let [before, now] = pair else { continue };
            if now.0 == before.0 {
                return Err(CheckpointingError::Duplicate {
                    place: place(i + 1),
                    time: now.0,
                    first: before.1.to_string(),
                    second: now.1.to_string(),
                });
            }
            if now.0 < before.0 {
                return Err(CheckpointingError::Unsorted {
                    place: place(i + 1),
                    time: now.0,
                    before: before.0,
                });
            }
        }
        if end < last.0 || end <= first.0 {
            return Err(CheckpointingError::Question {
                what: "the end of the price history",
                value: end.to_string(),
                allowed: format!("after {}, when its last price begins", last.0),
            });
        }
        Ok(Self {
            times: changes.iter().map(|(time, _)| *time).collect(),
            prices: changes.iter().map(|(_, price)| *price).collect(),
            end,
        })
    }

    /// When it begins, seconds.
    #[must_use]
    pub fn start(&self) -> i64 {
        self.times.first().copied().unwrap_or(self.end)
    }

    /// When it ends, seconds. Nothing is known of the price from there on.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// How many prices it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Never true: a history without prices cannot be made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The changes, (time, price), in order.
    pub fn changes(&self) -> impl Iterator<Item = (i64, Money)> + '_ {
        self.times.iter().copied().zip(self.prices.iter().copied())
    }

    /// Each price with the span over which it held: (from, until, price).
    pub fn spans(&self) -> impl Iterator<Item = (i64, i64, Money)> + '_ {
        let until = self.times.iter().skip(1).copied().chain([self.end]);
        self.changes()
            .zip(until)
            .map(|((from, price), until)| (from, until, price))
    }

    /// The price at a time; before the beginning the first one, after the end the last one.
    #[must_use]
    pub fn price_at(&self, time: i64) -> Money {
        self.prices.get(self.at(time)).copied().unwrap_or_default()
    }

    /// The place of the price that holds at a time.
    fn at(&self, time: i64) -> usize {
        self.times.partition_point(|t| *t <= time).saturating_sub(1)
    }

    /// The first time after `time` (not at it) when the price rises to something not above
    /// `ceiling`, and is at once the next rise at all: a rise beyond the ceiling ends the search.
    #[must_use]
    pub(crate) fn next_rise(&self, time: i64, ceiling: Money) -> Option<i64> {
        let from = self.at(time);
        let pairs = self.prices.iter().zip(self.prices.iter().skip(1));
        let times = self.times.iter().skip(1);
        for ((before, now), at) in pairs.zip(times).skip(from) {
            if now > before && *at > time {
                return (*now <= ceiling).then_some(*at);
            }
        }
        None
    }

    /// The lowest price and the highest.
    #[must_use]
    pub fn extremes(&self) -> (Money, Money) {
        let low = self.prices.iter().min().copied().unwrap_or_default();
        let high = self.prices.iter().max().copied().unwrap_or_default();
        (low, high)
    }

    /// The price below or at which it was for a `share` of the time (0 to 1).
    #[must_use]
    pub fn quantile(&self, share: f64) -> Money {
        let mut held: Vec<(Money, i64)> = self
            .spans()
            .map(|(from, until, price)| (price, until - from))
            .collect();
        held.sort_unstable();
        let wanted = share.clamp(0.0, 1.0) * (self.end - self.start()) as f64;
        let mut sum = 0_i64;
        for (price, span) in &held {
            sum += span;
            if sum as f64 >= wanted {
                return *price;
            }
        }
        self.extremes().1
    }

    /// The mean price over the times when it was not above `bid`, weighted with how long it held;
    /// `None` if it never was.
    #[must_use]
    pub fn mean_up_to(&self, bid: Money) -> Option<f64> {
        let (mut weight, mut sum) = (0_i64, 0_i128);
        for (from, until, price) in self.spans().filter(|(_, _, price)| *price <= bid) {
            weight += until - from;
            sum += i128::from(price.micros()) * i128::from(until - from);
        }
        (weight > 0).then(|| sum as f64 / weight as f64 / 1e6)
    }
}
