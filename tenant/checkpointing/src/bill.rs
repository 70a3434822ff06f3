//! What an instance costs.

use crate::history::PriceHistory;
use ebbtide_model::Money;

/// An instance-hour, in seconds.
pub const HOUR_SECONDS: i64 = 3600;

/// Who ended an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminatedBy {
    /// The provider, because the price went above the bid: the last hour is free unless it is
    /// complete.
    Provider,
    /// The user, or the job that was done: the last hour is charged in full.
    User,
}

/// What one instance cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// The price of each hour that is charged.
    pub hours: Vec<Money>,
    /// Their sum.
    pub total: Money,
}

/// The bill of an instance from `launch` to `end`: every instance-hour costs what the price was
/// when that hour began.
#[must_use]
pub fn bill(history: &PriceHistory, launch: i64, end: i64, by: TerminatedBy) -> Bill {
    let hours: Vec<Money> = hours(history, launch, end, by).collect();
    let total = hours
        .iter()
        .fold(0_u64, |sum, price| sum.saturating_add(price.micros()));
    Bill {
        hours,
        total: Money::from_micros(total),
    }
}

/// The same without the list: (hours, millionths).
pub(crate) fn charge(
    history: &PriceHistory,
    launch: i64,
    end: i64,
    by: TerminatedBy,
) -> (u64, u64) {
    hours(history, launch, end, by).fold((0, 0_u64), |(hours, sum), price| {
        (hours + 1, sum.saturating_add(price.micros()))
    })
}

fn hours(
    history: &PriceHistory,
    launch: i64,
    end: i64,
    by: TerminatedBy,
) -> impl Iterator<Item = Money> + '_ {
    let span = (end - launch).max(0);
    let complete = span / HOUR_SECONDS;
    let begun = i64::from(span % HOUR_SECONDS > 0);
    let hours = match by {
        TerminatedBy::Provider => complete,
        TerminatedBy::User => complete + begun,
    };
    (0..hours).map(move |hour| history.price_at(launch + hour * HOUR_SECONDS))
}
