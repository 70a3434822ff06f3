//! The record of a preemption, as the ledger keeps it.

use crate::VictimState;
use ebbtide_evacuation::{Disruption, DisruptionStage, cause_text};
use ebbtide_model::message::{Body, EvacuationEnd};
use ebbtide_model::{
    DecisionId, EvacuationCause, EvacuationId, GroupId, InterruptionBehaviour, Seconds, ServerId,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use uuid::Uuid;

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
    /// The owner for whom the victims were to leave has returned the host.
    HostReturned,
    /// Placement has not confirmed that the victims are needed: a host has capacity without them,
    /// or they hold something else than was planned with.
    VictimsUnconfirmed,
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
            Self::HostReturned => "the host was returned by its owner",
            Self::VictimsUnconfirmed => "Placement did not confirm that the victims are needed",
        }
    }

    /// True if nothing needs the victims to leave any more, so that agents which may act on a
    /// notice of a failed evacuation are asked to spare them, too.
    pub(crate) fn spares_failed(self) -> bool {
        matches!(self, Self::NewcomersGone | Self::HostReturned)
    }

    /// True if the request still needs capacity, so that another plan makes sense.
    #[must_use]
    pub fn room_is_wanted(self) -> bool {
        matches!(
            self,
            Self::VictimsStay | Self::HostOverfull | Self::VictimsUnconfirmed
        )
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
    /// Its name when it was chosen. Empty in records of earlier versions.
    #[serde(default)]
    pub name: String,
    /// What its loss costs, in the cost module's unit. 0 in records of earlier versions.
    #[serde(default)]
    pub cost: f64,
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
    /// What it held beyond `keeps` was taken from it after its end; see
    /// [`PreemptionAction::Release`](crate::PreemptionAction).
    #[serde(default)]
    pub released: bool,
    /// Where it is.
    pub state: VictimState,
}

impl Victim {
    /// Begins a new evacuation of this victim, with a new identifier: the agent remembers how the
    /// last one ended.
    pub(super) fn begin_anew(&mut self) {
        self.evacuation = next_evacuation(self.evacuation);
        self.state = VictimState::Claimed;
    }

    /// Whether this is the victim's evacuation, or an earlier one that was begun anew.
    fn had_evacuation(&self, evacuation: EvacuationId) -> bool {
        let next = |id: &EvacuationId| Some(next_evacuation(*id));
        let mut later = std::iter::successors(Some(evacuation), next).take(MOST_REPEATS);
        later.any(|id| id == self.evacuation)
    }
}

/// How many repeated evacuations of one victim are told from those of other records: with the
/// shortest rest, those of half a day.
const MOST_REPEATS: usize = 500;

/// The evacuation that follows a failed one.
fn next_evacuation(failed: EvacuationId) -> EvacuationId {
    EvacuationId(Uuid::new_v5(&failed.0, b"once more"))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preemption {
    /// Its name in the ledger.
    pub id: Uuid,
    /// Why the victims have to leave.
    #[serde(default)]
    pub cause: EvacuationCause,
    /// The owner who takes the victims' host back, if that is the cause.
    #[serde(default)]
    pub reclaim_owner: Option<String>,
    /// The decision for the newcomers, if decisions are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<DecisionId>,
    /// Nova's request (`req-…`); without newcomers, cause and victim.
    pub request_id: String,
    /// The message's `_unique_id`: a redelivered request is recognised by it. Without newcomers,
    /// cause, victim, host and beginning of its life: one life ends once.
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
    /// Placement has not confirmed yet that these victims are needed. The scheduler that planned
    /// asks while it swaps. No notice is sent before the answer, and a scheduler that adopts the
    /// record without the answer withdraws it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
    /// When the caller was last known to wait.
    pub caller_seen: Option<Timestamp>,
    /// The instances that get the capacity. None if the victims leave for another cause than a
    /// preemption.
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

/// What the unique ids of [`Preemption::ahead_of_demand`] begin with.
pub const HEADROOM_KEY: &str = "headroom ";

/// The reason of what follows from a restored ledger.
pub(crate) const RESTORED: &str = "the ledger was restored from a backup";

/// The unique id of a turn. Of two, the later one is also the greater text.
fn headroom_key(turn: u64) -> String {
    format!("{HEADROOM_KEY}{turn:020}")
}

/// The turn after the last one that has a unique id.
#[must_use]
pub fn next_headroom_turn(last: Option<&str>) -> u64 {
    let turn = last.and_then(|last| last.strip_prefix(HEADROOM_KEY)?.parse::<u64>().ok());
    turn.map_or(1, |turn| turn.saturating_add(1))
}

impl Preemption {
    /// The end of a server whose capacity no newcomer needs. It has no swap and no caller, so it
    /// begins where a preemption is after its answer: the victim must leave, however long that
    /// takes. `lives_since`: the beginning of the life that ends.
    #[must_use]
    pub fn without_newcomers(
        id: Uuid,
        cause: EvacuationCause,
        victim: Victim,
        lives_since: Timestamp,
        now: Timestamp,
    ) -> Self {
        let request_id = format!("{} {}", cause.as_str(), victim.server);
        let since = lives_since.as_millis();
        Self {
            id,
            cause,
            reclaim_owner: None,
            decision_id: None,
            unique_id: format!("{request_id} {} {since}", victim.host),
            request_id,
            planned_at: now,
            state: PreemptionState::Evacuating,
            answerer: None,
            reply_when: ReplyWhen::default(),
            answered: true,
            in_doubt: false,
            unconfirmed: false,
            caller_seen: None,
            newcomers: Vec::new(),
            victims: vec![victim],
            result: Value::Null,
            reason: Some(cause_text(cause).to_owned()),
            withdrawal: None,
            returned: false,
            give_back_at: None,
            give_back_refusals: 0,
        }
    }

    /// The end of a server whose capacity is to be free before a normal server needs it. `turn`
    /// counts these ends over all schedulers: two that planned at the same moment name the same
    /// one, and the ledger takes only one of them.
    #[must_use]
    pub fn ahead_of_demand(id: Uuid, turn: u64, victim: Victim, now: Timestamp) -> Self {
        Self {
            unique_id: headroom_key(turn),
            ..Self::without_newcomers(id, EvacuationCause::Headroom, victim, now, now)
        }
    }

    /// The end of a server on a host that `owner` takes back. `since`: the beginning of the
    /// reclaim, or of the server's life if that is later.
    #[must_use]
    pub fn of_reclaim(
        id: Uuid,
        owner: String,
        victim: Victim,
        since: Timestamp,
        now: Timestamp,
    ) -> Self {
        Self {
            reclaim_owner: Some(owner),
            ..Self::without_newcomers(id, EvacuationCause::Reclaim, victim, since, now)
        }
    }

    /// The end of a server from which a swap without a record took allocations that others hold
    /// now. `keeps` of the victim is what the swap has left to it.
    #[must_use]
    pub fn ending_lost_swap(id: Uuid, victim: Victim, now: Timestamp) -> Self {
        Self::without_newcomers(id, EvacuationCause::Preemption, victim, now, now)
    }

    /// The withdrawal of a swap without a record: the victims run and get back what they had, and
    /// `newcomers`, which are on no host, lose what they claimed. No agent knows an evacuation of
    /// it, so the victims count as spared.
    #[must_use]
    pub fn returning_lost_swap(
        id: Uuid,
        host: &str,
        newcomers: Vec<Newcomer>,
        mut victims: Vec<Victim>,
        now: Timestamp,
    ) -> Self {
        for victim in &mut victims {
            victim.state = VictimState::Spared;
        }
        let cause = EvacuationCause::Preemption;
        Self {
            id,
            cause,
            reclaim_owner: None,
            decision_id: None,
            request_id: format!("lost {} on {host}", cause.as_str()),
            unique_id: format!("lost {id}"),
            planned_at: now,
            state: PreemptionState::Withdrawing,
            answerer: None,
            reply_when: ReplyWhen::default(),
            answered: true,
            in_doubt: false,
            unconfirmed: false,
            caller_seen: None,
            newcomers,
            victims,
            result: Value::Null,
            reason: Some(RESTORED.to_owned()),
            withdrawal: Some(WithdrawalReason::VictimsStay),
            returned: false,
            give_back_at: None,
            give_back_refusals: 0,
        }
    }

    /// Whether a swap has taken allocations from the victims. Servers that end for another cause
    /// hold everything until they are gone. A preemption without newcomers is of a swap whose
    /// record was lost.
    #[must_use]
    pub fn has_swap(&self) -> bool {
        !self.newcomers.is_empty() || self.cause == EvacuationCause::Preemption
    }

    /// True if the victims leave for the owner of their host.
    #[must_use]
    pub fn is_reclaim(&self) -> bool {
        self.cause == EvacuationCause::Reclaim
    }

    /// Whether the scheduler still has to take from a victim what it held. A swap has done that
    /// before the first notice. Without one, Nova does when the server is deleted or leaves its
    /// host, and only a stopped server goes on holding everything.
    pub(crate) fn owes_room(&self, victim: &Victim) -> bool {
        let stopped = matches!(
            victim.state,
            VictimState::Evacuated {
                how: EvacuationEnd::Stopped,
                ..
            }
        );
        !self.has_swap() && stopped && !victim.released
    }

    /// Whether an agent follows a notice of an earlier record about one of the victims. That record
    /// is over, and its notice may leave the server less time than this one's.
    #[must_use]
    pub fn is_about_earlier_record(&self, report: &Body) -> bool {
        let Body::Draining(report) = report else {
            return false;
        };
        let mut victims = self.victims.iter();
        let victim = victims.find(|victim| victim.server == report.server_id);
        victim.is_some_and(|victim| !victim.had_evacuation(report.evacuation_id))
    }

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

    /// The record as disruption budgets see it. An open record means to evict every victim that it
    /// has not spared; a failure is repeated, unless the record is being withdrawn. The record does
    /// not know the server groups of its victims.
    pub fn disruptions(
        &self,
        group_of: impl Fn(ServerId) -> Option<GroupId>,
    ) -> impl Iterator<Item = Disruption<'_>> {
        let over = self.state.is_final();
        let withdrawing = self.state == PreemptionState::Withdrawing;
        self.victims.iter().map(move |victim| Disruption {
            victim: victim.server,
            project_id: Cow::Borrowed(&victim.had.project_id),
            group_id: group_of(victim.server),
            cause: self.cause,
            claimed_at: self.planned_at,
            stage: match &victim.state {
                VictimState::Evacuated { .. } => DisruptionStage::Evacuated,
                VictimState::Spared => DisruptionStage::Over,
                VictimState::Failed { .. } if withdrawing => DisruptionStage::Over,
                _ if over => DisruptionStage::Over,
                _ => DisruptionStage::UnderWay,
            },
        })
    }

    /// Victims that live as far as is known. They get back what they had, if they still exist.
    pub fn survivors(&self) -> impl Iterator<Item = &Victim> {
        self.victims
            .iter()
            .filter(|victim| !matches!(victim.state, VictimState::Evacuated { .. }))
    }
}
