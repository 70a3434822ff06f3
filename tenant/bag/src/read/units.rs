//! Durations and prices as people write them.

use ebbtide_model::Money;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt;

/// A duration in seconds, rounded up: `90s`, `90`, `15m`, `7.5h`, `2d`.
///
/// # Errors
/// What is wrong, in words.
pub fn duration(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text:?} is no duration; write a number and a unit, as in 90s, 15m, 7.5h or 2d, not negative and at most ten years"
        )
    };
    let text = text.trim();
    let (number, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    // Floats round 49.31 h to a hair above whole seconds.
    let seconds = (number * factor - 1e-6).ceil().max(0.0);
    if !number.is_finite() || number < 0.0 || seconds > crate::input::LONGEST as f64 {
        return Err(wrong());
    }
    Ok(seconds as u64)
}

/// A price for an hour.
///
/// # Errors
/// What is wrong, in words.
pub fn price(text: &str) -> Result<Money, String> {
    text.trim().parse().map_err(|_| {
        format!("{text:?} is no price; write a decimal number, not negative, with at most six decimal places")
    })
}

struct Written<T> {
    read: fn(&str) -> Result<T, String>,
    what: &'static str,
}

impl<T> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(E::custom)
    }

    // A number comes to text as it was written: the shortest text that gives the same float.
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        (self.read)(&number.to_string()).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        (self.read)(&number.to_string()).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.read)(&number.to_string()).map_err(E::custom)
    }
}

/// A duration in a file, seconds; a number or text.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(
    /// Seconds.
    pub u64,
);

impl<'de> serde::Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written {
            read: duration,
            what: "a duration, such as \"7.5h\"",
        };
        deserializer.deserialize_any(written).map(Self)
    }
}

/// A price in a file; a number or text.
#[derive(Debug, Clone, Copy)]
pub struct PriceField(pub Money);

impl<'de> serde::Deserialize<'de> for PriceField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written {
            read: price,
            what: "a price, such as 0.235",
        };
        deserializer.deserialize_any(written).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units_and_rounded_up_to_seconds() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("15m", 900),
            ("49.31h", 177_516),
            ("0.3s", 1),
            ("2 d", 172_800),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(seconds), "{text}");
        }
        for text in ["", "h", "-1h", "NaN", "inf", "1e300", "eleven", "1w", "11y"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prices_are_exact() {
        assert_eq!(price("0.235").unwrap().micros(), 235_000);
        for text in ["-1", "NaN", "0.0000001", "1e-3", "", "dear"] {
            assert!(price(text).is_err(), "{text}");
        }
    }
}
