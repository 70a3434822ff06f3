//! RPC versions such as `4.5` and when a server understands a request (oslo_messaging/_utils.py,
//! `version_is_compatible`).

use std::fmt;
use std::str::FromStr;

use crate::MessagingError;

/// `MAJOR.MINOR` or `MAJOR.MINOR.REVISION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RpcVersion {
    /// A server understands its own major version only.
    pub major: u32,
    /// A server understands every minor version up to its own.
    pub minor: u32,
    /// Almost never used; 0 if it is not written.
    pub revision: u32,
}

impl RpcVersion {
    /// `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self {
            major,
            minor,
            revision: 0,
        }
    }

    /// Whether an implementation of this version understands a message of version `wanted`.
    #[must_use]
    pub fn understands(self, wanted: Self) -> bool {
        self.major == wanted.major
            && (wanted.minor < self.minor
                || (wanted.minor == self.minor && wanted.revision <= self.revision))
    }
}

impl From<(u32, u32)> for RpcVersion {
    fn from((major, minor): (u32, u32)) -> Self {
        Self::new(major, minor)
    }
}

impl fmt::Display for RpcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.revision > 0 {
            write!(f, ".{}", self.revision)?;
        }
        Ok(())
    }
}

impl FromStr for RpcVersion {
    type Err = MessagingError;

    fn from_str(text: &str) -> Result<Self, MessagingError> {
        let invalid = || MessagingError::InvalidTarget {
            reason: format!("{text:?} is no version; it must be MAJOR.MINOR, for example 4.5"),
        };
        let mut parts = text.split('.');
        let mut number = |needed: bool| match parts.next() {
            // `parse` would also take "+4".
            Some(part) if part.bytes().all(|b| b.is_ascii_digit()) => {
                part.parse().map_err(|_| invalid())
            }
            None if !needed => Ok(0),
            _ => Err(invalid()),
        };
        let version = Self {
            major: number(true)?,
            minor: number(true)?,
            revision: number(false)?,
        };
        // Python reads three parts and ignores the rest. Real versions have at most three, so more
        // are an error here.
        if parts.next().is_some() {
            return Err(invalid());
        }
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> RpcVersion {
        text.parse().unwrap()
    }

    #[test]
    fn a_server_understands_its_major_version_up_to_its_minor_one() {
        let cases = [
            ("4.5", "4.5", true),
            ("4.5", "4.0", true),
            ("4.5", "4.6", false),
            ("4.5", "4.99", false),
            ("4.5", "5.0", false),
            ("4.5", "3.5", false),
            ("1.1", "1.0", true),
            ("2.0", "2.0.1", false),
            ("2.0.1", "2.0.1", true),
            ("2.1", "2.0.9", true),
        ];
        for (own, wanted, expected) in cases {
            assert_eq!(
                version(own).understands(version(wanted)),
                expected,
                "{own} and {wanted}"
            );
        }
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in [
            "",
            "4",
            "4.",
            ".5",
            "4.x",
            "4.-1",
            "+4.5",
            "4.5.6.7",
            "99999999999.1",
            " 4.5",
        ] {
            assert_eq!(
                text.parse::<RpcVersion>().unwrap_err().code(),
                "EB-OSLO-013",
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_version_is_read_as_it_is_written(major: u32, minor: u32, revision: u32) {
            let version = RpcVersion { major, minor, revision };
            prop_assert_eq!(version.to_string().parse::<RpcVersion>().unwrap(), version);
        }
    }
}
