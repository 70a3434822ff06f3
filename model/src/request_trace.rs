//! The way of a request of Nova's through the scheduler: who asked, what Placement refused, which
//! part took how long, and what nova-scheduler answered to the same request.

use crate::ServerId;
use crate::decision::FOR_OPERATORS;
use serde::{Deserialize, Serialize};

/// Where a request came from and how it was served. Empty in a standalone region, and in records of
/// versions that did not write it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestTrace {
    /// The request id of OpenStack's services (`req-…`).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// The user that asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// The scheduler that answered, by its name in the ledger.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scheduler: String,
    /// How often hosts were chosen: more than once if a claim showed that a host had changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub runs: u32,
    /// Claims that Placement did not take, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused_claims: Vec<RefusedClaim>,
    /// Which part took how long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<PartTime>,
    /// What nova-scheduler answered. Only a shadow writes it, which answers no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Box<Comparison>>,
}

/// A shadow's decision beside the answer of nova-scheduler to the same request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// How both relate.
    pub verdict: ComparisonVerdict,
    /// The host that nova-scheduler gave each server, in the order of the request; empty for a
    /// server without one.
    pub hosts: Vec<String>,
    /// Why both are not the same, in words; empty if they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Other requests that nova-scheduler had not answered yet when the shadow decided. Their
    /// claims may explain a difference.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests_beside: u32,
}

/// How a shadow's decision and nova-scheduler's answer relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The same hosts, or refused by both.
    Same,
    /// Other hosts, with the same weights.
    EqualWeight,
    /// Other hosts.
    Different,
    /// nova-scheduler refused, and Ebbtide would have had hosts.
    EbbtideOnly,
    /// Ebbtide would have refused, and nova-scheduler had hosts.
    NovaOnly,
    /// The answer of nova-scheduler is not known.
    NotCompared,
}

impl ComparisonVerdict {
    /// All, in the order in which reports show them.
    pub const ALL: [Self; 6] = [
        Self::Same,
        Self::EqualWeight,
        Self::Different,
        Self::EbbtideOnly,
        Self::NovaOnly,
        Self::NotCompared,
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::EqualWeight => "equal_weight",
            Self::Different => "different",
            Self::EbbtideOnly => "ebbtide_only",
            Self::NovaOnly => "nova_only",
            Self::NotCompared => "not_compared",
        }
    }
}

/// A claim that Placement did not take, or that was not tried because the host had changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedClaim {
    pub server_id: ServerId,
    pub host: String,
    /// Why, in words: Placement's own, if it said any.
    pub reason: String,
}

/// How long a part of a request took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTime {
    /// The part: `whole`, or one of its parts.
    pub part: String,
    /// How long, in microseconds.
    pub micros: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RequestTrace {
    /// True if nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The trace as the tenant that asked may see it: Placement's words name what others use.
    pub(crate) fn redact(&mut self) {
        for claim in &mut self.refused_claims {
            FOR_OPERATORS.clone_into(&mut claim.reason);
        }
        if let Some(comparison) = &mut self.comparison {
            comparison.reason.clear();
        }
    }
}
