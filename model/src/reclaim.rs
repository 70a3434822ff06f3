//! The reclaim of a host: an outside owner (a batch system, a maintenance) takes a host back, and
//! its preemptible servers leave until the owner returns it.
//!
//! A reclaim is a standing order. A server that may not leave now (protected time, a disruption
//! budget, a silent agent) leaves as soon as it may.

use crate::{Evacuation, EvacuationCause, ModelError, Seconds, ServerId, Timestamp, names};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Longest time to a deadline: a week. An owner that plans further ahead disables the host.
pub const MAX_RECLAIM_SECONDS: u32 = 7 * 24 * 3600;
/// Longest owner and longest reason, in bytes: both stand in the host's `disabled_reason`, for
/// which Nova has 255 characters.
pub const MAX_RECLAIM_TEXT: usize = 100;

/// When the grace periods of a reclaim end at the latest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReclaimDeadline {
    /// Every server has its own grace period.
    #[default]
    None,
    /// So long after the request.
    After(Seconds),
    /// At this time.
    At(Timestamp),
}

impl ReclaimDeadline {
    /// The time of the deadline of a request of `now`.
    #[must_use]
    pub fn time(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::None => None,
            Self::After(seconds) => Some(now.plus(seconds)),
            Self::At(at) => Some(at),
        }
    }
}

/// What an owner asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReclaimTerms {
    /// Who takes the host, for example `slurm:1234`. Only this owner can change the terms.
    pub owner: String,
    /// Why, for operators and the audit.
    pub reason: String,
    /// When the grace periods end at the latest.
    #[serde(default)]
    pub deadline: ReclaimDeadline,
    /// The most that the loss of all servers may cost, in the cost module's unit. `None`: no limit.
    #[serde(default)]
    pub max_cost: Option<f64>,
}

impl ReclaimTerms {
    /// Checks everything that a caller may have got wrong.
    ///
    /// # Errors
    /// The first thing that is out of range, named.
    pub fn check(&self, now: Timestamp) -> Result<(), ModelError> {
        for (what, text) in [("owner", &self.owner), ("reason", &self.reason)] {
            names::check_name(what, text)?;
            if text.len() > MAX_RECLAIM_TEXT {
                return Err(ModelError::Name {
                    what,
                    value: names::shorten(text),
                    allowed: "use at most 100 bytes",
                });
            }
        }
        if let Some(at) = self.deadline.time(now) {
            let left = at.millis_since(now);
            if left <= 0 || left > i64::from(MAX_RECLAIM_SECONDS) * 1000 {
                return Err(ModelError::Range {
                    what: "deadline".to_owned(),
                    value: at.to_string(),
                    allowed: "after now, and within 7 days".to_owned(),
                });
            }
        }
        match self.max_cost {
            Some(most) if !(most.is_finite() && most > 0.0) => Err(ModelError::Range {
                what: "max_cost".to_owned(),
                value: most.to_string(),
                allowed: "0 (no limit) or a finite positive number".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// A reclaim that another owner holds, or that forbids a change of its host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("host {host:?} is reclaimed by {owner:?}; {next}")]
pub struct ReclaimedHost {
    pub host: String,
    /// Its present owner.
    pub owner: String,
    /// What to do.
    pub next: &'static str,
}

/// The reclaim of a host that is in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reclaim {
    /// What the owner asked for last.
    pub terms: ReclaimTerms,
    /// When the owner asked first.
    pub since: Timestamp,
    /// When the grace periods end at the latest, from the terms.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
    /// The operator's reason for disabling the host before or meanwhile; it holds again once the
    /// host is returned.
    #[serde(default)]
    pub disabled_before: Option<String>,
    /// What the loss of each server costs whose evacuation has begun. One whose evacuation begins
    /// again counts once.
    #[serde(default)]
    pub charged: BTreeMap<ServerId, f64>,
}

impl Reclaim {
    /// A new reclaim of a host that is disabled for this reason, or enabled.
    #[must_use]
    pub fn new(terms: ReclaimTerms, disabled_before: Option<String>, now: Timestamp) -> Self {
        Self {
            deadline: terms.deadline.time(now),
            terms,
            since: now,
            disabled_before,
            charged: BTreeMap::new(),
        }
    }

    /// The reclaim after its owner has asked again. The same terms change nothing, so that a
    /// repeated request does not move its deadline.
    ///
    /// # Errors
    /// Another owner has the host.
    pub fn renewed(
        &self,
        host: &str,
        terms: ReclaimTerms,
        now: Timestamp,
    ) -> Result<Self, ReclaimedHost> {
        if self.terms.owner != terms.owner {
            return Err(ReclaimedHost {
                host: names::shorten(host),
                owner: self.terms.owner.clone(),
                next: "`ebbtide host return` ends that reclaim",
            });
        }
        if self.terms == terms {
            return Ok(self.clone());
        }
        Ok(Self {
            deadline: terms.deadline.time(now),
            terms,
            ..self.clone()
        })
    }

    /// Why the host is disabled while it is reclaimed.
    #[must_use]
    pub fn disabled_reason(&self) -> String {
        format!("reclaimed by {}: {}", self.terms.owner, self.terms.reason)
    }

    /// Why a host stays disabled whose owner has returned it so.
    #[must_use]
    pub fn returned_reason(&self) -> String {
        format!("returned by {}", self.terms.owner)
    }

    /// The grace period of a server that gets its notice now and has a grace period of its own.
    #[must_use]
    pub fn grace(&self, own: Seconds, now: Timestamp) -> Seconds {
        let left = self.deadline.map(|at| at.millis_since(now).max(0) / 1000);
        let left = left.and_then(|seconds| u32::try_from(seconds).ok());
        left.map_or(own, |left| own.min(Seconds(left)))
    }

    /// What the loss of all servers costs whose evacuation has begun.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.charged.values().sum()
    }

    /// Whether the terms allow the loss of one more server.
    #[must_use]
    pub fn affords(&self, server: ServerId, cost: f64) -> bool {
        let others = self.charged.iter().filter(|(id, _)| **id != server);
        let others: f64 = others.map(|(_, cost)| cost).sum();
        self.terms.max_cost.is_none_or(|most| others + cost <= most)
    }

    /// Notes that a server's evacuation begins.
    pub fn charge(&mut self, server: ServerId, cost: f64) {
        self.charged.insert(server, cost);
    }

    /// True if an evacuation belongs to this reclaim.
    #[must_use]
    pub fn has_begun(&self, evacuation: &Evacuation) -> bool {
        evacuation.cause == EvacuationCause::Reclaim && evacuation.claimed_at >= self.since
    }
}

/// Why a server stays on a reclaimed host, for now or for good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StayReason {
    /// A normal server: no reclaim evicts it.
    Normal,
    /// Its protected time, or its rest after a failed evacuation, lasts until then.
    Protected {
        /// From this moment on it may leave.
        until: Timestamp,
    },
    /// A disruption budget allows no further victim now.
    Budget,
    /// Its loss would exceed the reclaim's `max_cost`.
    MaxCost {
        /// What its loss costs.
        cost: f64,
    },
    /// No agent of the host is heard, so no notice can reach the server.
    HostSilent,
    /// It was stopped or hibernated and runs nothing; only its disk is on the host.
    Kept,
    /// An earlier evacuation of it is being withdrawn.
    BeingSpared,
    /// It has not started yet.
    Starting,
    /// It is locked, or in a task that must not be interrupted.
    Busy,
}

impl StayReason {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Protected { .. } => "protected",
            Self::Budget => "disruption-budget",
            Self::MaxCost { .. } => "max-cost",
            Self::HostSilent => "host-silent",
            Self::Kept => "kept",
            Self::BeingSpared => "being-spared",
            Self::Starting => "starting",
            Self::Busy => "busy",
        }
    }

    /// True if the server keeps the host from being free of preemptible servers.
    #[must_use]
    pub fn occupies(self) -> bool {
        !matches!(self, Self::Normal | Self::Kept)
    }

    /// When that ends, if it is known.
    #[must_use]
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Protected { until } => Some(until),
            _ => None,
        }
    }
}

impl fmt::Display for StayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("a normal server; a reclaim evicts preemptible ones only"),
            Self::Protected { until } => write!(f, "protected until {until}"),
            Self::Budget => f.write_str("a disruption budget allows no further victim now"),
            Self::MaxCost { cost } => {
                write!(f, "its loss costs {cost} and would exceed the maximum cost")
            }
            Self::HostSilent => f.write_str("the host's agent is not heard"),
            Self::Kept => f.write_str("stopped or hibernated; only its disk is on the host"),
            Self::BeingSpared => f.write_str("an earlier evacuation of it is being withdrawn"),
            Self::Starting => f.write_str("it has not started yet"),
            Self::Busy => f.write_str("it is locked, or in a task"),
        }
    }
}

/// How far a reclaim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimState {
    /// Servers are leaving.
    Leaving,
    /// No server is leaving, and preemptible servers stay that may not leave now.
    Blocked,
    /// The host is free of preemptible servers.
    Free,
}

impl ReclaimState {
    /// The state with so many servers leaving and these that stay.
    #[must_use]
    pub fn of(leaving: usize, stay: impl IntoIterator<Item = StayReason>) -> Self {
        match (leaving, stay.into_iter().any(StayReason::occupies)) {
            (0, false) => Self::Free,
            (0, true) => Self::Blocked,
            _ => Self::Leaving,
        }
    }

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leaving => "leaving",
            Self::Blocked => "blocked",
            Self::Free => "free",
        }
    }
}

#[cfg(test)]
mod tests;
