//! Schedulers and their ledger: as the Nova service does it, a step at a time
//! (`scheduler/openstack/nova-service`, `evacuate`).

use crate::world::{BrokenInvariant, Command, HOST, Now, Placement, Report, Small, VICTIM, plan};
use ebbtide_model::message::{Body, Draining, Evacuated, EvacuationEnd, EvacuationFailed, Spared};
use ebbtide_preemption::{
    Preemption, PreemptionAction, PreemptionInput, PreemptionState, VictimState,
};
use std::hash::{Hash, Hasher};

/// Placement's generation of the victim before the swap.
const BEFORE: u64 = 1;

/// A row of the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub record: Preemption,
    pub version: u8,
    pub owner: usize,
    pub finished: bool,
}

/// A record in a scheduler's hands.
#[derive(Debug, Clone)]
pub(crate) struct OwnedRecord {
    pub record: Preemption,
    pub version: u8,
    /// The swap may have been sent before.
    swap_sent: bool,
    /// The caller's message is here.
    waiting: bool,
}

/// When a scheduler dies in the middle of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    None,
    /// The action is done, but not written down.
    BeforeWriting,
}

/// A scheduler let go of its record, or died.
struct Stop;

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.record, state);
        (self.owner, self.finished).hash(state);
    }
}

impl Hash for OwnedRecord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.record, state);
        (self.swap_sent, self.waiting).hash(state);
    }
}

/// What changes of a record.
fn hash<H: Hasher>(record: &Preemption, state: &mut H) {
    (record.state as u8, &record.answerer).hash(state);
    (record.answered, record.in_doubt, record.caller_seen).hash(state);
    (&record.give_back_at, record.reason.is_some()).hash(state);
    (record.withdrawal, record.returned).hash(state);
    record.give_back_refusals.hash(state);
    for victim in &record.victims {
        victim.evacuation.hash(state);
        match &victim.state {
            VictimState::Claimed => 0_u8.hash(state),
            VictimState::Notified {
                attempt,
                published,
                until,
                begin_before,
            } => (1_u8, attempt, published, until, begin_before).hash(state),
            VictimState::Draining { deadline } => (2_u8, deadline).hash(state),
            VictimState::Evacuated { at, recorded, .. } => (3_u8, at, recorded).hash(state),
            VictimState::SpareRequested { published, until } => {
                (4_u8, published, until).hash(state)
            }
            VictimState::Spared => 5_u8.hash(state),
            VictimState::Failed { again, .. } => (6_u8, again).hash(state),
        }
    }
}

impl OwnedRecord {
    /// Whether what is due next can come out in two ways.
    pub(crate) fn is_uncertain(&self, now: &Now) -> bool {
        match self.record.state {
            // The answer of Placement can be lost.
            PreemptionState::Planned => !self.record.in_doubt,
            // Who has not the message knows less about its caller.
            PreemptionState::Claimed | PreemptionState::Evacuating => {
                !self.waiting && now.caller_waits
            }
            _ => false,
        }
    }
}

fn name(who: usize) -> String {
    format!("scheduler-{who}")
}

impl Small {
    pub(crate) fn begin(&self, now: &mut Now, who: usize) {
        let mut record = plan(self.bounds.at_once);
        record.answerer = Some(name(who));
        now.row = Some(Row {
            record: record.clone(),
            version: 1,
            owner: who,
            finished: false,
        });
        if self.breaks(BrokenInvariant::NoticeFirst) {
            let evacuation = record.victims[0].evacuation;
            let until = now.time().plus(self.policy.evacuation.patience());
            now.commands
                .insert(Command::Notice(evacuation, 1, until), 0);
        }
        now.held[who] = Some(OwnedRecord {
            record,
            version: 1,
            swap_sent: false,
            waiting: true,
        });
    }

    pub(crate) fn die(&self, now: &mut Now, who: usize) {
        now.faults += 1;
        now.held[who] = None;
    }

    /// The broker redelivers the message to another scheduler. The previous holder does not know
    /// that.
    pub(crate) fn redeliver(&self, now: &mut Now, who: usize) {
        now.faults += 1;
        now.message = [false; 2];
        now.message[who] = true;
        let Some(row) = now.row.clone() else { return };
        if row.record.answered {
            let room = !matches!(
                row.record.state,
                PreemptionState::Refused | PreemptionState::Withdrawn
            );
            now.hear(room);
            return;
        }
        if row.finished {
            return;
        }
        if let Some(held) = &mut now.held[who] {
            held.waiting = true;
            if held.record.answerer != Some(name(who)) {
                held.record.answerer = Some(name(who));
                let _ = self.write(now, who);
            }
            return;
        }
        self.adopt(now, who, true);
    }

    pub(crate) fn take_over(&self, now: &mut Now, who: usize) {
        now.faults += 1;
        self.adopt(now, who, false);
    }

    fn adopt(&self, now: &mut Now, who: usize, waiting: bool) {
        let Some(row) = &mut now.row else { return };
        if row.record.state == PreemptionState::Planned {
            row.record.in_doubt = true;
        }
        if waiting {
            row.record.answerer = Some(name(who));
        }
        row.version += 1;
        row.owner = who;
        now.held[who] = Some(OwnedRecord {
            record: row.record.clone(),
            version: row.version,
            swap_sent: row.record.in_doubt,
            waiting,
        });
    }

    /// Writes the record that a scheduler holds. If the version differs, the scheduler reads the
    /// row again and goes on if the row is still its own: the other scheduler has only written a
    /// report into it.
    fn write(&self, now: &mut Now, who: usize) -> Result<(), Stop> {
        let (Some(row), Some(held)) = (&mut now.row, &mut now.held[who]) else {
            return Err(Stop);
        };
        if row.version == held.version || self.breaks(BrokenInvariant::Versions) {
            row.record = held.record.clone();
            row.version += 1;
            held.version = row.version;
            return Ok(());
        }
        self.reload(now, who)
    }

    fn reload(&self, now: &mut Now, who: usize) -> Result<(), Stop> {
        match (&now.row, &mut now.held[who]) {
            (Some(row), Some(held)) if row.owner == who && !row.finished => {
                held.record = row.record.clone();
                held.version = row.version;
                Ok(())
            }
            _ => {
                now.held[who] = None;
                Err(Stop)
            }
        }
    }

    fn feed(&self, now: &mut Now, who: usize, input: &PreemptionInput<'_>) -> Result<(), Stop> {
        let time = now.time();
        let Some(held) = &mut now.held[who] else {
            return Err(Stop);
        };
        if !held.record.feed(input, time, &self.policy) {
            return Ok(());
        }
        // The next owner of the row reads this from Placement again.
        if held.record.state == PreemptionState::Claimed {
            return Ok(());
        }
        self.write(now, who)
    }

    /// One thing that is due. `worse`: of two outcomes the worse.
    pub(crate) fn work(&self, now: &mut Now, who: usize, worse: bool, crash: Crash) {
        now.faults += u8::from(worse);
        let _ = self.try_work(now, who, worse, crash);
        if crash == Crash::BeforeWriting && now.held[who].is_some() {
            self.die(now, who);
        }
    }

    fn try_work(&self, now: &mut Now, who: usize, worse: bool, crash: Crash) -> Result<(), Stop> {
        self.feed(now, who, &PreemptionInput::Tick)?;
        let Some(held) = now.held[who].clone() else {
            return Err(Stop);
        };
        let due = held.record.due(now.time(), &self.policy);
        let Some(action) = due.first() else {
            if held.record.state.is_final() && crash == Crash::None {
                self.close(now, who, &held);
            }
            return Ok(());
        };
        let dies = crash == Crash::BeforeWriting;
        let then = |now: &mut Now, input: &PreemptionInput<'_>| match dies {
            true => Err(Stop),
            false => self.feed(now, who, input),
        };
        let victim = &held.record.victims[0];
        match action {
            PreemptionAction::Swap => {
                let fits = now.placement == Placement::Before
                    || (self.breaks(BrokenInvariant::Generations)
                        && now.placement == Placement::GivenBack);
                if fits && victim.generation == BEFORE {
                    now.placement = Placement::Swapped;
                    now.was_swapped = true;
                    if now.row.is_none() {
                        now.wrong("a swap is taken of which nothing is written down");
                    }
                    let input = if worse {
                        PreemptionInput::SwapUnknown
                    } else {
                        PreemptionInput::Swapped
                    };
                    self.note_sent(now, who, worse);
                    return then(now, &input);
                }
                if held.swap_sent && now.placement == Placement::Swapped {
                    return then(now, &PreemptionInput::Swapped);
                }
                then(now, &PreemptionInput::SwapRefused { reason: "409" })
            }
            PreemptionAction::ReadSwap => {
                if now.placement == Placement::Free && now.agent.runs {
                    return then(now, &PreemptionInput::SwapAbandoned);
                }
                let in_force = now.placement == Placement::Swapped;
                then(now, &PreemptionInput::SwapRead { in_force })
            }
            PreemptionAction::AskCaller => {
                let waits = now.caller_waits && !worse;
                then(now, &PreemptionInput::Caller { waits })?;
                if self.breaks(BrokenInvariant::AnswerFirst) && waits {
                    now.hear(true);
                }
                Ok(())
            }
            PreemptionAction::Notify(order) => {
                let notice = Command::Notice(victim.evacuation, order.attempt, order.begin_before);
                now.commands.entry(notice).or_insert(0);
                then(
                    now,
                    &PreemptionInput::NoticePublished {
                        victim: order.victim,
                        attempt: order.attempt,
                        begin_before: order.begin_before,
                    },
                )
            }
            PreemptionAction::Spare(place) => {
                let spare = Command::Spare(victim.evacuation);
                now.commands.entry(spare).or_insert(0);
                then(now, &PreemptionInput::SparePublished { victim: *place })?;
                if self.breaks(BrokenInvariant::SpareIsAnswer) {
                    let word = body_of(Report::Spared(victim.evacuation));
                    return self.feed(now, who, &PreemptionInput::Report(&word));
                }
                Ok(())
            }
            PreemptionAction::Answer => {
                // Written before it is said.
                then(now, &PreemptionInput::Answered)?;
                let written = now.held[who].as_ref().is_some_and(|h| h.record.answered);
                if held.waiting && (written || self.breaks(BrokenInvariant::AnswerUnwritten)) {
                    now.hear(true);
                }
                Ok(())
            }
            PreemptionAction::AnswerNoRoom => then(now, &PreemptionInput::Answered),
            PreemptionAction::Release(place) => {
                then(now, &PreemptionInput::Released { victim: *place })
            }
            PreemptionAction::Record(place) => {
                then(now, &PreemptionInput::Recorded { victim: *place })
            }
            PreemptionAction::GiveBack => {
                self.give_back(now);
                then(now, &PreemptionInput::GivenBack)
            }
        }
    }

    fn note_sent(&self, now: &mut Now, who: usize, unknown: bool) {
        if let Some(held) = &mut now.held[who] {
            held.swap_sent |= unknown;
        }
    }

    /// Who is not as the swap left it is left alone.
    fn give_back(&self, now: &mut Now) {
        if now.heard == Some(true) && !now.deleted {
            now.wrong("room is given back that was promised to the caller");
        }
        now.placement = if now.agent.runs {
            Placement::GivenBack
        } else {
            Placement::Free
        };
    }

    /// The driver of a record looks whether its newcomer is still there.
    pub(crate) fn notice(&self, now: &mut Now, who: usize) {
        let _ = self.feed(now, who, &PreemptionInput::NewcomersGone);
    }

    fn close(&self, now: &mut Now, who: usize, held: &OwnedRecord) {
        let Some(row) = &mut now.row else { return };
        if row.version != held.version && !self.breaks(BrokenInvariant::Versions) {
            now.held[who] = None;
            return;
        }
        row.finished = true;
        row.version += 1;
        now.held[who] = None;
        if held.waiting {
            now.hear(held.record.state == PreemptionState::Done);
        }
    }

    /// A report reaches a scheduler. The driver of the record takes the report in. Any other
    /// scheduler writes it into the row.
    pub(crate) fn hear(&self, now: &mut Now, who: usize, report: Report) {
        let (body, time) = (body_of(report), now.time());
        if now.held[who].is_some() {
            let _ = self.feed(now, who, &PreemptionInput::Report(&body));
            return;
        }
        if let Some(row) = now.row.as_mut().filter(|row| !row.finished)
            && row
                .record
                .feed(&PreemptionInput::Report(&body), time, &self.policy)
        {
            row.version += 1;
        }
    }
}

fn body_of(report: Report) -> Body {
    let (host, server_id) = (HOST.to_owned(), VICTIM);
    match report {
        Report::Draining(evacuation_id, notified_at, deadline_at) => Body::Draining(Draining {
            evacuation_id,
            host,
            server_id,
            notified_at,
            deadline_at,
        }),
        Report::Evacuated(evacuation_id, at) => Body::Evacuated(Evacuated {
            evacuation_id,
            host,
            server_id,
            how: EvacuationEnd::Terminated,
            at,
            unbilled_seconds: None,
            storage: None,
        }),
        Report::Failed(evacuation_id, still_running) => Body::EvacuationFailed(EvacuationFailed {
            evacuation_id,
            host,
            server_id,
            reason: "it could not".to_owned(),
            still_running,
            late_attempt: None,
        }),
        Report::Spared(evacuation_id) => Body::Spared(Spared {
            evacuation_id,
            host,
            server_id,
        }),
    }
}
