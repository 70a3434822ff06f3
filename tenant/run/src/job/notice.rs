//! Handling of a notice.

use super::{Notice, Phase, RunJob};
use crate::record::WorkEnd;
use crate::{CheckpointReason, RunAction, RunTime, Span};

/// Number of failed checkpoints under one notice after which the job stops trying.
const TRIES: u32 = 3;

impl RunJob {
    pub(super) fn noticed(&mut self, deadline: RunTime) -> Vec<RunAction> {
        if self.notice.is_some_and(|known| known.deadline == deadline) {
            return Vec::new();
        }
        let notice = Notice {
            deadline,
            later: None,
            failed: 0,
        };
        match self.phase {
            Phase::Running { .. } => {
                self.notice = Some(notice);
                self.decide_under(notice)
            }
            // The process has no work yet that is worth the time.
            Phase::Starting { .. } => {
                self.notice = Some(notice);
                self.leave()
            }
            // The checkpoint in progress must end first.
            Phase::Saving { .. } => {
                self.notice = Some(notice);
                Vec::new()
            }
            Phase::Waiting | Phase::Left | Phase::Over => Vec::new(),
        }
    }

    /// Decides what a running process does before the end of its instance.
    pub(super) fn decide_under(&mut self, notice: Notice) -> Vec<RunAction> {
        if self.unsaved() == Span::ZERO {
            return self.leave();
        }
        if notice.failed >= TRIES {
            self.set_next_look(None);
            return Vec::new();
        }
        if notice.later.is_some_and(|later| self.now < later) {
            return Vec::new();
        }
        let last = notice.deadline.minus(self.safe_cost());
        let ends_first = self.rules.length.is_some_and(|length| {
            let left = length.minus(self.work());
            left > Span::ZERO && self.now.plus(left) <= notice.deadline
        });
        match (self.now <= last, ends_first) {
            // The job will probably end by itself; if it has not, it saves at the last moment.
            (true, true) if self.now < last => {
                self.set_next_look(Some(last));
                Vec::new()
            }
            (true, _) => self.save(CheckpointReason::Notice),
            // A checkpoint now would only delay the job's end.
            (false, true) => {
                self.set_next_look(None);
                Vec::new()
            }
            // Without this attempt the work since the last checkpoint is lost in any case.
            (false, false) => self.save(CheckpointReason::LastTry),
        }
    }

    /// Continues after a checkpoint, successful or not.
    pub(super) fn after_save(&mut self, well: bool) -> Vec<RunAction> {
        let Some(notice) = self.notice else {
            return Vec::new();
        };
        if !well {
            return self.decide_under(notice);
        }
        let safe = self.safe_cost();
        let last = notice.deadline.minus(safe);
        // If the instance cannot be released early, the job uses the remaining time and saves once
        // more at the end.
        if !self.rules.releases && self.now.plus(safe.percent(200)) <= last {
            self.set_next_look(Some(last));
            return Vec::new();
        }
        self.leave()
    }

    pub(super) fn at_risk(&mut self) -> Vec<RunAction> {
        let worth = self.unsaved() > self.cost();
        match self.phase {
            Phase::Running { .. } if worth && self.notice.is_none() => {
                self.save(CheckpointReason::Risk)
            }
            _ => Vec::new(),
        }
    }

    /// Saves and goes on. Under a notice the job is saved for that, and a checkpoint in progress is
    /// the one that was asked for.
    pub(super) fn asked_to_save(&mut self) -> Vec<RunAction> {
        let worth = self.unsaved() > Span::ZERO && self.notice.is_none();
        match self.phase {
            Phase::Running { .. } if worth => self.save(CheckpointReason::Asked),
            _ => Vec::new(),
        }
    }

    pub(super) fn spared(&mut self) -> Vec<RunAction> {
        if self.notice.take().is_none() {
            return Vec::new();
        }
        match self.phase {
            Phase::Left => {
                self.end_life(WorkEnd::Stayed);
                self.arrive(self.age())
            }
            _ => {
                self.plan();
                Vec::new()
            }
        }
    }

    pub(super) fn end_instance(&mut self) -> Vec<RunAction> {
        let mut actions = match self.phase {
            Phase::Waiting | Phase::Over => return Vec::new(),
            Phase::Left => Vec::new(),
            Phase::Saving { id, .. } => {
                self.record.failed += 1;
                vec![RunAction::Abandon(id), RunAction::Kill]
            }
            Phase::Starting { .. } | Phase::Running { .. } => vec![RunAction::Kill],
        };
        self.end_life(WorkEnd::Interrupted);
        if self.stopping {
            return self.stopped(actions);
        }
        self.note();
        self.phase = Phase::Waiting;
        self.notice = None;
        actions.push(RunAction::Await);
        actions
    }

    /// Ends the process, and releases the instance if the rules permit it.
    fn leave(&mut self) -> Vec<RunAction> {
        self.note();
        self.end_life(WorkEnd::Interrupted);
        self.phase = Phase::Left;
        let mut actions = vec![RunAction::Kill];
        if self.rules.releases {
            actions.push(RunAction::Release);
        }
        actions
    }

    fn set_next_look(&mut self, later: Option<RunTime>) {
        if let Some(notice) = &mut self.notice {
            notice.later = later;
        }
    }

    fn safe_cost(&self) -> Span {
        self.record.safe_cost().unwrap_or(self.rules.cost)
    }
}
