//! What the agent remembers across restarts: the records of its journal.
//!
//! A record is the whole present state of one evacuation or one server, not a change of it: the last record about a key is
//! the truth, so replaying is trivial and compaction is "keep the last".

use ebbtide_model::message::EvacuatedHow;
use ebbtide_model::{EvacuationId, InterruptionBehaviour, MessageId, Seconds, ServerId, Timestamp};
use serde::{Deserialize, Serialize};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The state of an evacuation.
    Evacuation(EvacuationRecord),
    /// An evacuation that need not be remembered any more.
    ForgetEvacuation {
        /// Which one.
        evacuation_id: EvacuationId,
    },
    /// What was done to a server last.
    Server(ServerRecord),
    /// A server that need not be remembered any more.
    ForgetServer {
        /// Which one.
        server_id: ServerId,
    },
}

/// The message that asked for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRef {
    /// Its identifier. Reports about the command get identifiers derived from it, so that a repeated report is
    /// recognised and the report about a new command is not mistaken for a repetition.
    pub id: MessageId,
    /// When the scheduler said it, by the scheduler's clock.
    pub time: Timestamp,
}

/// One evacuation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvacuationRecord {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// Its victim.
    pub server_id: ServerId,
    /// Counts up over all records of this agent: what is forgotten first.
    pub order: u64,
    /// The newest message about it that asked for something.
    pub command: CommandRef,
    /// What the notice says; `None` while only a spare or a release has arrived.
    pub terms: Option<Terms>,
    /// Where it is.
    pub phase: Phase,
    /// True once the broker has confirmed the final report.
    #[serde(default)]
    pub settled: bool,
}

/// What a notice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// How the victim is to end.
    pub behaviour: InterruptionBehaviour,
    /// Time between the guest's notice and its end.
    pub grace: Seconds,
    /// Which attempt of the scheduler this is.
    pub attempt: u32,
    /// The guest must not be told after this moment.
    pub begin_before: Timestamp,
}

/// When the guest was told, and until when it has time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// When the guest had its notice.
    pub notified_at: Timestamp,
    /// When its time is over; moved forward by a release.
    pub deadline_at: Timestamp,
}

impl Drain {
    /// The same stretch of time by a clock that was set by this many milliseconds.
    #[must_use]
    pub fn by_clock_set(self, by_ms: i64) -> Self {
        let set = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_add(by_ms));
        Self {
            notified_at: set(self.notified_at),
            deadline_at: set(self.deadline_at),
        }
    }
}

impl Record {
    /// What this record would say if the clock had been right, or wrong, from the start: the clock was set by this many milliseconds
    /// after it was written.
    #[must_use]
    pub fn by_clock_set(mut self, by_ms: i64) -> Self {
        if let Self::Evacuation(record) = &mut self {
            match &mut record.phase {
                Phase::Draining(drain) | Phase::Acting { drain, .. } => {
                    *drain = drain.by_clock_set(by_ms);
                }
                _ => {}
            }
        }
        self
    }
}

/// Where an evacuation is.
///
/// ```text
/// ReleasedEarly ─▶ Accepted ─▶ Draining ─▶ Acting ─▶ Done(Evacuated)
///                     │            │          │
///                     └────────────┴──────────┴─▶ Withdrawing ─▶ Done(Spared | Failed)
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// A release has arrived before its notice.
    ReleasedEarly,
    /// The notice is here; the guest has not been told for certain.
    Accepted {
        /// A release has arrived meanwhile.
        released: bool,
    },
    /// The guest has been told; its time runs.
    Draining(Drain),
    /// The point of no return: the driver is being asked, or has been asked, to end it. Written before it is asked.
    Acting {
        /// The time that the guest had.
        drain: Drain,
        /// How it is being ended.
        behaviour: InterruptionBehaviour,
    },
    /// It will stay; the guest is being told so.
    Withdrawing {
        /// What will be reported after that.
        then: Verdict,
    },
    /// Nothing more will happen, but the report may be under way.
    Done {
        /// What is reported.
        verdict: Verdict,
    },
}

/// How an evacuation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The victim lives on because the scheduler wished so.
    Spared,
    /// The victim is gone and its room is free.
    Evacuated {
        /// How it ended.
        how: EvacuatedHow,
        /// When that was certain.
        at: Timestamp,
        /// The part of its running time that is not to be billed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unbilled: Option<Seconds>,
        /// The storage in which it is kept for any host that shares it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        storage: Option<String>,
    },
    /// It could not be done.
    Failed {
        /// Why.
        reason: String,
        /// True if the victim still runs, if its room is not free, or if nobody can tell.
        still_running: bool,
        /// True if there was no time left to begin.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_late: bool,
    },
}

impl Verdict {
    /// It was not there any more when it was to end.
    #[must_use]
    pub fn already_gone(at: Timestamp) -> Self {
        Self::Evacuated {
            how: EvacuatedHow::AlreadyGone,
            at,
            unbilled: None,
            storage: None,
        }
    }
}

/// What was done to a server last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// The server.
    pub server_id: ServerId,
    /// Counts up over all records of this agent: what is forgotten first.
    pub order: u64,
    /// The start that was followed last.
    pub started: Option<CommandRef>,
    /// The deletion or notice that removed or stopped it last.
    pub ended: Option<CommandRef>,
    /// The newest start of which the scheduler was told that it failed, or that a server that was to go on does not run: the scheduler gives the room to
    /// others, or tells another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<CommandRef>,
}

impl ServerRecord {
    /// True if the last thing done to it was to end it.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        match (self.started, self.ended) {
            (Some(started), Some(ended)) => ended.time >= started.time,
            (_, ended) => ended.is_some(),
        }
    }
}
