//! When an instance with a bid can run.

use crate::history::PriceHistory;
use ebbtide_model::Money;

/// A span in which the price is not above the bid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Its first second.
    pub from: i64,
    /// When the price goes above the bid; `None` if the history ends before that.
    pub until: Option<i64>,
}

/// All spans in which an instance with this bid can run, in order. A price equal to the bid counts
/// as available (the paper leaves it open; Amazon ended instances when the price *exceeded* the
/// bid).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    periods: Vec<Period>,
    start: i64,
    end: i64,
}

impl Availability {
    /// The availability of `bid`.
    #[must_use]
    pub fn new(history: &PriceHistory, bid: Money) -> Self {
        let mut periods: Vec<Period> = Vec::new();
        let mut open: Option<i64> = None;
        for (time, price) in history.changes() {
            match (open, price <= bid) {
                (None, true) => open = Some(time),
                (Some(from), false) => {
                    periods.push(Period {
                        from,
                        until: Some(time),
                    });
                    open = None;
                }
                _ => {}
            }
        }
        if let Some(from) = open {
            periods.push(Period { from, until: None });
        }
        Self {
            periods,
            start: history.start(),
            end: history.end(),
        }
    }

    #[must_use]
    pub fn periods(&self) -> &[Period] {
        &self.periods
    }

    /// The period at `time`, or the next one after it.
    #[must_use]
    pub fn from(&self, time: i64) -> Option<Period> {
        let first = self
            .periods
            .partition_point(|period| period.until.is_some_and(|until| until <= time));
        self.periods.get(first).copied()
    }

    /// The periods that ended after `after` and not after `until`: (from, until).
    pub(crate) fn ended(&self, after: i64, until: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let first = self
            .periods
            .partition_point(|period| period.until.is_some_and(|end| end <= after));
        let ended = self.periods.iter().skip(first);
        ended
            .filter_map(|period| period.until.map(|end| (period.from, end)))
            .take_while(move |(_, end)| *end <= until)
    }

    /// How much of the history is available, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        let open: i64 = self
            .periods
            .iter()
            .map(|period| period.until.unwrap_or(self.end) - period.from)
            .sum();
        open as f64 / (self.end - self.start) as f64
    }
}
