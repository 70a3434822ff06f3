//! Which bids.

use ebbtide_checkpointing::{PriceHistory, band, bids};
use ebbtide_model::Money;
use std::str::FromStr;

/// A range of bids, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Bids {
    /// From one to the other, cut evenly.
    Range(Money, Money),
    /// These.
    List(Vec<Money>),
}

impl Bids {
    /// The bids, rising.
    pub(in crate::commands) fn list(&self, count: u32) -> Vec<Money> {
        match self {
            Self::Range(low, high) => bids(*low, *high, count),
            Self::List(list) => {
                let mut list = list.clone();
                list.sort_unstable();
                list.dedup();
                list
            }
        }
    }

    /// Bids over the band in which a price is for the middle 90 % of the time.
    pub(in crate::commands) fn band(history: &PriceHistory, count: u32) -> Vec<Money> {
        let (low, high) = band(history);
        bids(low, high, count)
    }
}

impl FromStr for Bids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let price = |part: &str| {
            part.trim().parse::<Money>().map_err(|_| {
                format!(
                    "{part:?} is no bid: dollars for an hour, not negative, at most six decimals"
                )
            })
        };
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (price(low)?, price(high)?);
            if low > high {
                return Err(format!("from {low} to {high} there is no bid"));
            }
            return Ok(Self::Range(low, high));
        }
        text.split(',')
            .map(price)
            .collect::<Result<_, _>>()
            .map(Self::List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bids_are_a_range_or_a_list() {
        let list = |text: &str, count| -> Vec<String> {
            let bids: Bids = text.parse().unwrap();
            bids.list(count).iter().map(ToString::to_string).collect()
        };
        assert_eq!(list("0.401..0.405", 3), ["0.401", "0.403", "0.405"]);
        assert_eq!(list("0.5,0.41, 0.5", 9), ["0.41", "0.50"]);
        for text in [
            "",
            "0.4..",
            "..1",
            "0.5..0.4",
            "NaN",
            "-0.1..0.4",
            "0.4,",
            "a",
        ] {
            assert!(text.parse::<Bids>().is_err(), "{text}");
        }
    }
}
