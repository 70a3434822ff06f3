//! The state of a victim, as the record stores it.
//!
//! The names are those of [`EvacuationState`]. A spare request is a state of its own here, because
//! the record waits for the agent's answer and for nothing else then.

use ebbtide_evacuation::{EndReason, EvacuationPolicy, Progress, Wait};
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{EvacuationState, Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// The state of a victim. Records of earlier versions have other names for some states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum VictimState {
    /// The swap took its capacity. No notice has been sent.
    #[serde(alias = "waiting")]
    Claimed,
    /// A notice is on its way.
    #[serde(alias = "noticed")]
    Notified {
        /// From 1.
        attempt: u32,
        /// The broker has it.
        published: bool,
        /// When the next attempt is due, or the agent counts as silent.
        until: Timestamp,
        /// An agent that has not begun by then must not begin; the same for all attempts.
        begin_before: Timestamp,
    },
    /// The guest has its notice; the grace period runs.
    Draining {
        /// End of the grace period, as reported by the agent.
        deadline: Timestamp,
    },
    /// The victim is gone, and its capacity is free.
    #[serde(alias = "gone")]
    Evacuated {
        /// How it ended.
        how: EvacuationEnd,
        at: Timestamp,
        /// The last, partial hour of its running time, as reported by its agent.
        #[serde(default)]
        unbilled: Option<Seconds>,
        /// The usage record is written.
        recorded: bool,
    },
    /// The scheduler has asked the agent to spare the victim.
    #[serde(alias = "sparing")]
    SpareRequested {
        /// The broker has the message.
        published: bool,
        /// When its agent counts as silent.
        until: Timestamp,
    },
    /// The victim stays.
    Spared,
    /// The evacuation failed, or its outcome is unknown.
    Failed {
        reason: String,
        /// After an early answer: when the next notice is due.
        again: Timestamp,
    },
}

impl VictimState {
    /// Where the victim is in the protocol.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let state = match self {
            Self::Claimed => EvacuationState::Claimed,
            Self::Notified { .. } => EvacuationState::Notified,
            Self::Draining { .. } => EvacuationState::Draining,
            Self::Evacuated { .. } => EvacuationState::Evacuated,
            Self::Spared => EvacuationState::Spared,
            Self::Failed { .. } => EvacuationState::Failed,
            // Any notice may have been sent.
            Self::SpareRequested { .. } => {
                return Progress {
                    state: EvacuationState::Notified,
                    spare_requested: true,
                };
            }
        };
        Progress::new(state)
    }

    /// True while the victim's agent owes an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(
            self,
            Self::Notified { .. } | Self::Draining { .. } | Self::SpareRequested { .. }
        )
    }

    /// A spare that is due now.
    pub(crate) fn spare(now: Timestamp, policy: &EvacuationPolicy) -> Self {
        Self::SpareRequested {
            published: false,
            until: policy.spare_limit(now),
        }
    }

    /// A failure; the next evacuation of the victim may begin after its rest.
    pub(crate) fn failed(reason: &EndReason, now: Timestamp, policy: &EvacuationPolicy) -> Self {
        Self::Failed {
            reason: reason.to_string(),
            again: policy.rest_limit(now),
        }
    }

    /// What the agent is waited for.
    pub(crate) fn wait(&self) -> Wait {
        let (attempt, unsent) = match self {
            Self::Notified {
                attempt, published, ..
            } => (*attempt, !published),
            Self::SpareRequested { published, .. } => (0, !published),
            _ => (0, false),
        };
        Wait {
            progress: self.progress(),
            attempt,
            unsent,
        }
    }

    /// When the agent's time is over, by the scheduler's clock. `None`: no agent is waited for.
    pub(crate) fn limit(&self, policy: &EvacuationPolicy) -> Option<Timestamp> {
        match self {
            Self::Notified { until, .. } | Self::SpareRequested { until, .. } => Some(*until),
            Self::Draining { deadline } => Some(policy.act_limit(*deadline)),
            _ => None,
        }
    }
}
