//! Prices that change over time.

use super::{Outage, OutageEnd};
use crate::error::BagError;
use crate::input::Bag;
use crate::map::Market;
use crate::plan::Plan;
use ebbtide_model::Money;
use std::collections::BTreeMap;

/// The preemptible price of a type over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceTrace {
    /// From when, seconds since the begin, and what an hour costs from then on.
    points: Vec<(u64, Money)>,
}

impl PriceTrace {
    /// A trace of a type.
    ///
    /// # Errors
    /// [`BagError::Trace`] if there is no point, or if times do not rise.
    pub fn new(of: &str, points: Vec<(u64, Money)>) -> Result<Self, BagError> {
        let wrong = |problem: String| BagError::Trace {
            of: of.to_owned(),
            problem,
        };
        if points.is_empty() {
            return Err(wrong("there are none".to_owned()));
        }
        for pair in points.windows(2) {
            if let [(before, _), (after, _)] = pair
                && after <= before
            {
                return Err(wrong(format!(
                    "{after} s comes after {before} s; times have to rise"
                )));
            }
        }
        Ok(Self { points })
    }

    /// What an hour costs at a time; before the first point what that says.
    #[must_use]
    pub fn at(&self, time: u64) -> Money {
        let after = self.points.partition_point(|(from, _)| *from <= time);
        self.points[after.saturating_sub(1)].1
    }

    /// When the price is above `most`: from, to; `None` for ever.
    fn above(&self, most: Money) -> Vec<(u64, Option<u64>)> {
        let mut spans = Vec::new();
        let mut since = None;
        for (at, (time, price)) in self.points.iter().enumerate() {
            let time = if at == 0 { 0 } else { *time };
            match (since, *price > most) {
                (None, true) => since = Some(time),
                (Some(from), false) => {
                    spans.push((from, Some(time)));
                    since = None;
                }
                _ => {}
            }
        }
        if let Some(from) = since {
            spans.push((from, None));
        }
        spans
    }
}

/// The traces of types by their place in the bag; others have the price of their type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<usize, PriceTrace>);

impl Prices {
    /// What an hour of a type costs at a time.
    #[must_use]
    pub fn at(&self, bag: &Bag, ty: usize, market: Market, time: u64) -> Money {
        match (market, self.0.get(&ty)) {
            (Market::Preemptible, Some(trace)) => trace.at(time),
            _ => market.hourly(bag, ty).unwrap_or_default(),
        }
    }

    /// The hibernations of a plan whose instances freeze while their price is above `most` for an
    /// hour.
    #[must_use]
    pub fn outages(&self, plan: &Plan, most: Money) -> Vec<Outage> {
        let mut outages = Vec::new();
        for (vm, planned) in plan.vms.iter().enumerate() {
            if planned.vm.market != Market::Preemptible {
                continue;
            }
            let Some(trace) = self.0.get(&planned.vm.ty) else {
                continue;
            };
            for (from, to) in trace.above(most) {
                let end = to.map_or(OutageEnd::Never, OutageEnd::Resumes);
                outages.push(Outage { vm, from, end });
            }
        }
        outages
    }
}
