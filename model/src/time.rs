//! Points and spans of time.
//!
//! A [`Timestamp`] counts milliseconds since the Unix epoch, in UTC. It is an integer so that ages,
//! deadlines and ties are exact, and so that every database stores it alike.

use crate::ModelError;
use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Milliseconds since 1970-01-01T00:00:00Z. Written as RFC 3339 for people and in messages, as an
/// integer in tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The last millisecond of the year 9999: what RFC 3339 can still write.
const MAX_MILLIS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// From milliseconds since the epoch, held within the years 1970 to 9999.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, MAX_MILLIS))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Milliseconds from `earlier` to `self`; zero if `earlier` is in fact later (clocks of two
    /// machines differ).
    #[must_use]
    pub fn millis_since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0).max(0)
    }

    /// This time plus a span.
    #[must_use]
    pub fn plus(self, span: Seconds) -> Self {
        Self::from_millis(self.0.saturating_add(span.as_millis()))
    }

    /// This time minus a span, not before the epoch.
    #[must_use]
    pub fn minus(self, span: Seconds) -> Self {
        Self::from_millis(self.0.saturating_sub(span.as_millis()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .map_err(|_| fmt::Error)?;
        f.write_str(&moment.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let refused = || ModelError::Timestamp(crate::names::shorten(text));
        let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| refused())?;
        let millis = i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000))
            .map_err(|_| refused())?;
        if (0..=MAX_MILLIS).contains(&millis) {
            Ok(Self(millis))
        } else {
            Err(refused())
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A span of whole seconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seconds(pub u32);

impl Seconds {
    /// The span in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        i64::from(self.0) * 1000
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_and_read_as_rfc_3339() {
        let t = Timestamp::from_millis(1_771_000_000_123);
        assert_eq!(t.to_string(), "2026-02-13T16:26:40.123Z");
        assert_eq!(t.to_string().parse::<Timestamp>().unwrap(), t);
        assert_eq!(
            "2026-02-13T17:26:40.123+01:00"
                .parse::<Timestamp>()
                .unwrap(),
            t
        );
    }

    #[test]
    fn absurd_times_are_refused_or_held() {
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert!("1969-12-31T23:59:59Z".parse::<Timestamp>().is_err());
        assert_eq!(
            Timestamp::from_millis(i64::MAX).to_string(),
            "9999-12-31T23:59:59.999Z"
        );
        assert_eq!(
            Timestamp::from_millis(5).minus(Seconds(9)),
            Timestamp::from_millis(0)
        );
    }

    #[test]
    fn time_never_runs_backwards() {
        assert_eq!(
            Timestamp::from_millis(1).millis_since(Timestamp::from_millis(7)),
            0
        );
    }
}
