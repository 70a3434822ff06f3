//! Inputs of the state machine: outcomes of actions, agents' reports, the passing of time.

use super::{Preemption, PreemptionPolicy, PreemptionState, VictimState, WithdrawalReason};
use ebbtide_model::Timestamp;
use ebbtide_model::message::Body;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum PreemptionInput<'a> {
    /// Placement has taken the swap.
    Swapped,
    /// Placement has refused the swap: nothing was changed.
    SwapRefused {
        /// Placement's text.
        reason: &'a str,
    },
    /// The swap was sent, and no answer came.
    SwapUnknown,
    /// The result of a read after a lost answer.
    SwapRead {
        /// True if the newcomers hold their claims.
        held: bool,
    },
    /// A read showed that Placement had taken the swap and that every newcomer has been deleted
    /// since: the victims run without allocations.
    SwapAbandoned,
    /// Whether the caller still waits.
    Caller {
        /// True if it does.
        waits: bool,
    },
    /// The broker has a victim's notice.
    NoticePublished {
        /// The victim's index in the record.
        victim: usize,
        /// Which attempt.
        attempt: u32,
        /// The notice's `begin_before`.
        begin_before: Timestamp,
    },
    /// The broker has a victim's spare.
    SparePublished {
        /// The victim's index in the record.
        victim: usize,
    },
    /// An agent has said something.
    Report(&'a Body),
    /// A usage record is written.
    Recorded {
        /// The victim's index in the record.
        victim: usize,
    },
    /// The caller has its answer.
    Answered,
    /// Allocations are given back.
    GivenBack,
    /// Placement refused to take allocations back, or could not be asked.
    GiveBackFailed {
        /// Placement's text.
        reason: &'a str,
    },
    /// Every newcomer was deleted, whether its caller has its answer or not.
    NewcomersGone,
    /// The preemption must be withdrawn.
    Withdraw {
        /// Why.
        why: WithdrawalReason,
        /// The same, in words.
        reason: &'a str,
    },
    /// Time has passed.
    Tick,
}

impl Preemption {
    /// Processes an event. True if the record has changed and must be written. An event that does
    /// not fit the state (late, repeated, about another evacuation) changes nothing.
    pub fn feed(
        &mut self,
        input: &PreemptionInput<'_>,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) -> bool {
        let before = self.clone();
        match *input {
            PreemptionInput::Swapped if self.state == PreemptionState::Planned => self.claimed(),
            PreemptionInput::SwapRefused { reason } if self.state == PreemptionState::Planned => {
                self.state = PreemptionState::Refused;
                self.reason = Some(reason.to_owned());
                // No caller waits for this record any more: the request continues with another
                // plan.
                self.answered = true;
            }
            PreemptionInput::SwapUnknown if self.state == PreemptionState::Planned => {
                self.in_doubt = true
            }
            PreemptionInput::SwapRead { held: true } if self.state == PreemptionState::Planned => {
                self.claimed()
            }
            PreemptionInput::SwapRead { held: false } if self.state == PreemptionState::Planned => {
                self.in_doubt = false;
            }
            PreemptionInput::SwapAbandoned if self.state == PreemptionState::Planned => {
                self.claimed();
                let reason = "what it made room for was deleted";
                self.withdraw(WithdrawalReason::NewcomersGone, reason, now, policy);
            }
            PreemptionInput::Caller { waits: true } => {
                self.caller_seen = Some(now);
                if self.state == PreemptionState::Claimed {
                    self.state = PreemptionState::Evacuating;
                }
            }
            PreemptionInput::Caller { waits: false } if !self.answered => {
                let reason = "the caller does not wait any more";
                self.withdraw(WithdrawalReason::CallerLeft, reason, now, policy);
            }
            // Also after the answer: the victims would leave for a newcomer that does not exist.
            PreemptionInput::NewcomersGone if !self.room_is_free() => {
                let reason = "what it made room for was deleted";
                self.withdraw(WithdrawalReason::NewcomersGone, reason, now, policy);
            }
            PreemptionInput::Withdraw { why, reason } if !self.answered => {
                self.withdraw(why, reason, now, policy);
            }
            PreemptionInput::NoticePublished {
                victim,
                attempt,
                begin_before,
            } => self.noticed(victim, attempt, begin_before, now, policy),
            PreemptionInput::SparePublished { victim } => {
                if let Some(victim) = self.victims.get_mut(victim)
                    && let VictimState::Sparing { published, until } = &mut victim.state
                    && !*published
                {
                    *published = true;
                    *until = now.plus(policy.patience()).plus(policy.act_timeout);
                }
            }
            PreemptionInput::Report(body) => self.report(body, now, policy),
            PreemptionInput::Recorded { victim } => {
                if let Some(victim) = self.victims.get_mut(victim)
                    && let VictimState::Gone { recorded, .. } = &mut victim.state
                {
                    *recorded = true;
                }
            }
            PreemptionInput::Answered => self.answered = true,
            PreemptionInput::GivenBack if self.state == PreemptionState::Withdrawing => {
                if self.is_settled() {
                    self.state = PreemptionState::Withdrawn;
                }
                self.returned = true;
                self.give_back_at = None;
                self.give_back_refusals = 0;
            }
            PreemptionInput::GiveBackFailed { reason }
                if self.state == PreemptionState::Withdrawing =>
            {
                self.reason = Some(reason.to_owned());
                let rest = policy.give_back_rest_millis(self.give_back_refusals);
                let at = now.as_millis().saturating_add(rest);
                self.give_back_at = Some(Timestamp::from_millis(at));
                self.give_back_refusals = self.give_back_refusals.saturating_add(1);
            }
            PreemptionInput::Tick => self.tick(now, policy),
            _ => {}
        }
        if self.state == PreemptionState::Evacuating && self.answered && self.room_is_free() {
            self.state = PreemptionState::Done;
        }
        *self != before
    }

    fn claimed(&mut self) {
        self.state = PreemptionState::Claimed;
        self.in_doubt = false;
    }

    fn noticed(
        &mut self,
        place: usize,
        attempt: u32,
        begin_before: Timestamp,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) {
        if self.state != PreemptionState::Evacuating {
            return;
        }
        let Some(victim) = self.victims.get_mut(place) else {
            return;
        };
        let awaited = match victim.state {
            VictimState::Waiting => attempt == 1,
            VictimState::Noticed {
                attempt: current,
                published: false,
                ..
            } => attempt == current,
            _ => false,
        };
        if awaited {
            victim.state = VictimState::Noticed {
                attempt,
                published: true,
                // The agent's time begins when the broker has the message.
                until: now.plus(policy.notice_timeout),
                begin_before,
            };
        }
    }

    fn report(&mut self, body: &Body, now: Timestamp, policy: &PreemptionPolicy) {
        let (evacuation, host) = match body {
            Body::Draining(report) => (report.evacuation_id, &report.host),
            Body::Evacuated(report) => (report.evacuation_id, &report.host),
            Body::EvacuationFailed(report) => (report.evacuation_id, &report.host),
            Body::Spared(report) => (report.evacuation_id, &report.host),
            _ => return,
        };
        let server = body.server_id();
        let Some(victim) = self.victims.iter_mut().find(|victim| {
            victim.evacuation == evacuation && Some(victim.server) == server && victim.host == *host
        }) else {
            return;
        };
        match body {
            Body::Draining(report) => {
                if matches!(
                    victim.state,
                    VictimState::Waiting | VictimState::Noticed { .. }
                ) {
                    victim.state = VictimState::Draining {
                        // Limits the wait if the agent's clock is far ahead.
                        deadline: report.deadline_at.min(now.plus(victim.grace)),
                    };
                }
            }
            // Accepted in any state: a victim that was spared too late is gone all the same.
            Body::Evacuated(report) if !matches!(victim.state, VictimState::Gone { .. }) => {
                victim.state = VictimState::Gone {
                    how: report.how,
                    at: report.at.min(now),
                    unbilled: report.unbilled_seconds,
                    recorded: false,
                };
            }
            Body::Spared(_) if victim.state.is_open() => {
                victim.state = VictimState::Spared;
                if self.state == PreemptionState::Evacuating && !self.answered {
                    let reason = "an agent has let a victim live";
                    self.withdraw(WithdrawalReason::VictimsStay, reason, now, policy);
                }
            }
            // This may answer an earlier attempt while a later one is on its way. Only "spared"
            // says that the agent will not act.
            Body::EvacuationFailed(report)
                if report.still_running && matches!(victim.state, VictimState::Sparing { .. }) => {}
            Body::EvacuationFailed(report) if victim.state.is_open() => {
                let reason = report.reason.clone();
                let waits = self.state == PreemptionState::Evacuating && !self.answered;
                victim.state = if waits && report.still_running {
                    VictimState::Sparing {
                        published: false,
                        until: now.plus(policy.patience()).plus(policy.act_timeout),
                    }
                } else {
                    VictimState::Failed {
                        reason: reason.clone(),
                        again: now.plus(policy.failed_rest),
                    }
                };
                if waits {
                    self.withdraw(WithdrawalReason::VictimsStay, &reason, now, policy);
                }
            }
            _ => {}
        }
    }

    /// Withdraws the preemption: the scheduler spares victims that may have a notice; the others
    /// simply stay.
    fn withdraw(
        &mut self,
        why: WithdrawalReason,
        reason: &str,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) {
        if self.state == PreemptionState::Withdrawing && !why.room_is_wanted() {
            self.called_off = Some(why);
        }
        if !matches!(
            self.state,
            PreemptionState::Claimed | PreemptionState::Evacuating
        ) {
            return;
        }
        // The scheduler that wrote the record last may have died between sending a notice and
        // recording that. Once notices may be sent, every agent may have received one.
        let unheard = self.state == PreemptionState::Claimed;
        self.state = PreemptionState::Withdrawing;
        self.reason = Some(reason.to_owned());
        self.called_off = Some(why);
        // After an early answer an agent that had failed was due for further notices and was never
        // asked to spare its victim. It may recover and act on a notice that it has.
        let given_up = why == WithdrawalReason::NewcomersGone;
        for victim in &mut self.victims {
            match victim.state {
                VictimState::Waiting if unheard => victim.state = VictimState::Spared,
                VictimState::Failed { .. } if !given_up => {}
                VictimState::Waiting
                | VictimState::Noticed { .. }
                | VictimState::Draining { .. }
                | VictimState::Failed { .. } => {
                    victim.state = VictimState::Sparing {
                        published: false,
                        until: now.plus(policy.patience()).plus(policy.act_timeout),
                    };
                }
                _ => {}
            }
        }
    }

    fn tick(&mut self, now: Timestamp, policy: &PreemptionPolicy) {
        let mut silent = None;
        let answered = self.answered;
        for victim in &mut self.victims {
            let failed = |reason: String| VictimState::Failed {
                reason,
                again: now.plus(policy.failed_rest),
            };
            // A silent agent may only be slow or cut off. If its victim should stay, the agent must
            // be told.
            let given_up = |reason: &str| {
                if answered {
                    failed(reason.to_owned())
                } else {
                    VictimState::Sparing {
                        published: false,
                        until: now.plus(policy.patience()).plus(policy.act_timeout),
                    }
                }
            };
            match &mut victim.state {
                VictimState::Noticed {
                    attempt,
                    published,
                    until,
                    ..
                } if *until <= now && *published => {
                    if *attempt < policy.notice_attempts {
                        *attempt += 1;
                        *published = false;
                    } else {
                        let reason = format!(
                            "the agent on {} did not answer {attempt} notices",
                            victim.host
                        );
                        victim.state = given_up(&reason);
                        silent = Some(reason);
                    }
                }
                VictimState::Draining { deadline } if deadline.plus(policy.act_timeout) <= now => {
                    let reason = format!(
                        "the agent on {} did not report the end within {} after the grace period",
                        victim.host, policy.act_timeout
                    );
                    victim.state = given_up(&reason);
                    silent = Some(reason);
                }
                // Until the broker has the spare, the agent cannot know of it.
                VictimState::Sparing {
                    published: true,
                    until,
                } if *until <= now => {
                    victim.state = failed(format!(
                        "the agent on {} did not say whether the server lives",
                        victim.host
                    ));
                }
                // The newcomer has been placed already, so the victim must leave, however long it
                // takes.
                VictimState::Failed { again, .. }
                    if answered && self.state == PreemptionState::Evacuating && *again <= now =>
                {
                    victim.begin_anew();
                }
                VictimState::Spared if answered && self.state == PreemptionState::Evacuating => {
                    victim.begin_anew();
                }
                _ => {}
            }
        }
        let too_long = self.planned_at.plus(policy.room_timeout) <= now;
        let reason = silent.or_else(|| {
            too_long.then(|| {
                format!(
                    "the room did not become free within {}",
                    policy.room_timeout
                )
            })
        });
        if let Some(reason) = reason
            && self.state == PreemptionState::Evacuating
            && !self.answered
            && !self.room_is_free()
        {
            self.withdraw(WithdrawalReason::VictimsStay, &reason, now, policy);
        }
    }
}
