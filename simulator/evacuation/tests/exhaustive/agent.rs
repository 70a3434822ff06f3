//! The agent with its journal, its hypervisor and the one guest there is.

use crate::world::{
    BrokenInvariant, Command, HOST, Now, Placement, Report, ScriptStep, Small, VICTIM,
};
use ebbtide_agent_protocol::{
    ActionId, AgentCore, AgentEffect, AgentInput, AgentPolicy, DeliveryTag, DriverCall,
    DriverError, DriverResult, EvacuationPhase, JournalRecord, NoticeOutcome, Occupancy,
};
use ebbtide_model::message::{Body, HostedState, Message, Notice, Spare};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, MessageId, Resources, Timestamp};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use uuid::Uuid;

/// How a call of the hypervisor ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// As asked.
    Good,
    /// Not at all.
    Failed,
    /// The call has succeeded, but its answer does not arrive in time.
    DoneUnheard,
}

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    core: AgentCore,
    /// The one call that is under way.
    call: Option<(ActionId, DriverCall)>,
    /// Evacuations whose point of no return is in the journal.
    acting: BTreeSet<EvacuationId>,
    /// The guest runs.
    pub runs: bool,
    /// When the guest was told.
    notified_at: Option<Timestamp>,
    /// Evacuations that the agent has called off for good.
    spared: BTreeSet<EvacuationId>,
}

fn policy() -> AgentPolicy {
    AgentPolicy {
        notice_tries: 2,
        act_tries: 2,
        verify_tries: 2,
        start_tries: 1,
        ..AgentPolicy::default()
    }
}

/// Feeds the text of a value to a hasher, without the numbers that only count how much has
/// happened.
struct Fingerprint<'a, H: Hasher> {
    hasher: &'a mut H,
    skips: bool,
}

impl<H: Hasher> std::fmt::Write for Fingerprint<'_, H> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let counts = |word: &str| {
            matches!(
                word,
                "ActionId"
                    | "ReportId"
                    | "Token"
                    | "next_action"
                    | "next_report"
                    | "next_order"
                    | "order"
            )
        };
        if counts(text) {
            self.skips = true;
        } else if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            if !std::mem::take(&mut self.skips) {
                self.hasher.write(text.as_bytes());
            }
            return Ok(());
        }
        self.hasher.write(text.as_bytes());
        Ok(())
    }
}

impl Hash for Agent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        use std::fmt::Write;
        let mut fingerprint = Fingerprint {
            hasher: state,
            skips: false,
        };
        let _ = write!(fingerprint, "{:?}", self.core);
        let _ = write!(fingerprint, "{:?}", self.call);
        (&self.acting, self.runs, self.notified_at).hash(state);
        self.spared.hash(state);
    }
}

impl Agent {
    pub(crate) fn new() -> Self {
        let (core, _) = AgentCore::restore(HOST, policy(), [], Timestamp::from_millis(0));
        Self {
            core,
            call: None,
            acting: BTreeSet::new(),
            runs: true,
            notified_at: None,
            spared: BTreeSet::new(),
        }
    }

    /// What can happen to it next.
    pub(crate) fn steps(&self, now: Timestamp, more_faults: bool, steps: &mut Vec<ScriptStep>) {
        if self.call.is_some() {
            steps.push(ScriptStep::Done(Call::Good));
            if more_faults {
                steps.push(ScriptStep::Done(Call::Failed));
                steps.push(ScriptStep::Done(Call::DoneUnheard));
            }
        }
        if self.core.next_wakeup().is_some_and(|at| at <= now) {
            steps.push(ScriptStep::AgentTick);
        }
        if more_faults {
            steps.push(ScriptStep::AgentDies(false));
            if self.call.is_some() {
                steps.push(ScriptStep::AgentDies(true));
            }
        }
    }
}

impl Small {
    /// A command reaches the agent.
    pub(crate) fn deliver(&self, now: &mut Now, command: Command) {
        let (evacuation_id, body) = match command {
            Command::Notice(evacuation_id, attempt, begin_before) => {
                let notice = Notice {
                    evacuation_id,
                    server_id: VICTIM,
                    behaviour: InterruptionBehaviour::Terminate,
                    grace_seconds: crate::world::GRACE,
                    attempt,
                    begin_before,
                };
                (evacuation_id, Body::Notice(notice))
            }
            Command::Spare(evacuation_id) => {
                let server_id = VICTIM;
                (
                    evacuation_id,
                    Body::Spare(Spare {
                        evacuation_id,
                        server_id,
                    }),
                )
            }
        };
        let name = Uuid::new_v5(&evacuation_id.0, format!("{command:?}").as_bytes());
        let message = Message {
            id: MessageId(name),
            source: "/ebbtide/scheduler".to_owned(),
            time: Timestamp::from_millis(0),
            body,
        };
        let token = DeliveryTag(0);
        self.input(now, AgentInput::Command { token, message });
    }

    pub(crate) fn tick(&self, now: &mut Now) {
        self.input(now, AgentInput::Tick);
    }

    /// The hypervisor answers.
    pub(crate) fn done(&self, now: &mut Now, call: Call) {
        let Some((action, what)) = now.agent.call.take() else {
            return;
        };
        if call != Call::Good {
            now.faults += 1;
        }
        let result = match call {
            Call::Failed => Err(DriverError::Failed {
                what: "do it",
                detail: String::new(),
            }),
            Call::Good => self.effect(now, &what),
            Call::DoneUnheard => {
                let _ = self.effect(now, &what);
                Err(DriverError::TimedOut {
                    what: "do it",
                    seconds: 1,
                })
            }
        };
        self.input(now, AgentInput::ActionDone { action, result });
    }

    pub(crate) fn agent_dies(&self, now: &mut Now, done: bool) {
        now.faults += 1;
        if let (Some((_, what)), true) = (now.agent.call.take(), done) {
            let _ = self.effect(now, &what);
        }
        now.agent.call = None;
        let (core, effects) =
            AgentCore::restore(HOST, policy(), now.agent.core.records(), now.time());
        now.agent.core = core;
        self.perform(now, effects);
    }

    /// What the hypervisor does.
    fn effect(&self, now: &mut Now, what: &DriverCall) -> Result<DriverResult, DriverError> {
        let time = now.time();
        match what {
            DriverCall::Look => {
                let occupancy = match now.agent.runs {
                    false => Occupancy::Absent,
                    true => Occupancy::Present {
                        state: HostedState::Running,
                        holds: Resources::new(),
                        since: Timestamp::from_millis(0),
                    },
                };
                Ok(DriverResult::from_occupancy(occupancy))
            }
            _ if !now.agent.runs => Err(DriverError::NotFound { server_id: VICTIM }),
            DriverCall::GiveNotice(_) => {
                now.agent.notified_at.get_or_insert(time);
                Ok(DriverResult::Noticed(NoticeOutcome::Delivered))
            }
            DriverCall::WithdrawNotice(_) => Ok(DriverResult::Withdrawn),
            DriverCall::Interrupt(_) | DriverCall::Fence => {
                if !now.was_swapped {
                    now.wrong("a victim is ended for a swap that Placement never took");
                }
                match now.agent.notified_at {
                    None => now.wrong("a guest is ended that was never told"),
                    Some(told) if time < told.plus(crate::world::GRACE) => {
                        now.wrong("a guest is ended before its grace period is over");
                    }
                    Some(_) => {}
                }
                now.agent.runs = false;
                // Nova takes from a server that ends what it holds.
                if now.placement == Placement::GivenBack {
                    now.placement = Placement::Free;
                }
                Ok(match what {
                    DriverCall::Fence => DriverResult::Fenced,
                    _ => DriverResult::Interrupted,
                })
            }
            DriverCall::Start(_) | DriverCall::Delete(_) => Ok(DriverResult::Deleted),
        }
    }

    fn input(&self, now: &mut Now, input: AgentInput) {
        let time = now.time();
        let effects = now.agent.core.handle(time, input);
        self.perform(now, effects);
    }

    /// As the agent's shell: the journal first. What the journal has is what the core knows once
    /// all of it is written.
    fn perform(&self, now: &mut Now, effects: Vec<AgentEffect>) {
        for effect in &effects {
            if let AgentEffect::Journal(JournalRecord::Evacuation(record)) = effect
                && let EvacuationPhase::Acting { .. } = record.phase
                && !self.breaks(BrokenInvariant::ActFirst)
            {
                now.agent.acting.insert(record.evacuation_id);
            }
        }
        for effect in effects {
            match effect {
                AgentEffect::Drive { action, what, .. } => {
                    if let DriverCall::Interrupt(_) | DriverCall::Fence = &what {
                        self.about_to_end(now);
                    }
                    now.agent.call = Some((action, what));
                }
                AgentEffect::Publish { report, message } => {
                    self.say(now, &message.body);
                    // The broker has it; whether anybody ever reads it is another matter.
                    self.input(now, AgentInput::Published(report));
                }
                AgentEffect::Journal(_)
                | AgentEffect::Ack(_)
                | AgentEffect::DeadLetter(..)
                | AgentEffect::ServersChanged => {}
            }
        }
    }

    fn about_to_end(&self, now: &mut Now) {
        if now.agent.acting.is_empty() {
            now.wrong("the hypervisor is asked to end a guest, and the journal does not know");
        }
        if now
            .agent
            .acting
            .iter()
            .any(|id| now.agent.spared.contains(id))
        {
            now.wrong("a guest is ended of which the agent has said that it stays");
        }
    }

    fn say(&self, now: &mut Now, body: &Body) {
        let report = match body {
            Body::Draining(r) => Report::Draining(r.evacuation_id, r.notified_at, r.deadline_at),
            Body::Evacuated(r) => {
                if now.agent.runs {
                    now.wrong("a guest is reported as gone that runs");
                }
                Report::Evacuated(r.evacuation_id, r.at)
            }
            Body::EvacuationFailed(r) => Report::Failed(r.evacuation_id, r.still_running),
            Body::Spared(r) => {
                now.agent.spared.insert(r.evacuation_id);
                Report::Spared(r.evacuation_id)
            }
            _ => return,
        };
        now.reports.insert(report);
    }
}
