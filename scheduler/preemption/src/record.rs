//! The record of a preemption, as the ledger keeps it.

use ebbtide_model::message::EvacuatedHow;
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// How far a preemption is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Written down; Placement may or may not have taken the swap.
    Planned,
    /// Placement has taken the swap; nobody has been told.
    Claimed,
    /// Victims are being told and leave.
    Evacuating,
    /// Called off: who can stay is asked to stay, then allocations go back.
    Withdrawing,
    /// Over: the newcomers have the room.
    Done,
    /// Over: everything was given back that could be.
    Withdrawn,
    /// Over: Placement did not take the swap, nothing has happened.
    Refused,
}

impl State {
    /// The word for it, as the ledger's column has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Claimed => "claimed",
            Self::Evacuating => "evacuating",
            Self::Withdrawing => "withdrawing",
            Self::Done => "done",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
        }
    }

    /// True once nothing more will happen.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Withdrawn | Self::Refused)
    }
}

/// Why a preemption was called off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalledOff {
    /// The caller does not wait any more.
    CallerLeft,
    /// Every newcomer was deleted.
    NewcomersGone,
    /// The victims did not leave: an agent was silent, refused, or took too long.
    VictimsStay,
    /// More runs on a newcomer's host than Placement shows, so the newcomer does not fit.
    HostOverfull,
}

impl CalledOff {
    /// True if the request still needs room, so that another plan is worth making.
    #[must_use]
    pub fn room_is_wanted(self) -> bool {
        matches!(self, Self::VictimsStay | Self::HostOverfull)
    }
}

/// When the caller gets its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyWhen {
    /// When all victims are gone.
    #[default]
    RoomFree,
    /// When the swap is done and the notices are out.
    AtOnce,
}

/// What a consumer of Placement holds, as `POST /allocations` takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    /// By provider: `{"PROVIDER": {"resources": {"VCPU": 1, …}}, …}`. Never empty.
    pub allocations: Value,
    /// Which provider serves which request group, where Placement said it.
    #[serde(default)]
    pub mappings: Option<Value>,
    /// Whose it is.
    pub project_id: String,
    /// Who made it.
    pub user_id: String,
    /// The consumer's generation before; `None` if Placement did not know the consumer.
    #[serde(default)]
    pub generation: Option<u64>,
}

/// An instance that gets room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Newcomer {
    /// The instance: Placement's consumer.
    pub instance: Uuid,
    /// Name of the service's host.
    pub host: String,
    /// What it claims there.
    pub claim: Holding,
    /// What it had before the swap, which goes back to it when it is called off: an instance that is evacuated by its owner holds
    /// something on its old host. `None` for a consumer that did not exist.
    #[serde(default)]
    pub before: Option<Holding>,
}

/// Where a victim is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum VictimState {
    /// Nothing was said.
    Waiting,
    /// A notice is on its way.
    Noticed {
        /// From 1.
        attempt: u32,
        /// The broker has it.
        published: bool,
        /// When the next attempt is due, or patience ends.
        until: Timestamp,
        /// After that an agent that has not begun must not begin; the same for all attempts.
        begin_before: Timestamp,
    },
    /// The guest knows; the grace period runs.
    Draining {
        /// When its time is over, by the agent's word.
        deadline: Timestamp,
    },
    /// Gone, its room is free.
    Gone {
        /// How it ended.
        how: EvacuatedHow,
        /// When.
        at: Timestamp,
        /// The last, partial hour of its running time, by its agent's word.
        #[serde(default)]
        unbilled: Option<Seconds>,
        /// The usage record is written.
        recorded: bool,
    },
    /// It was asked to stay after all.
    Sparing {
        /// The broker has the message.
        published: bool,
        /// When its agent counts as silent.
        until: Timestamp,
    },
    /// It stays.
    Spared,
    /// It could not be evacuated, or nobody knows.
    Failed {
        /// Why.
        reason: String,
        /// After an early answer: when it is told again.
        again: Timestamp,
    },
}

impl VictimState {
    /// True while the victim's agent owes an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(
            self,
            Self::Noticed { .. } | Self::Draining { .. } | Self::Sparing { .. }
        )
    }
}

/// A preemptible instance that has to leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Victim {
    /// The instance: Placement's consumer.
    pub server: ServerId,
    /// Its evacuation, by which its agent knows it.
    pub evacuation: EvacuationId,
    /// Name of the service's host: whose agent is told.
    pub host: String,
    /// What it had when it was chosen, and would get back.
    pub had: Holding,
    /// Its consumer generation when it was chosen. Never null: Placement would make a consumer that cannot be removed.
    pub generation: u64,
    /// What it goes on holding: the disk of a server that is stopped and not deleted, for good; and, until it is gone, what the
    /// newcomers do not need of it.
    #[serde(default)]
    pub keeps: Option<Holding>,
    /// How it leaves.
    pub behaviour: InterruptionBehaviour,
    /// Time from notice to end.
    pub grace: Seconds,
    /// Name of its flavor.
    pub flavor: String,
    /// Since when it runs, for the bill.
    #[serde(default)]
    pub launched_at: Option<Timestamp>,
    /// Where it is.
    pub state: VictimState,
}

impl Victim {
    /// Lets its evacuation begin once more. It is another evacuation then: its agent remembers how the last one ended.
    pub(super) fn begin_anew(&mut self) {
        self.evacuation = EvacuationId(Uuid::new_v5(&self.evacuation.0, b"once more"));
        self.state = VictimState::Waiting;
    }
}

/// A preemption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preemption {
    /// Its name in the ledger.
    pub id: Uuid,
    /// Nova's request (`req-…`).
    pub request_id: String,
    /// The message's `_unique_id`: a redelivered request is recognised by it.
    pub unique_id: String,
    /// When it was written down.
    pub planned_at: Timestamp,
    /// How far it is.
    pub state: State,
    /// The scheduler that has the caller's message, by its name in the ledger: only it can answer, so it drives the record. Whoever adopts
    /// the record without having the message leaves this as it is, and loses the record when that scheduler asks for it.
    #[serde(default)]
    pub answerer: Option<String>,
    /// When the caller gets its answer.
    pub reply_when: ReplyWhen,
    /// The caller has its answer, or nobody waits for one.
    pub answered: bool,
    /// The swap was sent and its answer did not come.
    pub in_doubt: bool,
    /// When the caller was last known to wait.
    pub caller_seen: Option<Timestamp>,
    /// Who comes.
    pub newcomers: Vec<Newcomer>,
    /// Who has to leave.
    pub victims: Vec<Victim>,
    /// What the caller is told when the room is there: the reply's `result`.
    pub result: Value,
    /// Why it was called off or refused.
    pub reason: Option<String>,
    /// The same, for programs; `None` if it was not called off, or by a scheduler that did not
    /// write it.
    #[serde(default)]
    pub called_off: Option<CalledOff>,
    /// Allocations were given back since it was called off. They are looked at once more when every
    /// victim's fate is known.
    #[serde(default)]
    pub returned: bool,
    /// When giving back is tried (again).
    pub give_back_at: Option<Timestamp>,
    /// How often giving back was refused since it last succeeded.
    #[serde(default)]
    pub give_back_refusals: u32,
}

impl Preemption {
    /// True once all victims are gone.
    #[must_use]
    pub fn room_is_free(&self) -> bool {
        self.victims
            .iter()
            .all(|victim| matches!(victim.state, VictimState::Gone { .. }))
    }

    /// True once no agent owes an answer.
    pub(crate) fn is_settled(&self) -> bool {
        self.victims.iter().all(|victim| !victim.state.is_open())
    }

    /// Victims that live, as far as anybody knows: who is given back what it had, if it is still there.
    pub fn survivors(&self) -> impl Iterator<Item = &Victim> {
        self.victims
            .iter()
            .filter(|victim| !matches!(victim.state, VictimState::Gone { .. }))
    }
}
