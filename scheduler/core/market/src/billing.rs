//! What each instance-hour is charged.

use crate::PriceLine;
use ebbtide_model::{LifeEnd, Money, Seconds, Timestamp};
use serde::Serialize;

/// What is billed.
const HOUR: Seconds = Seconds(3600);
/// Longest life that is billed, in hours: a hundred years. It limits the output after a clock
/// error.
const MOST_HOURS: u32 = 876_600;

/// A life, with what a bill needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillableLife {
    /// When the instance was launched.
    pub launched_at: Timestamp,
    /// When and how it ended; `None` if it runs.
    pub ended: Option<(Timestamp, LifeEnd)>,
    /// True for preemptible instances: an hour that the provider ends early is free only for these.
    pub preemptible: bool,
    /// The flavor's price for an hour, which applies where there is no market.
    pub price_per_hour: Money,
}

/// Why an hour is charged as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// The instance ran the whole hour.
    Full,
    /// The owner ended the instance within the hour, which is charged in full.
    EndedByOwner,
    /// The provider ended the instance within the hour, which is free.
    EndedByProvider,
    /// The price at the beginning of the hour is not known any more, so nothing is charged.
    PriceUnknown,
}

impl Charge {
    /// The name of this reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::EndedByOwner => "ended-by-owner",
            Self::EndedByProvider => "ended-by-provider",
            Self::PriceUnknown => "price-unknown",
        }
    }
}

/// One hour of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BilledHour {
    /// The number of the hour, from 1.
    pub number: u32,
    /// When it began.
    pub from: Timestamp,
    /// When the hour ended, or the life within it.
    pub to: Timestamp,
    /// The price at the beginning of the hour.
    pub price: Option<Money>,
    /// The amount.
    pub charged: Money,
    /// The reason for the amount.
    pub charge: Charge,
}

/// The hours of a life that began before `now`. For an instance that still runs, only completed
/// hours: the charge of the last one depends on who ends it. `prices` is the market's price line of
/// the flavor, if there is a market.
pub fn hours<'l>(
    life: &'l BillableLife,
    prices: Option<&'l PriceLine>,
    now: Timestamp,
) -> impl Iterator<Item = BilledHour> + 'l {
    (1..=MOST_HOURS).map_while(move |number| hour(life, prices, number, now))
}

/// One of the [`hours`] of a life, by its number; `None` after the last one.
#[must_use]
pub fn hour(
    life: &BillableLife,
    prices: Option<&PriceLine>,
    number: u32,
    now: Timestamp,
) -> Option<BilledHour> {
    let until = life.ended.map_or(now, |(at, _)| at);
    let before = HOUR.0.saturating_mul(number.saturating_sub(1));
    let from = life.launched_at.plus(Seconds(before));
    let end = from.plus(HOUR);
    if from >= until {
        return None;
    }
    let charge = match life.ended {
        _ if end <= until => Charge::Full,
        None => return None,
        Some((_, LifeEnd::Deleted | LifeEnd::Stopped)) => Charge::EndedByOwner,
        Some(_) if life.preemptible => Charge::EndedByProvider,
        Some(_) => Charge::EndedByOwner,
    };
    let price = match prices.filter(|_| life.preemptible) {
        Some(line) => line.at(from),
        None => Some(life.price_per_hour),
    };
    let (charged, charge) = match (price, charge) {
        (_, Charge::EndedByProvider) => (Money::default(), charge),
        (Some(price), _) => (price, charge),
        (None, _) => (Money::default(), Charge::PriceUnknown),
    };
    Some(BilledHour {
        number,
        from,
        to: end.min(until),
        price,
        charged,
        charge,
    })
}

/// An exact sum of money, which may exceed the range of one price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    micros: u128,
}

impl Sum {
    pub fn add(&mut self, amount: Money) {
        self.micros += u128::from(amount.micros());
    }

    pub fn merge(&mut self, other: Self) {
        self.micros += other.micros;
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}.{:06}",
            self.micros / 1_000_000,
            self.micros % 1_000_000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::{FlavorId, PricePoint};
    use proptest::prelude::*;

    fn at(seconds: u32) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000).plus(Seconds(seconds))
    }

    fn life(seconds: u32, end: LifeEnd) -> BillableLife {
        BillableLife {
            launched_at: at(0),
            ended: Some((at(seconds), end)),
            preemptible: true,
            price_per_hour: "0.10".parse().unwrap(),
        }
    }

    fn line(points: &[(u32, &str)]) -> PriceLine {
        let points: Vec<PricePoint> = points
            .iter()
            .map(|(seconds, price)| PricePoint {
                flavor_id: FlavorId(uuid::Uuid::nil()),
                flavor: "spot".to_owned(),
                at: at(*seconds),
                price: price.parse().unwrap(),
                supply: 1,
                demand: 1,
            })
            .collect();
        PriceLine::new(&points)
    }

    fn charged(life: &BillableLife, prices: Option<&PriceLine>) -> Vec<(String, Charge)> {
        let all = hours(life, prices, at(1_000_000));
        all.map(|h| (h.charged.to_string(), h.charge)).collect()
    }

    #[test]
    fn the_last_partial_hour_is_free_if_the_provider_ends_it_and_full_if_its_owner_does() {
        use Charge::{EndedByOwner, EndedByProvider, Full};
        let full = || ("0.10".to_owned(), Full);
        let of = |seconds, end| charged(&life(seconds, end), None);
        let free = ("0.00".to_owned(), EndedByProvider);
        assert_eq!(of(5400, LifeEnd::Preempted), [full(), free.clone()]);
        assert_eq!(of(5400, LifeEnd::MaxLifetime), [full(), free.clone()]);
        assert_eq!(of(5400, LifeEnd::Lost), [full(), free]);
        assert_eq!(
            of(5400, LifeEnd::Stopped),
            of(5400, LifeEnd::Deleted),
            "the owner pays for the hour that it ended, either way"
        );
        assert_eq!(
            of(5400, LifeEnd::Deleted),
            [full(), ("0.10".to_owned(), EndedByOwner)]
        );
        // A completed hour is charged in full, regardless of who ends the life.
        assert_eq!(of(7200, LifeEnd::Preempted), [full(), full()]);
        assert_eq!(of(7200, LifeEnd::Deleted), [full(), full()]);
        assert_eq!(of(0, LifeEnd::Deleted), []);
    }

    #[test]
    fn the_price_of_an_hour_is_fixed_when_it_begins() {
        let prices = line(&[(0, "0.03"), (3599, "0.05"), (3601, "0.90")]);
        let hours: Vec<String> = charged(&life(10_000, LifeEnd::Deleted), Some(&prices))
            .into_iter()
            .map(|(charged, _)| charged)
            .collect();
        assert_eq!(hours, ["0.03", "0.05", "0.90"]);
    }

    #[test]
    fn an_hour_whose_price_is_not_known_any_more_says_so_and_costs_nothing() {
        let prices = line(&[(3600, "0.03")]);
        let hours = charged(&life(7200, LifeEnd::Deleted), Some(&prices));
        assert_eq!(hours[0], ("0.00".to_owned(), Charge::PriceUnknown));
        assert_eq!(hours[1], ("0.03".to_owned(), Charge::Full));
    }

    #[test]
    fn a_normal_instance_costs_what_its_flavor_says_and_one_that_runs_has_no_last_hour_yet() {
        let mut normal = life(5400, LifeEnd::Lost);
        normal.preemptible = false;
        let prices = line(&[(0, "0.03")]);
        assert_eq!(charged(&normal, Some(&prices)).len(), 2);
        assert_eq!(charged(&normal, Some(&prices))[1].0, "0.10");
        normal.ended = None;
        assert_eq!(hours(&normal, None, at(5400)).count(), 1);
        assert_eq!(hours(&normal, None, at(7200)).count(), 2);
    }

    proptest! {
        #[test]
        fn hours_follow_on_one_another_and_cover_the_life_exactly(
            seconds in 0_u32..2_000_000, end in 0_usize..4, preemptible: bool,
        ) {
            let life = BillableLife { preemptible, ..life(seconds, LifeEnd::ALL[end]) };
            let mut from = at(0);
            let mut sum = Sum::default();
            let mut full = 0_u128;
            for hour in hours(&life, None, at(u32::MAX)) {
                prop_assert_eq!(hour.from, from);
                prop_assert!(hour.to > hour.from && hour.to <= hour.from.plus(HOUR));
                from = hour.to;
                sum.add(hour.charged);
                full += 1;
            }
            prop_assert_eq!(from, at(seconds));
            let free = preemptible && life.ended.unwrap().1 != LifeEnd::Deleted && seconds % 3600 != 0;
            let expected = (full - u128::from(free)) * 100_000;
            prop_assert_eq!(sum.to_string(), format!("{}.{:06}", expected / 1_000_000, expected % 1_000_000));
        }
    }
}
