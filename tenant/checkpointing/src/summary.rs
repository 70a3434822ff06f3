//! Many bids and many series in a few figures, as the paper states its results.

use crate::compare::{BidComparison, OptComparison};
use crate::scheme::SchemeKind;

/// A mean with the least and the greatest value that went into it, per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of some values; `None` if there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut count = 0_u32;
        let mut spread = Self {
            mean: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        };
        for value in values {
            count += 1;
            spread.mean += value;
            spread.min = spread.min.min(value);
            spread.max = spread.max.max(value);
        }
        spread.mean /= f64::from(count);
        (count > 0).then_some(spread)
    }
}

/// A scheme against OPT, over many bids or series. All in per cent above OPT.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchemeSummary {
    pub kind: SchemeKind,
    /// How many bids (or series) went into it.
    pub of: usize,
    pub cost: Spread,
    /// Time from start to end.
    pub time: Spread,
    /// Product of both.
    pub product: Spread,
}

/// A scheme over the bids of one series. A bid counts if from at least half of the starts both the
/// scheme and OPT finish: with bids that were met only for a while at the beginning of a history, a
/// handful of starts would weigh as much as a whole year. `None` if no bid counts.
#[must_use]
pub fn over_bids(rows: &[BidComparison], kind: SchemeKind) -> Option<SchemeSummary> {
    let counted: Vec<OptComparison> = rows
        .iter()
        .filter_map(|row| {
            let against = row.of(kind)?.against_opt?;
            (2 * against.starts >= row.starts).then_some(against)
        })
        .collect();
    let spread = |value: fn(&OptComparison) -> f64| Spread::of(counted.iter().map(value));
    Some(SchemeSummary {
        kind,
        of: counted.len(),
        cost: spread(|a| a.cost_percent)?,
        time: spread(|a| a.time_percent)?,
        product: spread(|a| a.product_percent)?,
    })
}

/// A scheme over many series: the mean of their means, each series alike. `None` if there are none.
#[must_use]
pub fn over_series(kind: SchemeKind, series: &[SchemeSummary]) -> Option<SchemeSummary> {
    let own: Vec<&SchemeSummary> = series.iter().filter(|one| one.kind == kind).collect();
    let spread = |value: fn(&SchemeSummary) -> f64| Spread::of(own.iter().map(|one| value(one)));
    Some(SchemeSummary {
        kind,
        of: own.len(),
        cost: spread(|one| one.cost.mean)?,
        time: spread(|one| one.time.mean)?,
        product: spread(|one| one.product.mean)?,
    })
}
