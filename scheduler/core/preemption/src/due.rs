//! The actions that are due.

use super::{Preemption, PreemptionPolicy, PreemptionState, ReplyWhen, VictimState};
use ebbtide_model::Timestamp;

/// A notice that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeOrder {
    /// The victim's index in the record.
    pub victim: usize,
    /// From 1.
    pub attempt: u32,
    /// The agent must not begin after this time.
    pub begin_before: Timestamp,
}

/// An action that is due now. The shell executes it and feeds the outcome back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreemptionAction {
    /// Send the swap: one `POST /allocations` that empties the victims and writes the newcomers'
    /// claims.
    Swap,
    /// Read from Placement whether the newcomers hold their claims.
    ReadSwap,
    /// Find out whether the caller still waits.
    AskCaller,
    /// Send a notice to a victim's agent.
    Notify(NoticeOrder),
    /// Send a spare to the agent of the victim with this index.
    Spare(usize),
    /// Give the caller the result.
    Answer,
    /// Tell the caller that no capacity became free.
    AnswerNoRoom,
    /// Take from the victim with this index what it held beyond what it keeps: no swap has done it,
    /// and Nova leaves it to a stopped server.
    Release(usize),
    /// Write the usage record of the victim with this index.
    Record(usize),
    /// Give allocations back: victims that live hold again what they had; newcomers and victims
    /// that are gone hold nothing. Due once when the preemption is withdrawn, and once more when
    /// the fate of every victim is known.
    GiveBack,
}

impl Preemption {
    /// What has to be done in the state as it is. Empty: wait for reports or for time to pass, at
    /// most until [`Self::wake_at`].
    #[must_use]
    pub fn due(&self, now: Timestamp, policy: &PreemptionPolicy) -> Vec<PreemptionAction> {
        match self.state {
            PreemptionState::Planned if self.in_doubt => vec![PreemptionAction::ReadSwap],
            PreemptionState::Planned => vec![PreemptionAction::Swap],
            PreemptionState::Claimed => vec![PreemptionAction::AskCaller],
            PreemptionState::Evacuating => self.evacuating(now, policy),
            PreemptionState::Withdrawing => self.withdrawing(now),
            PreemptionState::Done | PreemptionState::Withdrawn | PreemptionState::Refused => {
                self.records()
            }
        }
    }

    fn evacuating(&self, now: Timestamp, policy: &PreemptionPolicy) -> Vec<PreemptionAction> {
        let mut actions = self.records();
        for (place, victim) in self.victims.iter().enumerate() {
            let (attempt, begin_before) = match victim.state {
                VictimState::Claimed => (1, policy.evacuation.begin_before(now, 1)),
                VictimState::Notified {
                    attempt,
                    published: false,
                    begin_before,
                    ..
                } => (attempt, begin_before),
                _ => continue,
            };
            actions.push(PreemptionAction::Notify(NoticeOrder {
                victim: place,
                attempt,
                begin_before,
            }));
        }
        if self.answered {
            return actions;
        }
        let all_notified = actions
            .iter()
            .all(|a| !matches!(a, PreemptionAction::Notify(_)));
        if self.room_is_free() || (self.reply_when == ReplyWhen::AtOnce && all_notified) {
            actions.push(PreemptionAction::Answer);
        } else if self
            .caller_seen
            .is_none_or(|seen| seen.plus(policy.caller_every) <= now)
        {
            actions.push(PreemptionAction::AskCaller);
        }
        actions
    }

    fn withdrawing(&self, now: Timestamp) -> Vec<PreemptionAction> {
        let rested = self.give_back_at.is_none_or(|at| at <= now);
        let mut actions = Vec::new();
        // Give back before the spares: otherwise Placement would fill the host, and the running
        // victim would be overcommitted.
        if !self.returned && rested {
            actions.push(PreemptionAction::GiveBack);
        }
        actions.extend(self.records());
        for (place, victim) in self.victims.iter().enumerate() {
            if matches!(
                victim.state,
                VictimState::SpareRequested {
                    published: false,
                    ..
                }
            ) {
                actions.push(PreemptionAction::Spare(place));
            }
        }
        if self.returned && self.is_settled() && rested {
            actions.push(PreemptionAction::GiveBack);
        }
        actions
    }

    /// Usage records and answers that are owed in any state.
    fn records(&self) -> Vec<PreemptionAction> {
        let unrecorded = |state: &VictimState| {
            matches!(
                state,
                VictimState::Evacuated {
                    recorded: false,
                    ..
                }
            )
        };
        let ended = self.victims.iter().enumerate();
        let ended = ended.filter(|(_, victim)| unrecorded(&victim.state));
        let mut actions: Vec<PreemptionAction> = ended
            .map(|(place, victim)| match self.owes_room(victim) {
                true => PreemptionAction::Release(place),
                false => PreemptionAction::Record(place),
            })
            .collect();
        if self.state == PreemptionState::Withdrawn && !self.answered {
            actions.push(PreemptionAction::AnswerNoRoom);
        }
        actions
    }

    /// When [`super::PreemptionInput::Tick`] changes something or [`Self::due`] has something new,
    /// if nothing else happens before. `None`: never.
    #[must_use]
    pub fn wake_at(&self, policy: &PreemptionPolicy) -> Option<Timestamp> {
        let victims = self.victims.iter().filter_map(|victim| match victim.state {
            VictimState::Failed { again, .. } if self.answered => Some(again),
            _ => victim.state.limit(&policy.evacuation),
        });
        match self.state {
            PreemptionState::Evacuating => {
                let waited_for = (!self.answered).then_some([
                    self.caller_seen.map(|at| at.plus(policy.caller_every)),
                    Some(self.planned_at.plus(policy.room_timeout)),
                ]);
                victims
                    .chain(waited_for.into_iter().flatten().flatten())
                    .min()
            }
            PreemptionState::Withdrawing if !self.returned || self.is_settled() => {
                victims.chain(self.give_back_at).min()
            }
            PreemptionState::Withdrawing => victims.min(),
            _ => None,
        }
    }
}
