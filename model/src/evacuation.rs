//! Evacuations: the course of one victim from the claim to its end.

use crate::{
    DecisionId, EvacuationId, GroupId, InterruptionBehaviour, ModelError, Seconds, ServerId,
    Timestamp, names,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The state of an evacuation.
///
/// ```text
/// Claimed ─▶ Notified ─▶ Draining ─▶ Evacuated
///    │          │           │
///    ├──────────┴───────────┴─▶ Spared   (the preemptor went away in time)
///    └──────────┴───────────┴─▶ Failed   (the agent could not, or did not answer)
/// ```
///
/// *Planned* is not stored: a plan is a decision without any write (what-if).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvacuationState {
    /// The preemptor's claim on the capacity is durable; the notice is in the outbox.
    Claimed,
    /// The broker has confirmed the notice.
    Notified,
    /// The agent has given the guest its notice; the grace period runs.
    Draining,
    /// The victim is gone and its capacity is free, checked by the agent.
    Evacuated,
    /// The victim lives on.
    Spared,
    /// The evacuation failed for the stored reason.
    Failed,
}

impl EvacuationState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Claimed,
        Self::Notified,
        Self::Draining,
        Self::Evacuated,
        Self::Spared,
        Self::Failed,
    ];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Notified => "notified",
            Self::Draining => "draining",
            Self::Evacuated => "evacuated",
            Self::Spared => "spared",
            Self::Failed => "failed",
        }
    }

    /// True once nothing more will happen.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Evacuated | Self::Spared | Self::Failed)
    }
}

impl fmt::Display for EvacuationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EvacuationState {
    type Err = ModelError;

    fn from_str(word: &str) -> Result<Self, ModelError> {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == word)
            .ok_or_else(|| ModelError::Unknown {
                what: "evacuation state",
                value: names::shorten(word),
                allowed: "claimed, notified, draining, evacuated, spared, failed",
            })
    }
}

/// Why a victim has to leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvacuationCause {
    /// A normal server needs the capacity.
    #[default]
    Preemption,
    /// The victim has reached the maximum lifetime of its flavor
    /// ([`crate::flavor::MAX_LIFETIME_SECONDS`]).
    MaxLifetime,
    /// The price rose above the maximum of the victim's owner
    /// ([`Server::max_price`](crate::Server::max_price)).
    OutOfBid,
    /// The operator wants so much capacity free before a normal server needs it.
    Headroom,
    /// An outside owner takes the host back ([`crate::Reclaim`]).
    Reclaim,
}

impl EvacuationCause {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preemption => "preemption",
            Self::MaxLifetime => "max-lifetime",
            Self::OutOfBid => "out-of-bid",
            Self::Headroom => "headroom",
            Self::Reclaim => "reclaim",
        }
    }

    /// Whether the victim leaves because others need its capacity, now or soon: normal servers, or
    /// the host's owner. The victim's owner could not foresee that, so disruption budgets count it.
    #[must_use]
    pub fn is_disruption(self) -> bool {
        matches!(self, Self::Preemption | Self::Headroom | Self::Reclaim)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evacuation {
    /// Its identifier; also the key that makes every step of it safe to repeat.
    pub id: EvacuationId,
    pub victim_id: ServerId,
    /// The victim's name when it was chosen. Empty in records of earlier versions.
    #[serde(default)]
    pub victim_name: String,
    /// The victim's owner.
    pub victim_project_id: String,
    /// The victim's server group, for its disruption budget.
    #[serde(default)]
    pub victim_group_id: Option<GroupId>,
    /// How often the victim had been started when it was chosen
    /// ([`Server::starts`](crate::Server::starts)). This evacuation does not apply to a later life
    /// of it.
    #[serde(default)]
    pub victim_starts: u32,
    /// The victim's host.
    pub host: String,
    #[serde(default)]
    pub cause: EvacuationCause,
    /// The owner who takes the host back, if that is the cause.
    #[serde(default)]
    pub reclaim_owner: Option<String>,
    /// The preemptor. If the cause is no preemption: the server that was promised the capacity
    /// meanwhile, if any.
    #[serde(default)]
    pub preemptor_id: Option<ServerId>,
    /// The decision that chose the victim, if one did.
    #[serde(default)]
    pub decision_id: Option<DecisionId>,
    /// What happens to the victim.
    pub behaviour: InterruptionBehaviour,
    /// Time between notice and end.
    pub grace: Seconds,
    /// The cost of the loss, from the cost module.
    pub cost: f64,
    /// Where it is.
    pub state: EvacuationState,
    /// How often the notice has been sent.
    pub attempts: u32,
    /// When the scheduler stops waiting for the present attempt or stage.
    pub give_up_at: Timestamp,
    /// True once the scheduler has asked the agent to spare the victim, because the preemptor does
    /// not exist any more. The agent's answer decides.
    #[serde(default)]
    pub spare_requested: bool,
    /// Why it failed, or why the victim was spared.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the claim was written.
    pub claimed_at: Timestamp,
    /// When the broker had confirmed the (first) notice.
    #[serde(default)]
    pub notified_at: Option<Timestamp>,
    /// When the guest had its notice, by the agent's clock.
    #[serde(default)]
    pub draining_at: Option<Timestamp>,
    /// When the grace period ends, by the agent's clock.
    #[serde(default)]
    pub deadline_at: Option<Timestamp>,
    /// When it came to its final state.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
}
