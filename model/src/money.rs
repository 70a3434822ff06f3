//! Money, exactly: integer millionths of the operator's currency unit. No binary floats.

use crate::ModelError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An amount that is not negative, in millionths of the currency unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u64);

/// Millionths in a whole unit.
const UNIT: u64 = 1_000_000;
/// A thousand million units: above any price for an hour, far below where sums could overflow.
const MAX: u64 = 1_000_000_000 * UNIT;

impl Money {
    /// From millionths of the currency unit, held at a thousand million units.
    #[must_use]
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.min(MAX))
    }

    /// Millionths of the currency unit.
    #[must_use]
    pub fn micros(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / UNIT, self.0 % UNIT);
        let short = text.trim_end_matches('0');
        // Two decimal places at least: people read cents.
        let shown = match short.split_once('.') {
            Some((whole, cents)) if cents.len() < 2 => format!("{whole}.{cents:0<2}"),
            _ => short.to_owned(),
        };
        f.write_str(&shown)
    }
}

impl FromStr for Money {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let refused = || ModelError::Money(crate::names::shorten(text));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
            return Err(refused());
        }
        let whole: u64 = whole.parse().map_err(|_| refused())?;
        let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| refused())?;
        match whole.checked_mul(UNIT).and_then(|w| w.checked_add(micros)) {
            Some(sum) if sum <= MAX => Ok(Self(sum)),
            _ => Err(refused()),
        }
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact_both_ways() {
        for (text, micros) in [
            ("0.10", 100_000),
            ("3.00", 3_000_000),
            ("0.000001", 1),
            ("12.345", 12_345_000),
        ] {
            let money: Money = text.parse().unwrap();
            assert_eq!(money.micros(), micros);
            assert_eq!(money.to_string(), text);
        }
        assert_eq!("7".parse::<Money>().unwrap().to_string(), "7.00");
    }

    #[test]
    fn what_is_not_money_is_refused() {
        for text in [
            "",
            "-1",
            "1,5",
            "1e3",
            "NaN",
            ".5",
            "5.",
            "0.0000001",
            "99999999999999999999",
        ] {
            assert!(text.parse::<Money>().is_err(), "{text:?} was taken");
        }
        let endless = "1".repeat(1_000_000).parse::<Money>().unwrap_err();
        assert!(endless.to_string().len() < 300, "a megabyte is shown");
    }
}
