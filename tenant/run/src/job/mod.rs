//! The state machine.

mod notice;

use crate::record::{Checkpoint, End, Life, Record};
use crate::{Action, Ending, Event, Moment, Rules, RunError, Span, Why};
use std::collections::BTreeSet;

/// State of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no instance.
    Waiting,
    /// Its process is being started, or restored from a checkpoint.
    Starting { since: Moment },
    /// Its process has worked since `since`; before, it had the work `base`.
    Running { since: Moment, base: Span },
    /// A checkpoint is being written; the process counts as paused meanwhile.
    Saving { id: u64, since: Moment, work: Span },
    /// Its process was ended because of a notice, and the instance still exists.
    Left,
    /// It has ended.
    Over,
}

/// A notice and its handling.
#[derive(Debug, Clone, Copy)]
struct Notice {
    deadline: Moment,
    /// When to decide again.
    later: Option<Moment>,
    /// Checkpoints that have failed since the notice.
    failed: u32,
}

/// A job on preemptible instances.
#[derive(Debug, Clone)]
pub struct Job {
    rules: Rules,
    record: Record,
    phase: Phase,
    now: Moment,
    /// When the instance became available, and its age then.
    came: (Moment, Span),
    notice: Option<Notice>,
    /// The work at which the next checkpoint is due.
    due: Option<Span>,
    /// Checkpoints that have failed since the last good one.
    failures: u32,
    /// The checkpoint from which this instance continued, until it has saved one itself.
    resumed: Option<u64>,
    /// Checkpoints from which this run could not continue. The record does not contain them,
    /// because a later run may be able to use them.
    bad: BTreeSet<u64>,
    stopping: bool,
}

impl Job {
    /// A job that continues from `record`, or a new one from an empty record. It waits for its
    /// first [`Event::Instance`].
    ///
    /// # Errors
    /// [`RunError::Zero`] for invalid rules.
    pub fn new(rules: Rules, mut record: Record) -> Result<Self, RunError> {
        rules.check()?;
        // An open life in the record means that the process writing it was lost with its instance.
        if let Some(life) = record.lives.last_mut().filter(|life| life.end == End::Open) {
            life.end = End::Interrupted;
        }
        Ok(Self {
            rules,
            record,
            phase: Phase::Waiting,
            now: Moment::default(),
            came: (Moment::default(), Span::ZERO),
            notice: None,
            due: None,
            failures: 0,
            resumed: None,
            bad: BTreeSet::new(),
            stopping: false,
        })
    }

    /// The state that must outlive this process. After [`Event::Saved`] the caller must store it
    /// before it carries out the actions, because they remove older checkpoints. After other
    /// events, and from time to time, the caller should store it to keep the account up to date.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The work that is done, saved or not, at the moment of the last event or account.
    #[must_use]
    pub fn work(&self) -> Span {
        match self.phase {
            Phase::Running { since, base } => base.plus(self.now.since(since)),
            Phase::Saving { work, .. } => work,
            _ => self.record.reached(),
        }
    }

    /// The work that would be lost if the instance ended at the moment of the last event or
    /// account.
    #[must_use]
    pub fn unsaved(&self) -> Span {
        match self.phase {
            Phase::Running { .. } | Phase::Saving { .. } => self
                .work()
                .minus(self.saved().map_or(Span::ZERO, |c| c.work)),
            _ => Span::ZERO,
        }
    }

    /// The work at which the next checkpoint is due without other events.
    #[must_use]
    pub fn due(&self) -> Option<Span> {
        self.due
            .filter(|_| matches!(self.phase, Phase::Running { .. }))
    }

    /// True if this instance continued from a checkpoint and has not saved since. Only then
    /// [`Event::RestoreFailed`] has an effect.
    #[must_use]
    pub fn has_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// When the job needs [`Event::Time`], unless another event comes before.
    #[must_use]
    pub fn wake_at(&self) -> Option<Moment> {
        match (self.phase, self.notice) {
            (Phase::Running { .. }, Some(notice)) => notice.later,
            (Phase::Running { since, base }, None) => {
                self.due.map(|due| since.plus(due.minus(base)))
            }
            (Phase::Saving { since, .. }, _) => Some(since.plus(self.rules.timeout)),
            _ => None,
        }
    }

    /// Brings the account up to this moment, without a decision.
    pub fn account(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.note();
    }

    /// The actions that follow from an event. Time never goes back; an event that does not fit the
    /// phase changes nothing.
    pub fn handle(&mut self, now: Moment, event: Event) -> Vec<Action> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        self.account(now);
        let actions = match event {
            Event::Instance { age } => match self.phase {
                Phase::Waiting | Phase::Left => self.arrive(age),
                _ => Vec::new(),
            },
            Event::Started => self.started(),
            Event::RestoreFailed => self.restore_failed(),
            Event::Saved => self.save_ended(true),
            Event::SaveFailed => self.save_ended(false),
            Event::Notice { .. } | Event::Risk if !self.rules.heeds => Vec::new(),
            Event::Notice { deadline } => self.noticed(deadline),
            Event::Risk => self.at_risk(),
            Event::Spared => self.spared(),
            Event::Gone => self.gone(),
            Event::Exited { code } => self.exited(code),
            Event::Killed { code } => self.killed(code),
            Event::Stop => self.stop(),
            Event::Time => self.time(),
        };
        self.note();
        actions
    }

    /// The checkpoint to continue from.
    fn saved(&self) -> Option<Checkpoint> {
        let usable = |c: &&Checkpoint| !self.bad.contains(&c.id);
        self.record.checkpoints.iter().rev().find(usable).copied()
    }

    fn age(&self) -> Span {
        self.came.1.plus(self.now.since(self.came.0))
    }

    fn cost(&self) -> Span {
        self.record.cost().unwrap_or(self.rules.cost)
    }

    /// Updates the account of the current life.
    fn note(&mut self) {
        let work = match self.phase {
            Phase::Waiting | Phase::Left | Phase::Over => return,
            Phase::Starting { .. } => None,
            Phase::Running { .. } | Phase::Saving { .. } => Some(self.work()),
        };
        let lasted = self.now.since(self.came.0);
        if let Some(life) = self.record.lives.last_mut() {
            life.lasted = lasted;
            life.reached = work.unwrap_or(life.reached);
        }
    }

    fn end_life(&mut self, end: End) {
        if let Some(life) = self.record.lives.last_mut() {
            life.end = end;
        }
    }

    fn arrive(&mut self, age: Span) -> Vec<Action> {
        let from = self.saved();
        if from.is_none() && !self.record.checkpoints.is_empty() {
            return self.finish(Vec::new(), Ending::CannotRestore);
        }
        let work = from.map_or(Span::ZERO, |c| c.work);
        // A checkpoint that an earlier run could not use may be usable here. Then its work is not
        // lost.
        self.record.lost = self.record.lost.plus(self.record.reached()).minus(work);
        self.record.lives.push(Life {
            age,
            from: work,
            lasted: Span::ZERO,
            restoring: Span::ZERO,
            saving: Span::ZERO,
            reached: work,
            end: End::Open,
        });
        self.came = (self.now, age);
        self.notice = None;
        self.failures = 0;
        self.resumed = from.map(|c| c.id);
        self.phase = Phase::Starting { since: self.now };
        vec![from.map_or(Action::Start, |c| Action::Restore(c.id))]
    }

    fn started(&mut self) -> Vec<Action> {
        let Phase::Starting { since } = self.phase else {
            return Vec::new();
        };
        let took = self.now.since(since);
        if self.resumed.is_some() {
            Record::measured(&mut self.record.restarts, took);
        }
        if let Some(life) = self.record.lives.last_mut() {
            life.restoring = life.restoring.plus(took);
        }
        self.phase = Phase::Running {
            since: self.now,
            base: self.record.reached(),
        };
        self.plan();
        self.decide()
    }

    fn restore_failed(&mut self) -> Vec<Action> {
        // A process may detect a bad checkpoint only while it runs; its work until then does not
        // count.
        let (since, from) = match (self.phase, self.resumed) {
            (Phase::Starting { since } | Phase::Running { since, .. }, Some(from)) => (since, from),
            _ => return Vec::new(),
        };
        self.bad.insert(from);
        if let Some(life) = self.record.lives.last_mut() {
            life.reached = life.from;
        }
        let Some(next) = self.saved() else {
            self.end_life(End::Stopped);
            self.phase = Phase::Waiting;
            return self.finish(Vec::new(), Ending::CannotRestore);
        };
        let took = self.now.since(since);
        if let Some(life) = self.record.lives.last_mut() {
            // The older checkpoint can have more work: an earlier run could not use it, fell back
            // further and saved less. Then its work is not lost.
            self.record.lost = self.record.lost.plus(life.from).minus(next.work);
            life.restoring = life.restoring.plus(took);
            life.from = next.work;
            life.reached = next.work;
        }
        self.resumed = Some(next.id);
        self.phase = Phase::Starting { since: self.now };
        vec![Action::Restore(next.id)]
    }

    /// Plans the next checkpoint.
    fn plan(&mut self) {
        let work = self.work();
        let cost = self.cost();
        let left = self.rules.length.map(|length| match length.minus(work) {
            // The job is longer than its stated length, by an unknown amount.
            Span::ZERO => Span(length.percent(10).0.max(cost.0.saturating_mul(10)).max(1)),
            left => left,
        });
        let restart = self.record.restart().unwrap_or(self.rules.restart);
        let interval = self.rules.rhythm.interval(left, self.age(), cost, restart);
        self.due = interval.map(|interval| match left {
            // No checkpoint is due before the expected end. One follows only if the job runs
            // longer.
            Some(left) if interval >= left => work.plus(left.percent(105)).plus(cost),
            _ => work.plus(interval),
        });
    }

    fn save(&mut self, why: Why) -> Vec<Action> {
        let id = self.record.numbered + 1;
        self.record.numbered = id;
        self.phase = Phase::Saving {
            id,
            since: self.now,
            work: self.work(),
        };
        vec![Action::Save { id, why }]
    }

    fn save_ended(&mut self, well: bool) -> Vec<Action> {
        let Phase::Saving { id, since, work } = self.phase else {
            return Vec::new();
        };
        let took = self.now.since(since);
        if let Some(life) = self.record.lives.last_mut() {
            life.saving = life.saving.plus(took);
        }
        self.phase = Phase::Running {
            since: self.now,
            base: work,
        };
        let mut actions = Vec::new();
        if well {
            self.record.checkpoints.push(Checkpoint { id, work });
            self.record.saved += 1;
            Record::measured(&mut self.record.costs, took);
            self.failures = 0;
            self.resumed = None;
            let many = self
                .record
                .checkpoints
                .len()
                .saturating_sub(self.rules.keep);
            actions.extend(
                self.record
                    .checkpoints
                    .drain(..many)
                    .map(|old| Action::Discard(old.id)),
            );
            self.plan();
        } else {
            self.record.failed += 1;
            self.failures += 1;
            self.plan();
            // Not at once, because the same failure would probably repeat. The delay is four times
            // the cost, then eight times, and so on, but the checkpoint is not later than planned.
            let times = 1u64 << (1 + self.failures).min(16);
            let pause = self.cost().0.max(1_000).saturating_mul(times);
            let soon = work.plus(Span(pause));
            self.due = self.due.map(|due| due.min(soon));
            if let Some(notice) = &mut self.notice {
                notice.failed += 1;
            }
        }
        if self.stopping {
            actions.push(Action::Kill);
            return self.stopped(actions);
        }
        actions.extend(self.after_save(well));
        actions
    }

    fn exited(&mut self, code: u8) -> Vec<Action> {
        let actions = match self.phase {
            Phase::Waiting | Phase::Left => return Vec::new(),
            Phase::Saving { id, .. } => vec![Action::Abandon(id)],
            _ => Vec::new(),
        };
        self.record.exit = Some(code);
        self.end_life(End::Exited);
        self.finish(actions, Ending::Exited { code })
    }

    fn killed(&mut self, code: u8) -> Vec<Action> {
        let actions = match self.phase {
            Phase::Waiting | Phase::Left => return Vec::new(),
            Phase::Saving { id, .. } => {
                self.record.failed += 1;
                vec![Action::Abandon(id)]
            }
            _ => Vec::new(),
        };
        // Under a notice the machine has most probably ended early.
        self.end_life(match self.notice {
            Some(_) => End::Interrupted,
            None => End::Stopped,
        });
        self.finish(actions, Ending::Killed { code })
    }

    fn stop(&mut self) -> Vec<Action> {
        match self.phase {
            Phase::Waiting | Phase::Left | Phase::Over => self.stopped(Vec::new()),
            Phase::Starting { .. } => self.stopped(vec![Action::Kill]),
            Phase::Running { .. } if self.stopping || self.unsaved() == Span::ZERO => {
                self.stopped(vec![Action::Kill])
            }
            Phase::Running { .. } => {
                self.stopping = true;
                self.save(Why::Stop)
            }
            Phase::Saving { id, .. } if self.stopping => {
                self.stopped(vec![Action::Abandon(id), Action::Kill])
            }
            Phase::Saving { .. } => {
                self.stopping = true;
                Vec::new()
            }
        }
    }

    fn stopped(&mut self, actions: Vec<Action>) -> Vec<Action> {
        let saved = self.unsaved() == Span::ZERO;
        if matches!(self.record.lives.last(), Some(life) if life.end == End::Open) {
            self.end_life(End::Stopped);
        }
        self.finish(actions, Ending::Stopped { saved })
    }

    fn finish(&mut self, mut actions: Vec<Action>, ending: Ending) -> Vec<Action> {
        self.note();
        self.phase = Phase::Over;
        actions.push(Action::Finish(ending));
        actions
    }

    fn time(&mut self) -> Vec<Action> {
        match self.phase {
            Phase::Saving { id, since, .. } if self.now >= since.plus(self.rules.timeout) => {
                let mut actions = vec![Action::Abandon(id)];
                actions.extend(self.save_ended(false));
                actions
            }
            Phase::Running { .. } => self.decide(),
            _ => Vec::new(),
        }
    }

    /// Decides what a running process needs now.
    fn decide(&mut self) -> Vec<Action> {
        match self.notice {
            Some(notice) => self.decide_under(notice),
            None if self.due.is_some_and(|due| self.work() >= due) => self.save(Why::Planned),
            None => Vec::new(),
        }
    }
}
