//! Which prices are published, from supply and demand.

use crate::PriceRule;
use ebbtide_model::{Flavor, Money, PricePoint, Timestamp};

/// Supply and demand of a flavor, counted in instances of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupplyDemand {
    /// Instances that fit beside the normal instances, as if there were no preemptible ones.
    pub supply: u64,
    /// How much of the supply preemptible instances of any flavor occupy or wait for.
    pub demand: u64,
}

/// The price points to publish for a flavor at `now`, after the last one; empty if its price does
/// not change. The first ones include the price before the market opened, for bills.
#[must_use]
pub fn next_points(
    rule: &PriceRule,
    flavor: &Flavor,
    base: Money,
    last: Option<&PricePoint>,
    places: SupplyDemand,
    now: Timestamp,
) -> Vec<PricePoint> {
    let SupplyDemand { supply, demand } = places;
    let price = rule.next(last.map(|point| point.price), base, supply, demand);
    let point = |at, price| PricePoint {
        flavor_id: flavor.id,
        flavor: flavor.name.clone(),
        at,
        price,
        supply,
        demand,
    };
    match last {
        Some(last) if last.price == price => Vec::new(),
        Some(_) => vec![point(now, price)],
        None => vec![point(Timestamp::default(), base), point(now, price)],
    }
}

/// The price of a flavor for an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorPrice {
    /// The flavor's name.
    pub flavor: String,
    /// True if the market may change the price.
    pub preemptible: bool,
    /// The present price.
    pub price: Money,
    /// The price in the flavor's extra specs.
    pub base: Money,
    /// The lowest possible price.
    pub floor: Money,
    /// The highest possible price.
    pub ceiling: Money,
    /// The last change of the price, if there was one.
    pub last: Option<PricePoint>,
}

impl FlavorPrice {
    /// The price of a flavor and its limits. Without a rule, or for a flavor that is not
    /// preemptible, no market changes it.
    #[must_use]
    pub fn new(
        flavor: &Flavor,
        base: Money,
        price: Money,
        rule: Option<&PriceRule>,
        last: Option<&PricePoint>,
    ) -> Self {
        let preemptible = flavor.is_preemptible();
        let rule = rule.filter(|_| preemptible);
        Self {
            flavor: flavor.name.clone(),
            preemptible,
            price,
            base,
            floor: rule.map_or(price, |rule| rule.floor(base)),
            ceiling: rule.map_or(price, |rule| rule.ceiling(base)),
            last: rule.and(last).cloned(),
        }
    }
}
