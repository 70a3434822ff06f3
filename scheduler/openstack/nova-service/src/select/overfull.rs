//! A claim counts what physically runs, whatever Placement shows: the scheduler checks again after
//! the claim, and gives the claim back if it does not fit.

use super::Selector;
use super::claim::Claimer;
use ebbtide_openstack::NewClaim;
use ebbtide_swap::taken_by;
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

impl Selector {
    /// Reads the preemptions that are under way. Without the ledger the known ones count.
    pub(super) async fn know_what_runs(&self) {
        let Some(evacuations) = self.preempting.get() else {
            return;
        };
        if let Err(error) = evacuations.freshen().await {
            tracing::warn!(
                code = error.code(),
                "{error}; preemptions count as they were last read"
            );
        }
    }
}

impl Claimer<'_> {
    /// Whether a victim that Placement does not show still runs where the claim is.
    ///
    /// Between the last read of the rows and the claim, a newcomer may have been deleted whose
    /// victims still run. Its row is older than its claim, so a read after this claim sees the row,
    /// whichever scheduler owns it.
    pub(super) async fn runs_there(&self, new: &NewClaim) -> Option<ClaimFault> {
        let evacuations = self.preempting.get()?;
        for provider in taken_by(new).into_keys() {
            match evacuations.overfull(provider, None).await {
                Ok(None) => {}
                Ok(Some(what)) => return Some(ClaimFault::Overfull(what)),
                Err(error) => {
                    let what = format!("it cannot be known what runs: {error}");
                    return Some(ClaimFault::Overfull(what));
                }
            }
        }
        None
    }
}
