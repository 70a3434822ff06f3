//! The job and the terms of its servers.

use crate::DeadlineError;
use ebbtide_model::Money;

/// The longest time that is accepted, ten years in seconds: sums of costs cannot overflow.
pub const LONGEST_SECONDS: u64 = 10 * 366 * 86_400;

/// The highest price for an hour that is accepted, a million units: as above.
const HIGHEST_PRICE: u64 = 1_000_000_000_000;

/// Prices of an hour; every second is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourPrices {
    /// A preemptible server.
    pub spot: Money,
    /// An on-demand server.
    pub on_demand: Money,
}

/// What is known about a job before it starts. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobTerms {
    /// Time that the job needs on one server without any interruption.
    pub work: u64,
    /// From the start of the job's life until it must be done.
    pub deadline: u64,
    /// From the request of a server until the job makes progress on it: start, preparation, and the
    /// work since the last checkpoint that is done again.
    pub changeover: u64,
    /// Longest time between two decisions.
    pub poll: u64,
    /// Longest time between the loss of a server and the decision that knows of it. Work of this
    /// time counts as lost.
    pub loss_lag: u64,
    /// What servers cost.
    pub prices: HourPrices,
}

/// A job whose deadline can be met: on demand from the first second, it is done in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlineJob {
    terms: JobTerms,
}

impl DeadlineJob {
    /// Checks the terms.
    ///
    /// # Errors
    /// [`DeadlineError::Zero`] and [`DeadlineError::TooLong`] for a time, [`DeadlineError::Prices`]
    /// if a price is out of range or the preemptible price is above the on-demand price, and
    /// [`DeadlineError::Infeasible`] if work and one changeover do not fit before the deadline.
    pub fn new(terms: JobTerms) -> Result<Self, DeadlineError> {
        let positive = [("work", terms.work), ("poll interval", terms.poll)];
        for (what, seconds) in positive {
            if seconds == 0 {
                return Err(DeadlineError::Zero { what });
            }
        }
        let times = [
            ("work", terms.work),
            ("deadline", terms.deadline),
            ("changeover delay", terms.changeover),
            ("poll interval", terms.poll),
            ("loss lag", terms.loss_lag),
        ];
        for (what, seconds) in times {
            if seconds > LONGEST_SECONDS {
                return Err(DeadlineError::TooLong { what, seconds });
            }
        }
        let HourPrices { spot, on_demand } = terms.prices;
        if on_demand.micros() == 0 || on_demand.micros() > HIGHEST_PRICE || spot > on_demand {
            return Err(DeadlineError::Prices { spot, on_demand });
        }
        if terms.work + terms.changeover > terms.deadline {
            return Err(DeadlineError::Infeasible {
                work: terms.work,
                changeover: terms.changeover,
                deadline: terms.deadline,
            });
        }
        Ok(Self { terms })
    }

    #[must_use]
    pub fn terms(&self) -> &JobTerms {
        &self.terms
    }

    /// What the job costs on demand from its first second.
    #[must_use]
    pub fn on_demand_cost(&self) -> JobCost {
        let seconds = self.terms.work + self.terms.changeover;
        JobCost::of(seconds, self.terms.prices.on_demand)
    }
}

/// A sum of money, exact: millionths of the currency unit times seconds, for prices of an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobCost(u64);

impl JobCost {
    /// Seconds at a price of an hour.
    #[must_use]
    pub fn of(seconds: u64, hour: Money) -> Self {
        Self(seconds.saturating_mul(hour.micros()))
    }

    /// From millionths times seconds.
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As money, rounded up to a millionth.
    #[must_use]
    pub fn money(self) -> Money {
        Money::from_micros(self.0.div_ceil(3_600))
    }

    /// This cost over another one; 1 if both are zero.
    #[must_use]
    pub fn over(self, other: Self) -> f64 {
        if self == other {
            return 1.0;
        }
        self.0 as f64 / other.0 as f64
    }
}
