//! The failure density of a bid: how long instances with it have lived.

use crate::availability::Availability;

/// The lives that instances with one bid would have had, each launched when the price came down to
/// the bid and ended when it went above: the failure density f of Yi et al. in the form of its
/// sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BidLifetimes {
    /// Ended lives, seconds, rising.
    ended: Vec<i64>,
    /// All seconds of the ended lives.
    seconds: i64,
}

impl BidLifetimes {
    /// The lives of a bid that had ended by `time`.
    #[must_use]
    pub fn until(availability: &Availability, time: i64) -> Self {
        let mut lives = Self::default();
        for period in availability.periods() {
            if let Some(until) = period.until.filter(|until| *until <= time) {
                lives.add(until - period.from);
            }
        }
        lives
    }

    /// One more that ended at the age of `seconds`.
    pub fn add(&mut self, seconds: i64) {
        let place = self.ended.partition_point(|life| *life < seconds);
        self.ended.insert(place, seconds);
        self.seconds += seconds;
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ended.len()
    }

    /// True if none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }

    /// Mean life in seconds; `None` if none is known.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.seconds as f64 / self.ended.len() as f64)
    }

    /// How many lives ended before the age of `age` seconds.
    fn below(&self, age: i64) -> usize {
        self.ended.partition_point(|life| *life < age)
    }

    /// F, the chance that a life ends before the age of `age` seconds. Zero if no life is known.
    #[must_use]
    pub fn chance_before(&self, age: i64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        self.below(age) as f64 / self.ended.len() as f64
    }

    /// The chance that an instance that is alive at the age of `age` seconds ends within
    /// `from..=until` seconds from now.
    ///
    /// If no known life was that long, the method uses the rate of all lives (an exponential
    /// distribution with their mean). Otherwise an instance older than all known lives would be
    /// certain to live for ever.
    #[must_use]
    pub fn chance_within(&self, age: i64, from: i64, until: i64) -> f64 {
        let older = self.ended.len() - self.below(age + 1);
        if older > 0 {
            let ended = self
                .below(age + until + 1)
                .saturating_sub(self.below(age + from.max(1)));
            return ended as f64 / older as f64;
        }
        match self.mean() {
            Some(mean) if mean > 0.0 => {
                (-(from as f64) / mean).exp() - (-(until as f64) / mean).exp()
            }
            _ => 0.0,
        }
    }

    /// f, the share of lives that ended in step `k` of `step` seconds, for k from 0 on.
    pub fn density(&self, step: i64) -> impl Iterator<Item = f64> + '_ {
        (0..).map(move |k: i64| self.chance_before((k + 1) * step) - self.chance_before(k * step))
    }
}
