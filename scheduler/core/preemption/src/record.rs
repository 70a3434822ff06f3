//! The record of a preemption, as the ledger keeps it.

use crate::VictimState;
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The state of a preemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreemptionState {
    /// The record is written. Placement may or may not have taken the swap.
    Planned,
    /// Placement has taken the swap; no notice has been sent.
    Claimed,
    /// Victims get their notices and leave.
    Evacuating,
    /// Withdrawn: the scheduler spares the victims that still run and gives allocations back.
    Withdrawing,
    /// Finished: the newcomers have the capacity.
    Done,
    /// Finished: everything that could be given back was given back.
    Withdrawn,
    /// Finished: Placement did not take the swap; nothing has happened.
    Refused,
}

impl PreemptionState {
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

/// Why a preemption was withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithdrawalReason {
    /// The caller does not wait any more.
    CallerLeft,
    /// Every newcomer was deleted.
    NewcomersGone,
    /// The victims did not leave: an agent was silent, refused, or took too long.
    VictimsStay,
    /// More runs on a newcomer's host than Placement shows, so the newcomer does not fit.
    HostOverfull,
}

impl WithdrawalReason {
    /// The same in words, where the words do not depend on the case.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::CallerLeft => "the caller does not wait any more",
            Self::NewcomersGone => "the server that needed the capacity was deleted",
            Self::VictimsStay => "the victims stay",
            Self::HostOverfull => "more runs on the host than Placement shows",
        }
    }

    /// True if the request still needs capacity, so that another plan makes sense.
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
    /// The provider of each request group, if Placement returned it.
    #[serde(default)]
    pub mappings: Option<Value>,
    /// The project that owns the consumer.
    pub project_id: String,
    /// The user that created it.
    pub user_id: String,
    /// The consumer's generation before; `None` if Placement did not know the consumer.
    #[serde(default)]
    pub generation: Option<u64>,
}

/// An instance that gets capacity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Newcomer {
    /// The instance: Placement's consumer.
    pub instance: Uuid,
    /// Name of the nova-compute service's host.
    pub host: String,
    /// What it claims there.
    pub claim: Holding,
    /// What it held before the swap, which it gets back if the preemption is withdrawn: an instance
    /// that its owner evacuates holds allocations on its old host. `None` for a consumer that did
    /// not exist.
    #[serde(default)]
    pub before: Option<Holding>,
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
    /// Its consumer generation when it was chosen. Never null: Placement would make a consumer that
    /// cannot be removed.
    pub generation: u64,
    /// What it goes on holding: the disk of a server that is stopped and not deleted, for good;
    /// and, until it is gone, what the newcomers do not need of it.
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
    /// Begins a new evacuation of this victim, with a new identifier: the agent remembers how the
    /// last one ended.
    pub(super) fn begin_anew(&mut self) {
        self.evacuation = EvacuationId(Uuid::new_v5(&self.evacuation.0, b"once more"));
        self.state = VictimState::Claimed;
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
    pub state: PreemptionState,
    /// The scheduler that has the caller's message, by its name in the ledger. Only this scheduler
    /// can answer, so it drives the record. A scheduler that adopts the record without the message
    /// leaves this field as it is, and loses the record when the named scheduler asks for it.
    #[serde(default)]
    pub answerer: Option<String>,
    /// When the caller gets its answer.
    pub reply_when: ReplyWhen,
    /// The caller has its answer, or no caller waits for one.
    pub answered: bool,
    /// The swap was sent and its answer did not come.
    pub in_doubt: bool,
    /// When the caller was last known to wait.
    pub caller_seen: Option<Timestamp>,
    /// The instances that get the capacity.
    pub newcomers: Vec<Newcomer>,
    /// The instances that have to leave.
    pub victims: Vec<Victim>,
    /// The answer to the caller when the capacity is free: the reply's `result`.
    pub result: Value,
    /// Why it was withdrawn or refused.
    pub reason: Option<String>,
    /// The same, for programs; `None` if it was not withdrawn, or by a scheduler version that did
    /// not write it. Records of earlier versions call it `called_off`.
    #[serde(default, alias = "called_off")]
    pub withdrawal: Option<WithdrawalReason>,
    /// Allocations were given back after the withdrawal. The scheduler checks them once more when
    /// the fate of every victim is known.
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
            .all(|victim| matches!(victim.state, VictimState::Evacuated { .. }))
    }

    /// True once no agent owes an answer.
    pub(crate) fn is_settled(&self) -> bool {
        self.victims.iter().all(|victim| !victim.state.is_open())
    }

    /// Victims that live as far as is known. They get back what they had, if they still exist.
    pub fn survivors(&self) -> impl Iterator<Item = &Victim> {
        self.victims
            .iter()
            .filter(|victim| !matches!(victim.state, VictimState::Evacuated { .. }))
    }
}
