//! The state machine.

mod notice;

use crate::record::{Checkpoint, InstanceWork, RunRecord, WorkEnd};
use crate::{CheckpointReason, Rules, RunAction, RunEnd, RunError, RunEvent, RunTime, Span};
use std::collections::BTreeSet;

/// State of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no instance.
    Waiting,
    /// Its process is being started, or restored from a checkpoint.
    Starting { since: RunTime },
    /// Its process has worked since `since`; before, it had the work `base`.
    Running { since: RunTime, base: Span },
    /// A checkpoint is being written; the process counts as paused meanwhile.
    Saving { id: u64, since: RunTime, work: Span },
    /// Its process was ended because of a notice, and the instance still exists.
    Left,
    /// It has ended.
    Over,
}

/// A notice and its handling.
#[derive(Debug, Clone, Copy)]
struct Notice {
    deadline: RunTime,
    /// When to decide again.
    later: Option<RunTime>,
    /// Checkpoints that have failed since the notice.
    failed: u32,
}

/// A job on preemptible instances.
#[derive(Debug, Clone)]
pub struct RunJob {
    rules: Rules,
    record: RunRecord,
    phase: Phase,
    now: RunTime,
    /// When the instance became available, and its age then.
    came: (RunTime, Span),
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

impl RunJob {
    /// A job that continues from `record`, or a new one from an empty record. It waits for its
    /// first [`RunEvent::Instance`].
    ///
    /// # Errors
    /// [`RunError::Zero`] for invalid rules.
    pub fn new(rules: Rules, mut record: RunRecord) -> Result<Self, RunError> {
        rules.check()?;
        // An open life in the record means that the process writing it was lost with its instance.
        if let Some(life) = record
            .lives
            .last_mut()
            .filter(|life| life.end == WorkEnd::Open)
        {
            life.end = WorkEnd::Interrupted;
        }
        Ok(Self {
            rules,
            record,
            phase: Phase::Waiting,
            now: RunTime::default(),
            came: (RunTime::default(), Span::ZERO),
            notice: None,
            due: None,
            failures: 0,
            resumed: None,
            bad: BTreeSet::new(),
            stopping: false,
        })
    }

    /// The state that must outlive this process. After [`RunEvent::Saved`] the caller must store it
    /// before it carries out the actions, because they remove older checkpoints. After other
    /// events, and from time to time, the caller should store it to keep the account up to date.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
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
    /// [`RunEvent::RestoreFailed`] has an effect.
    #[must_use]
    pub fn has_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// When the job needs [`RunEvent::Time`], unless another event comes before.
    #[must_use]
    pub fn wake_at(&self) -> Option<RunTime> {
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
    pub fn account(&mut self, now: RunTime) {
        self.now = self.now.max(now);
        self.note();
    }

    /// The actions that follow from an event. Time never goes back; an event that does not fit the
    /// phase changes nothing.
    pub fn handle(&mut self, now: RunTime, event: RunEvent) -> Vec<RunAction> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        self.account(now);
        let actions = match event {
            RunEvent::Instance { age } => match self.phase {
                Phase::Waiting | Phase::Left => self.arrive(age),
                _ => Vec::new(),
            },
            RunEvent::Started => self.started(),
            RunEvent::RestoreFailed => self.restore_failed(),
            RunEvent::Saved => self.save_ended(true),
            RunEvent::SaveFailed => self.save_ended(false),
            RunEvent::Notice { .. } | RunEvent::Risk if !self.rules.heeds => Vec::new(),
            RunEvent::Notice { deadline } => self.noticed(deadline),
            RunEvent::Risk => self.at_risk(),
            RunEvent::Save => self.asked_to_save(),
            RunEvent::Spared => self.spared(),
            RunEvent::Gone => self.end_instance(),
            RunEvent::Exited { code } => self.exited(code),
            RunEvent::Killed { code } => self.killed(code),
            RunEvent::Stop => self.stop(),
            RunEvent::Time => self.time(),
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

    fn end_life(&mut self, end: WorkEnd) {
        if let Some(life) = self.record.lives.last_mut() {
            life.end = end;
        }
    }

    fn arrive(&mut self, age: Span) -> Vec<RunAction> {
        let from = self.saved();
        if from.is_none() && !self.record.checkpoints.is_empty() {
            return self.finish(Vec::new(), RunEnd::CannotRestore);
        }
        let work = from.map_or(Span::ZERO, |c| c.work);
        // A checkpoint that an earlier run could not use may be usable here. Then its work is not
        // lost.
        self.record.lost = self.record.lost.plus(self.record.reached()).minus(work);
        self.record.lives.push(InstanceWork {
            age,
            from: work,
            lasted: Span::ZERO,
            restoring: Span::ZERO,
            saving: Span::ZERO,
            reached: work,
            end: WorkEnd::Open,
        });
        self.came = (self.now, age);
        self.notice = None;
        self.failures = 0;
        self.resumed = from.map(|c| c.id);
        self.phase = Phase::Starting { since: self.now };
        vec![from.map_or(RunAction::Start, |c| RunAction::Restore(c.id))]
    }

    fn started(&mut self) -> Vec<RunAction> {
        let Phase::Starting { since } = self.phase else {
            return Vec::new();
        };
        let took = self.now.since(since);
        if self.resumed.is_some() {
            RunRecord::measured(&mut self.record.restarts, took);
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

    fn restore_failed(&mut self) -> Vec<RunAction> {
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
            self.end_life(WorkEnd::Stopped);
            self.phase = Phase::Waiting;
            return self.finish(Vec::new(), RunEnd::CannotRestore);
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
        vec![RunAction::Restore(next.id)]
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

    fn save(&mut self, why: CheckpointReason) -> Vec<RunAction> {
        let id = self.record.numbered + 1;
        self.record.numbered = id;
        self.phase = Phase::Saving {
            id,
            since: self.now,
            work: self.work(),
        };
        vec![RunAction::Save { id, why }]
    }

    fn save_ended(&mut self, well: bool) -> Vec<RunAction> {
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
            RunRecord::measured(&mut self.record.costs, took);
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
                    .map(|old| RunAction::Discard(old.id)),
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
            actions.push(RunAction::Kill);
            return self.stopped(actions);
        }
        actions.extend(self.after_save(well));
        actions
    }

    fn exited(&mut self, code: u8) -> Vec<RunAction> {
        let actions = match self.phase {
            Phase::Waiting | Phase::Left => return Vec::new(),
            Phase::Saving { id, .. } => vec![RunAction::Abandon(id)],
            _ => Vec::new(),
        };
        self.record.exit = Some(code);
        self.end_life(WorkEnd::Exited);
        self.finish(actions, RunEnd::Exited { code })
    }

    fn killed(&mut self, code: u8) -> Vec<RunAction> {
        let actions = match self.phase {
            Phase::Waiting | Phase::Left => return Vec::new(),
            Phase::Saving { id, .. } => {
                self.record.failed += 1;
                vec![RunAction::Abandon(id)]
            }
            _ => Vec::new(),
        };
        // Under a notice the machine has most probably ended early.
        self.end_life(match self.notice {
            Some(_) => WorkEnd::Interrupted,
            None => WorkEnd::Stopped,
        });
        self.finish(actions, RunEnd::Killed { code })
    }

    fn stop(&mut self) -> Vec<RunAction> {
        match self.phase {
            Phase::Waiting | Phase::Left | Phase::Over => self.stopped(Vec::new()),
            Phase::Starting { .. } => self.stopped(vec![RunAction::Kill]),
            Phase::Running { .. } if self.stopping || self.unsaved() == Span::ZERO => {
                self.stopped(vec![RunAction::Kill])
            }
            Phase::Running { .. } => {
                self.stopping = true;
                self.save(CheckpointReason::Stop)
            }
            Phase::Saving { id, .. } if self.stopping => {
                self.stopped(vec![RunAction::Abandon(id), RunAction::Kill])
            }
            Phase::Saving { .. } => {
                self.stopping = true;
                Vec::new()
            }
        }
    }

    fn stopped(&mut self, actions: Vec<RunAction>) -> Vec<RunAction> {
        let saved = self.unsaved() == Span::ZERO;
        if matches!(self.record.lives.last(), Some(life) if life.end == WorkEnd::Open) {
            self.end_life(WorkEnd::Stopped);
        }
        self.finish(actions, RunEnd::Stopped { saved })
    }

    fn finish(&mut self, mut actions: Vec<RunAction>, ending: RunEnd) -> Vec<RunAction> {
        self.note();
        self.phase = Phase::Over;
        actions.push(RunAction::Finish(ending));
        actions
    }

    fn time(&mut self) -> Vec<RunAction> {
        match self.phase {
            Phase::Saving { id, since, .. } if self.now >= since.plus(self.rules.timeout) => {
                let mut actions = vec![RunAction::Abandon(id)];
                actions.extend(self.save_ended(false));
                actions
            }
            Phase::Running { .. } => self.decide(),
            _ => Vec::new(),
        }
    }

    /// Decides what a running process needs now.
    fn decide(&mut self) -> Vec<RunAction> {
        match self.notice {
            Some(notice) => self.decide_under(notice),
            None if self.due.is_some_and(|due| self.work() >= due) => {
                self.save(CheckpointReason::Planned)
            }
            None => Vec::new(),
        }
    }
}
