//! Microversions: which behaviour of an API is asked for.

use std::fmt;
use std::str::FromStr;

/// For example 1.36. Ordered by number, so that 1.9 is before 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microversion {
    /// What stands before the dot.
    pub major: u16,
    /// What stands behind the dot.
    pub minor: u16,
}

impl Microversion {
    /// From its two numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Microversion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse::<u16>().ok()).flatten()
        };
        text.split_once('.')
            .and_then(|(major, minor)| Some(Self::new(number(major)?, number(minor)?)))
            .ok_or_else(|| "no microversion like 1.36".to_owned())
    }
}

/// What a service supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The oldest.
    pub min: Microversion,
    /// The newest.
    pub max: Microversion,
}

impl VersionRange {
    /// Whether the service knows this one.
    #[must_use]
    pub fn contains(&self, version: Microversion) -> bool {
        self.min <= version && version <= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microversions_are_ordered_by_number_and_not_by_letter() {
        let old: Microversion = "1.9".parse().unwrap();
        let new: Microversion = "1.36".parse().unwrap();
        assert!(old < new);
        assert_eq!(new.to_string(), "1.36");
    }

    #[test]
    fn what_is_no_microversion_is_refused() {
        for text in [
            "", "1", "1.", ".1", "1.2.3", "+1.2", "1.99999", "latest", "1. 2",
        ] {
            assert!(text.parse::<Microversion>().is_err(), "{text:?} was taken");
        }
    }
}
