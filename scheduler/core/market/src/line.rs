//! The price of a flavor over time.

use ebbtide_model::{Money, PricePoint, Timestamp};

/// Prices in the order of time, each valid until the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceLine {
    points: Vec<(Timestamp, Money)>,
}

impl PriceLine {
    /// A line from points in any order. Of two points of the same moment the later one in the list
    /// applies.
    #[must_use]
    pub fn new<'p>(points: impl IntoIterator<Item = &'p PricePoint>) -> Self {
        let mut points: Vec<_> = points.into_iter().map(|p| (p.at, p.price)).collect();
        // The sort is stable, so the later one stays the later.
        points.sort_by_key(|(at, _)| *at);
        Self { points }
    }

    /// The price at a moment; `None` before the first known price.
    #[must_use]
    pub fn at(&self, moment: Timestamp) -> Option<Money> {
        let after = self.points.partition_point(|(at, _)| *at <= moment);
        let last = after.checked_sub(1)?;
        self.points.get(last).map(|(_, price)| *price)
    }

    /// True if no price is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}
