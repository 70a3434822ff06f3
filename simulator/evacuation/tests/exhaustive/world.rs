//! The world: what is true at one moment, and what can happen next.

use crate::agent::{Agent, Call};
use crate::properties;
use crate::scheduler::{Crash, OwnedRecord, Row};
use ebbtide_evacuation::EvacuationPolicy;
use ebbtide_model::{EvacuationCause, EvacuationId, Seconds, ServerId, Timestamp};
use ebbtide_preemption::{
    Holding, Newcomer, Preemption, PreemptionPolicy, PreemptionState, ReplyWhen, Victim,
    VictimState,
};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use uuid::Uuid;

pub(crate) const HOST: &str = "host-0";
pub(crate) const VICTIM: ServerId = ServerId(Uuid::from_u128(0x10));
/// The victim's grace period.
pub(crate) const GRACE: Seconds = Seconds(1);
pub(crate) const SCHEDULERS: usize = 2;

/// How much of each may happen; without a bound there is no end of crashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Time ends after so many seconds.
    pub seconds: i64,
    /// So much goes wrong, in any mixture: a scheduler or the agent dies, the caller's message
    /// comes to another scheduler, a row is taken over (also from a scheduler that lives), the
    /// hypervisor fails, an answer of Placement is lost.
    pub faults: u8,
    /// Each message reaches the agent so often, or less.
    pub deliveries: u8,
    /// The caller gets its answer before the victims are gone.
    pub at_once: bool,
    /// The tenant may delete the newcomer at any moment, before its answer or after.
    pub deletes: bool,
}

/// A rule that is broken on purpose, to show that it would be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrokenInvariant {
    /// The ledger takes every write, whatever version it names.
    Versions,
    /// A swap is taken whatever generation it names.
    Generations,
    /// The notice goes out before the swap.
    NoticeFirst,
    /// The caller is answered before the victim is gone.
    AnswerFirst,
    /// The caller is answered although another scheduler has written the row meanwhile.
    AnswerUnwritten,
    /// What was called off is over before its agent has said that the victim stays.
    SpareIsAnswer,
    /// The agent asks the hypervisor before it has written that down.
    ActFirst,
}

impl BrokenInvariant {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Versions,
        Self::Generations,
        Self::NoticeFirst,
        Self::AnswerFirst,
        Self::AnswerUnwritten,
        Self::SpareIsAnswer,
        Self::ActFirst,
    ];
}

/// The model.
#[derive(Clone)]
pub(crate) struct Small {
    /// How much is explored.
    pub bounds: Bounds,
    /// What is wrong with it.
    pub broken: Option<BrokenInvariant>,
    /// Times, small.
    pub policy: PreemptionPolicy,
}

/// A message for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Command {
    /// The victim has to leave.
    Notice(EvacuationId, u32, Timestamp),
    /// It may stay.
    Spare(EvacuationId),
}

/// What an agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Report {
    /// Told at, ends at.
    Draining(EvacuationId, Timestamp, Timestamp),
    /// Gone at.
    Evacuated(EvacuationId, Timestamp),
    /// Still runs.
    Failed(EvacuationId, bool),
    /// It stays.
    Spared(EvacuationId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Placement {
    /// The victim has its room.
    Before,
    /// The newcomer has it.
    Swapped,
    /// The victim has it again, with another generation.
    GivenBack,
    /// No consumer has it: the newcomer has lost it, and the victim has left, or runs without.
    Free,
}

/// Everything at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    /// Seconds since the plan.
    pub at: i64,
    /// The ledger's row.
    pub row: Option<Row>,
    /// What each scheduler has in its hands.
    pub held: [Option<OwnedRecord>; SCHEDULERS],
    /// Who has the caller's message.
    pub message: [bool; SCHEDULERS],
    pub placement: Placement,
    /// A swap was taken.
    pub was_swapped: bool,
    /// What was said to the agent, and how often each has reached it.
    pub commands: BTreeMap<Command, u8>,
    /// What the agent has said; each reaches schedulers any number of times, or never.
    pub reports: BTreeSet<Report>,
    pub agent: Agent,
    pub caller_waits: bool,
    /// What it has heard first: whether it has room.
    pub heard: Option<bool>,
    /// The newcomer was deleted.
    pub deleted: bool,
    /// How much has gone wrong.
    pub faults: u8,
    /// What was broken that must never be, found in a step.
    pub wrong: Option<&'static str>,
}

/// Something that can happen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScriptStep {
    /// A second passes.
    Second,
    /// The caller does not wait any more.
    CallerLeaves,
    /// The tenant deletes the newcomer, and Nova's API its allocations.
    Delete,
    /// A scheduler notices that.
    Notice(usize),
    /// A scheduler writes its plan down.
    Begin(usize),
    /// A scheduler does what is due next. `bool`: of two outcomes that it cannot influence, the
    /// worse.
    Work(usize, bool, Crash),
    /// The caller's message comes to another scheduler.
    Redeliver(usize),
    /// A scheduler takes the row of another one, or its own of an earlier life.
    TakeOver(usize),
    /// A scheduler dies.
    Die(usize),
    /// A report reaches a scheduler.
    Hear(usize, Report),
    /// A command reaches the agent.
    Command(Command),
    /// The hypervisor has done what it was asked, and the agent hears of it.
    Done(Call),
    /// The agent looks at its clock.
    AgentTick,
    /// The agent dies and comes back. `true`: what it had asked for is done all the same.
    AgentDies(bool),
}

impl Small {
    /// Within these bounds, with nothing broken.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            broken: None,
            policy: PreemptionPolicy {
                evacuation: EvacuationPolicy {
                    notice_timeout: Seconds(1),
                    notice_attempts: 1,
                    act_timeout: Seconds(1),
                    failed_rest: Seconds(2),
                },
                room_timeout: Seconds(4),
                caller_every: Seconds(2),
                give_back_pause: Seconds(1),
                ..PreemptionPolicy::default()
            },
        }
    }

    pub(crate) fn breaks(&self, broken: BrokenInvariant) -> bool {
        self.broken == Some(broken)
    }
}

impl Now {
    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.at * 1000)
    }

    /// Only the first thing that is wrong counts.
    pub(crate) fn wrong(&mut self, what: &'static str) {
        self.wrong.get_or_insert(what);
    }

    /// What the caller hears; only the first word counts.
    pub(crate) fn hear(&mut self, room: bool) {
        if self.heard.is_none() {
            self.heard = Some(room);
            self.caller_waits = false;
        }
    }
}

impl Hash for Now {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.at, &self.row, &self.held, self.message).hash(state);
        // Versions only grow: what matters of them is whose is the row's.
        let current = self.row.as_ref().map(|row| row.version);
        for held in self.held.iter().flatten() {
            (Some(held.version) == current).hash(state);
        }
        (self.placement, self.was_swapped).hash(state);
        (&self.commands, &self.reports, &self.agent).hash(state);
        (self.caller_waits, self.heard, self.faults, self.wrong).hash(state);
        self.deleted.hash(state);
    }
}

/// Alike for all that is explored from here: what only counts how much has happened is not looked
/// at.
impl PartialEq for Now {
    fn eq(&self, other: &Self) -> bool {
        let fingerprint = |now: &Self| {
            let mut hasher = DefaultHasher::new();
            now.hash(&mut hasher);
            hasher.finish()
        };
        fingerprint(self) == fingerprint(other)
    }
}

/// The plan, as it is before anything has happened.
pub(crate) fn plan(at_once: bool) -> Preemption {
    let holding = |generation| Holding {
        allocations: serde_json::Value::Null,
        mappings: None,
        project_id: String::new(),
        user_id: String::new(),
        generation,
    };
    Preemption {
        id: Uuid::from_u128(1),
        cause: EvacuationCause::Preemption,
        reclaim_owner: None,
        decision_id: None,
        request_id: "req-1".to_owned(),
        unique_id: "message-1".to_owned(),
        planned_at: Timestamp::from_millis(0),
        state: PreemptionState::Planned,
        answerer: None,
        reply_when: if at_once {
            ReplyWhen::AtOnce
        } else {
            ReplyWhen::RoomFree
        },
        answered: false,
        in_doubt: false,
        unconfirmed: false,
        caller_seen: None,
        newcomers: vec![Newcomer {
            instance: Uuid::from_u128(0x20),
            host: HOST.to_owned(),
            claim: holding(None),
            before: None,
        }],
        victims: vec![Victim {
            server: VICTIM,
            name: String::new(),
            cost: 0.0,
            evacuation: EvacuationId(Uuid::from_u128(0x30)),
            host: HOST.to_owned(),
            had: holding(Some(1)),
            generation: 1,
            keeps: None,
            behaviour: ebbtide_model::InterruptionBehaviour::Terminate,
            grace: GRACE,
            flavor: String::new(),
            launched_at: None,
            released: false,
            state: VictimState::Claimed,
        }],
        result: serde_json::Value::Null,
        reason: None,
        withdrawal: None,
        returned: false,
        give_back_at: None,
        give_back_refusals: 0,
    }
}

impl Model for Small {
    type State = Now;
    type Action = ScriptStep;

    fn init_states(&self) -> Vec<Now> {
        vec![Now {
            at: 0,
            row: None,
            held: [None, None],
            message: [true, false],
            placement: Placement::Before,
            was_swapped: false,
            commands: BTreeMap::new(),
            reports: BTreeSet::new(),
            agent: Agent::new(),
            caller_waits: true,
            heard: None,
            deleted: false,
            faults: 0,
            wrong: None,
        }]
    }

    fn actions(&self, now: &Now, steps: &mut Vec<ScriptStep>) {
        if now.wrong.is_some() {
            return;
        }
        let bounds = &self.bounds;
        if now.at < bounds.seconds {
            steps.push(ScriptStep::Second);
        }
        if now.caller_waits && !bounds.deletes {
            steps.push(ScriptStep::CallerLeaves);
        }
        if bounds.deletes && !now.deleted && now.was_swapped {
            steps.push(ScriptStep::Delete);
        }
        let more_faults = now.faults < bounds.faults;
        for who in 0..SCHEDULERS {
            match &now.held[who] {
                Some(held) => {
                    for worse in [false, true] {
                        if worse && !(more_faults && held.is_uncertain(now)) {
                            continue;
                        }
                        steps.push(ScriptStep::Work(who, worse, Crash::None));
                        if more_faults && !worse {
                            steps.push(ScriptStep::Work(who, worse, Crash::BeforeWriting));
                        }
                    }
                    if now.deleted {
                        steps.push(ScriptStep::Notice(who));
                    }
                    if more_faults {
                        steps.push(ScriptStep::Die(who));
                    }
                }
                None if now.message[who] && now.row.is_none() => steps.push(ScriptStep::Begin(who)),
                None => {}
            }
            let open = now.row.as_ref().is_some_and(|row| !row.finished);
            if open && now.held[who].is_none() && more_faults {
                steps.push(ScriptStep::TakeOver(who));
            }
            if !now.message[who] && now.heard.is_none() && more_faults {
                steps.push(ScriptStep::Redeliver(who));
            }
            if open {
                let reports = now.reports.iter();
                steps.extend(reports.map(|report| ScriptStep::Hear(who, *report)));
            }
        }
        let commands = now.commands.iter();
        let commands = commands.filter(|(_, times)| **times < bounds.deliveries);
        steps.extend(commands.map(|(command, _)| ScriptStep::Command(*command)));
        now.agent.steps(now.time(), more_faults, steps);
    }

    fn next_state(&self, last: &Now, step: ScriptStep) -> Option<Now> {
        let mut now = last.clone();
        match step {
            ScriptStep::Second => now.at += 1,
            ScriptStep::CallerLeaves => now.caller_waits = false,
            ScriptStep::Delete => {
                now.deleted = true;
                now.caller_waits = false;
                if now.placement == Placement::Swapped {
                    now.placement = Placement::Free;
                }
            }
            ScriptStep::Notice(who) => self.notice(&mut now, who),
            ScriptStep::Begin(who) => self.begin(&mut now, who),
            ScriptStep::Work(who, worse, crash) => self.work(&mut now, who, worse, crash),
            ScriptStep::Redeliver(who) => self.redeliver(&mut now, who),
            ScriptStep::TakeOver(who) => self.take_over(&mut now, who),
            ScriptStep::Die(who) => self.die(&mut now, who),
            ScriptStep::Hear(who, report) => self.hear(&mut now, who, report),
            ScriptStep::Command(command) => {
                *now.commands.get_mut(&command)? += 1;
                self.deliver(&mut now, command);
            }
            ScriptStep::Done(call) => self.done(&mut now, call),
            ScriptStep::AgentTick => self.tick(&mut now),
            ScriptStep::AgentDies(done) => self.agent_dies(&mut now, done),
        }
        Some(now)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = properties::PROMISES
            .iter()
            .map(|(name, holds)| Property::always(name, *holds));
        let sometimes = properties::POSSIBLE
            .iter()
            .filter(|_| self.broken.is_none())
            .map(|(name, holds)| Property::sometimes(name, *holds));
        always.chain(sometimes).collect()
    }
}
