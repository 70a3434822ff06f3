//! Why a claim does not stay.

use std::fmt;

/// Why a claim that Placement has taken is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimFault {
    /// Another writer has changed the host since it was read, so another host may be better now.
    HostChanged,
    /// Another scheduler's claim met this one, and both are too much.
    TooMuch,
    /// Victims of a preemption still run there: this much would be used.
    Overfull(String),
}

impl ClaimFault {
    /// The label of the metric that counts it beside `refused`.
    pub(super) fn metric(&self) -> Option<&'static str> {
        match self {
            Self::HostChanged => Some("stale"),
            Self::TooMuch => None,
            Self::Overfull(_) => Some("overfull"),
        }
    }
}

impl fmt::Display for ClaimFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostChanged => f.write_str("the host has changed since it was read"),
            Self::TooMuch => f.write_str("another scheduler claimed there, and both are too much"),
            Self::Overfull(what) => {
                write!(f, "victims of a preemption still run there: {what}")
            }
        }
    }
}
