//! Prices from supply and demand.

use ebbtide_model::settings::{OutOfRange, check_ranges};
use ebbtide_model::{Money, Seconds};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One, in millionths, the unit of shares.
const ONE: u64 = 1_000_000;

ebbtide_model::settings! {
    /// How prices are set. Percentages are of the flavor's price for an hour
    /// (`ebbtide:price_per_hour`).
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct MarketConfig: Default {
        /// Whether the price of an hour of a preemptible flavor follows supply and demand; false:
        /// it is what the flavor says (ebbtide:price_per_hour).
        pub enabled: bool = false => key("true");
        /// How often prices are made. They change at whole multiples of it since 1970.
        pub interval_seconds: Seconds = Seconds(300) => key("60").range(1..=86_400);
        /// The price without demand, of what the flavor says. Not above `ceiling_percent`.
        pub floor_percent: u32 = 10 => key("20").range(0..=1000);
        /// The price while everything is taken, of what the flavor says. Not below `floor_percent`.
        // An owner who does not pay more than this for a normal instance does not pay more for
        // a preemptible one.
        pub ceiling_percent: u32 = 100 => key("80").range(1..=1000);
        /// How late the price rises: the share that is taken, to the power of this, is the way from
        /// floor to ceiling.
        pub steepness: u32 = 4 => key("2").range(1..=32);
        /// How far the price goes towards where it belongs at each interval, of the way.
        pub step_percent: u32 = 25 => key("100").range(1..=100);
    }
}

/// A configuration value out of range.
#[derive(Debug, Clone, PartialEq, Error)]
#[error(transparent)]
pub struct MarketError(#[from] OutOfRange);

impl MarketConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key that is out of range.
    pub fn check(&self) -> Result<(), MarketError> {
        let wrong = |range: OutOfRange| MarketError(range.within("market"));
        check_ranges(self).map_err(wrong)?;
        if self.floor_percent > self.ceiling_percent {
            return Err(wrong(OutOfRange {
                key: "floor_percent".to_owned(),
                value: f64::from(self.floor_percent),
                least: 0.0,
                most: f64::from(self.ceiling_percent),
            }));
        }
        Ok(())
    }
}

/// A checked configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRule {
    config: MarketConfig,
}

impl PriceRule {
    /// The rule of a configuration.
    ///
    /// # Errors
    /// See [`MarketConfig::check`].
    pub fn new(config: MarketConfig) -> Result<Self, MarketError> {
        config.check()?;
        Ok(Self { config })
    }

    /// Interval between price changes.
    #[must_use]
    pub fn interval(&self) -> Seconds {
        self.config.interval_seconds
    }

    /// The lowest price of a flavor with the base price `base`.
    #[must_use]
    pub fn floor(&self, base: Money) -> Money {
        percent_of(base, self.config.floor_percent)
    }

    /// The highest price of a flavor with the base price `base`.
    #[must_use]
    pub fn ceiling(&self, base: Money) -> Money {
        percent_of(base, self.config.ceiling_percent)
    }

    /// The target price of a flavor. Without supply, all of it counts as taken.
    #[must_use]
    pub fn target(&self, base: Money, supply: u64, demand: u64) -> Money {
        let taken = if supply == 0 || demand >= supply {
            ONE
        } else {
            scaled(demand, ONE, supply)
        };
        let mut way = ONE;
        for _ in 0..self.config.steepness {
            way = scaled(way, taken, ONE);
        }
        let (low, high) = (self.floor(base).micros(), self.ceiling(base).micros());
        Money::from_micros(low + scaled(high - low, way, ONE))
    }

    /// The next price after `before`; the first price is the target. The price reaches its target,
    /// never overshoots it, and stays between floor and ceiling, even if those have changed.
    #[must_use]
    pub fn next(&self, before: Option<Money>, base: Money, supply: u64, demand: u64) -> Money {
        let target = self.target(base, supply, demand);
        let Some(before) = before else {
            return target;
        };
        let (from, to) = (before.micros(), target.micros());
        // At least a millionth, so that it arrives.
        let step = scaled(from.abs_diff(to), u64::from(self.config.step_percent), 100).max(1);
        let next = if to > from {
            to.min(from.saturating_add(step))
        } else {
            to.max(from.saturating_sub(step))
        };
        let (low, high) = (self.floor(base).micros(), self.ceiling(base).micros());
        Money::from_micros(next.clamp(low, high))
    }
}

fn percent_of(base: Money, percent: u32) -> Money {
    Money::from_micros(scaled(base.micros(), u64::from(percent), 100))
}

/// `n × by / of`, rounded down, without overflow.
fn scaled(n: u64, by: u64, of: u64) -> u64 {
    let exact = u128::from(n) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    fn rule(change: impl FnOnce(&mut MarketConfig)) -> PriceRule {
        let mut config = MarketConfig::default();
        change(&mut config);
        PriceRule::new(config).unwrap()
    }

    #[test]
    fn a_price_goes_from_floor_to_ceiling_with_the_share_that_is_taken() {
        let rule = rule(|_| ());
        let of = |demand| rule.target(money("1"), 100, demand).to_string();
        assert_eq!(of(0), "0.10");
        // A half to the fourth power is a sixteenth of the way.
        assert_eq!(of(50), "0.15625");
        assert_eq!(of(90), "0.69049");
        assert_eq!(of(100), "1.00");
        assert_eq!(of(250), "1.00", "more are wanted than there are");
        assert_eq!(rule.target(money("1"), 0, 0), money("1"), "nothing is left");
    }

    #[test]
    fn it_goes_a_part_of_the_way_each_time_and_arrives() {
        let rule = rule(|c| c.step_percent = 50);
        let mut price = rule.next(None, money("1"), 10, 0);
        assert_eq!(price, money("0.1"));
        price = rule.next(Some(price), money("1"), 10, 10);
        assert_eq!(price, money("0.55"));
        let mut steps = 1;
        while price != money("1") {
            price = rule.next(Some(price), money("1"), 10, 10);
            steps += 1;
        }
        assert!(steps < 25, "{steps}");
    }

    #[test]
    fn a_key_out_of_range_is_named_with_its_range() {
        let config = MarketConfig {
            floor_percent: 101,
            ..MarketConfig::default()
        };
        let said = config.check().unwrap_err().to_string();
        assert_eq!(said, "market.floor_percent = 101: use 0 to 100");
    }

    proptest! {
        #[test]
        fn prices_stay_between_floor_and_ceiling_and_never_fall_when_more_is_wanted(
            base in 0_u64..=1_000_000_000_000_000, before in proptest::option::of(0_u64..=1_000_000_000_000_000),
            supply: u64, demand: u64, more: u64, steepness in 1_u32..=32, step in 1_u32..=100,
            (floor, ceiling) in (0_u32..=1000).prop_flat_map(|c| (0..=c.max(1), Just(c.max(1)))),
        ) {
            let rule = rule(|c| {
                (c.steepness, c.step_percent) = (steepness, step);
                (c.floor_percent, c.ceiling_percent) = (floor, ceiling);
            });
            let (base, before) = (Money::from_micros(base), before.map(Money::from_micros));
            let next = rule.next(before, base, supply, demand);
            prop_assert!(rule.floor(base) <= next && next <= rule.ceiling(base));
            let dearer = rule.next(before, base, supply, demand.saturating_add(more));
            prop_assert!(dearer >= next);
        }
    }
}
