//! The records of the agent's journal, which survive restarts.
//!
//! A record is the whole present state of one evacuation or one server, not a change of it. The
//! last record of a key is valid, so replaying is trivial and compaction is "keep the last".

use ebbtide_evacuation::Progress;
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{
    EvacuationId, EvacuationState, InterruptionBehaviour, MessageId, Seconds, ServerId, Timestamp,
};
use serde::{Deserialize, Serialize};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum JournalRecord {
    /// The state of an evacuation.
    Evacuation(EvacuationRecord),
    /// An evacuation that the agent may forget.
    ForgetEvacuation { evacuation_id: EvacuationId },
    /// The last action on a server.
    Server(ServerRecord),
    /// A server that the agent may forget.
    ForgetServer { server_id: ServerId },
}

/// Reference to a command message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRef {
    /// Its identifier. The identifiers of reports about the command are derived from it, so that
    /// the scheduler recognises a repeated report and does not mistake the report about a new
    /// command for a repetition.
    pub id: MessageId,
    /// When the scheduler sent it, by the scheduler's clock.
    pub time: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvacuationRecord {
    pub evacuation_id: EvacuationId,
    /// Its victim.
    pub server_id: ServerId,
    /// Increases over all records of this agent; the agent forgets the lowest first.
    pub order: u64,
    /// The newest command about it.
    pub command: CommandRef,
    /// The content of the notice; `None` while only a spare or a release has arrived.
    pub terms: Option<NoticeTerms>,
    /// Its state.
    pub phase: EvacuationPhase,
    /// True once the broker has confirmed the final report.
    #[serde(default)]
    pub settled: bool,
}

/// The content of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeTerms {
    /// How the victim is to end.
    pub behaviour: InterruptionBehaviour,
    /// Time between the guest's notice and its end.
    pub grace: Seconds,
    /// Which attempt of the scheduler this is.
    pub attempt: u32,
    /// The guest must not be told after this moment.
    pub begin_before: Timestamp,
}

/// Begin and end of a grace period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// When the guest had its notice.
    pub notified_at: Timestamp,
    /// End of the grace period; a release moves it forward.
    pub deadline_at: Timestamp,
}

impl Drain {
    /// The same period after the clock was set by this many milliseconds.
    #[must_use]
    pub fn by_clock_set(self, by_ms: i64) -> Self {
        let set = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_add(by_ms));
        Self {
            notified_at: set(self.notified_at),
            deadline_at: set(self.deadline_at),
        }
    }
}

impl JournalRecord {
    /// The record's content after the clock was set by this many milliseconds since it was written.
    #[must_use]
    pub fn by_clock_set(mut self, by_ms: i64) -> Self {
        if let Self::Evacuation(record) = &mut self {
            match &mut record.phase {
                EvacuationPhase::Draining(drain) | EvacuationPhase::Acting { drain, .. } => {
                    *drain = drain.by_clock_set(by_ms);
                }
                _ => {}
            }
        }
        self
    }
}

/// Where an evacuation is. The names are those of [`EvacuationState`]; the agent divides some of
/// these states further ([`EvacuationPhase::progress`]).
///
/// ```text
/// ReleasedEarly ─▶ Notified ─▶ Draining ─▶ Acting ─▶ Done(Evacuated)
///                     │            │          │
///                     └────────────┴──────────┴─▶ Withdrawing ─▶ Done(Spared | Failed)
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum EvacuationPhase {
    /// A release has arrived before its notice.
    ReleasedEarly,
    /// The notice has arrived; it is uncertain whether the guest has it. Journals of earlier
    /// versions call it `accepted`.
    #[serde(alias = "accepted")]
    Notified {
        /// A release has arrived meanwhile.
        released: bool,
    },
    /// The guest has its notice; the grace period runs.
    Draining(Drain),
    /// The point of no return: the driver call that ends the victim is running or may have run.
    /// Written before the call.
    Acting {
        /// The grace period of the guest.
        drain: Drain,
        behaviour: InterruptionBehaviour,
    },
    /// The victim will stay; the agent withdraws the guest's notice.
    Withdrawing {
        /// The report after that.
        then: EvacuationResult,
    },
    /// Finished, but the report may not be confirmed yet.
    Done {
        /// The reported outcome.
        verdict: EvacuationResult,
    },
}

impl EvacuationPhase {
    /// Where the victim is in the protocol that agent and scheduler share.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let state = match self {
            Self::ReleasedEarly => EvacuationState::Claimed,
            Self::Notified { .. } => EvacuationState::Notified,
            Self::Draining(_) | Self::Acting { .. } => EvacuationState::Draining,
            Self::Withdrawing { .. } => {
                return Progress {
                    state: EvacuationState::Notified,
                    spare_requested: true,
                };
            }
            Self::Done { verdict } => match verdict {
                EvacuationResult::Spared => EvacuationState::Spared,
                EvacuationResult::Evacuated { .. } => EvacuationState::Evacuated,
                EvacuationResult::Failed { .. } => EvacuationState::Failed,
            },
        };
        Progress::new(state)
    }
}

/// Outcome of an evacuation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum EvacuationResult {
    /// The victim lives on because the scheduler spared it.
    Spared,
    /// The victim is gone and its capacity is free.
    Evacuated {
        /// How it ended.
        how: EvacuationEnd,
        /// When the agent was certain of that.
        at: Timestamp,
        /// The part of its running time that is not to be billed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unbilled: Option<Seconds>,
        /// The storage in which it is kept for any host that shares the storage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        storage: Option<String>,
    },
    /// The evacuation failed.
    Failed {
        reason: String,
        /// True if the victim still runs, if its capacity is not free, or if the agent cannot tell.
        still_running: bool,
        /// True if there was no time left to begin.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_late: bool,
    },
}

impl EvacuationResult {
    /// The verdict for a victim that was gone before its end.
    #[must_use]
    pub fn already_gone(at: Timestamp) -> Self {
        Self::Evacuated {
            how: EvacuationEnd::AlreadyGone,
            at,
            unbilled: None,
            storage: None,
        }
    }
}

/// The last action on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    pub server_id: ServerId,
    /// Increases over all records of this agent; the agent forgets the lowest first.
    pub order: u64,
    /// The last start that the agent followed.
    pub started: Option<CommandRef>,
    /// The last deletion or notice that removed or stopped it.
    pub ended: Option<CommandRef>,
    /// The newest start that the agent reported as failed, including the report that a server to be
    /// resumed does not run. The scheduler then gives the capacity to others or tries another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<CommandRef>,
}

impl ServerRecord {
    /// True if the last action ended it.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        match (self.started, self.ended) {
            (Some(started), Some(ended)) => ended.time >= started.time,
            (_, ended) => ended.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_notice_that_was_accepted_is_notified() {
        let stored = json!({ "phase": "accepted", "released": true });
        let phase: EvacuationPhase = serde_json::from_value(stored).unwrap();
        assert_eq!(phase, EvacuationPhase::Notified { released: true });
        let written = serde_json::to_value(&phase).unwrap();
        assert_eq!(written["phase"], json!("notified"));
    }

    #[test]
    fn a_phase_has_the_name_of_its_state_or_is_a_part_of_that_state() {
        let at = Timestamp::from_millis(1);
        let drain = Drain {
            notified_at: at,
            deadline_at: at,
        };
        let acting = EvacuationPhase::Acting {
            drain,
            behaviour: InterruptionBehaviour::Stop,
        };
        let verdict = EvacuationResult::already_gone(at);
        for (phase, state) in [
            (
                EvacuationPhase::Notified { released: false },
                EvacuationState::Notified,
            ),
            (EvacuationPhase::Draining(drain), EvacuationState::Draining),
            (acting, EvacuationState::Draining),
            (
                EvacuationPhase::Done { verdict },
                EvacuationState::Evacuated,
            ),
        ] {
            assert_eq!(phase.progress(), Progress::new(state), "{phase:?}");
        }
    }
}
