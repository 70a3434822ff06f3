//! What a checkpoint scheme is.

use crate::availability::Period;
use crate::bid_lifetimes::BidLifetimes;
use crate::history::PriceHistory;
use crate::schemes::{Acc, Adaptive, Edge, Hour, NoCheckpoints, Optimal};
use crate::terms::CheckpointTerms;
use ebbtide_model::Money;
use std::fmt;
use std::str::FromStr;

/// What a scheme does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemeAction {
    /// Begins a checkpoint at this time.
    Checkpoint(i64),
    /// Ends the instance at this time; what is not saved is lost.
    Terminate(i64),
}

impl SchemeAction {
    #[must_use]
    pub fn at(self) -> i64 {
        match self {
            Self::Checkpoint(at) | Self::Terminate(at) => at,
        }
    }
}

/// What a scheme sees when it is asked what it does next.
#[derive(Debug, Clone, Copy)]
pub struct SchemeView<'a> {
    /// The price. Only OPT may look at what comes after the time for which it decides.
    pub history: &'a PriceHistory,
    /// What it bids on its own behalf: A_bid.
    pub bid: Money,
    /// The period of availability in which the instance was launched. Only OPT may look at its end.
    pub period: Period,
    /// How long instances with this bid have lived, as far as it is known.
    pub lives: &'a BidLifetimes,
    /// What checkpoints cost.
    pub terms: &'a CheckpointTerms,
    /// When the instance was launched.
    pub launch: i64,
    /// When its work goes on: the earliest time for which to decide.
    pub now: i64,
    /// Seconds of work that are done and not saved, at `now`.
    pub unsaved: i64,
    /// Seconds of work that are left, at `now`.
    pub left: i64,
    /// When the last checkpoint of this instance began.
    pub checkpoint: Option<i64>,
}

impl SchemeView<'_> {
    /// Seconds of work that are not saved at a later time, if nothing is done before.
    #[must_use]
    pub fn unsaved_at(&self, time: i64) -> i64 {
        self.unsaved + (time - self.now).max(0)
    }

    /// When the job is done, if nothing is done before.
    #[must_use]
    pub fn done(&self) -> i64 {
        self.now + self.left
    }
}

/// A checkpoint scheme: when it saves, and when it gives the instance back.
///
/// A scheme has no state: everything that it decides by is in [`SchemeView`]. What it answers has
/// to lie at or after `seen.now`, and may depend on prices up to the time of the answer only; OPT
/// alone is an oracle, as a bound that nothing real can reach.
pub trait Scheme: Send + Sync {
    /// Which one it is.
    fn kind(&self) -> SchemeKind;

    /// The price above which the provider ends the instance; `None` for never. Most schemes bid
    /// what they are told to.
    fn ceiling(&self, bid: Money, _terms: &CheckpointTerms) -> Option<Money> {
        Some(bid)
    }

    /// True if the scheme decides by [`SchemeView::lives`]; only for such schemes the run keeps
    /// them up to date.
    fn learns(&self) -> bool {
        false
    }

    /// What it does next, unless the job is done or the instance dies before.
    fn next(&self, seen: &SchemeView<'_>) -> Option<SchemeAction>;
}

/// The six schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemeKind {
    /// No checkpoints.
    None,
    /// A checkpoint just before each failure, by foresight.
    Opt,
    /// A checkpoint at the end of each instance-hour.
    Hour,
    /// A checkpoint when the price rises.
    Edge,
    /// A checkpoint where the failure density says that it pays.
    Adapt,
    /// The paper's own: a large bid, and at the end of each hour a checkpoint and the end where the
    /// price is above A_bid.
    Acc,
}

impl SchemeKind {
    /// All, in the order of the paper.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Opt,
        Self::Hour,
        Self::Edge,
        Self::Adapt,
        Self::Acc,
    ];

    /// Its name in the paper.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Opt => "OPT",
            Self::Hour => "HOUR",
            Self::Edge => "EDGE",
            Self::Adapt => "ADAPT",
            Self::Acc => "ACC",
        }
    }
}

impl fmt::Display for SchemeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SchemeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter();
        let mut found = known.filter(|kind| kind.as_str().eq_ignore_ascii_case(text));
        found.next().ok_or_else(|| {
            format!("no scheme {text:?}; there are NONE, OPT, HOUR, EDGE, ADAPT, ACC")
        })
    }
}

/// The scheme of a kind. The one list of all of them.
#[must_use]
pub fn scheme(kind: SchemeKind) -> &'static dyn Scheme {
    match kind {
        SchemeKind::None => &NoCheckpoints,
        SchemeKind::Opt => &Optimal,
        SchemeKind::Hour => &Hour,
        SchemeKind::Edge => &Edge,
        SchemeKind::Adapt => &Adaptive,
        SchemeKind::Acc => &Acc,
    }
}
