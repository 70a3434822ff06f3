//! A bag that runs: its executor, and what the executor was told.

use super::work::{BagWork, MapServer};
use crate::error::BatchError;
use ebbtide_bag::{BagEvent, ExecutionPolicy, Executor, VmId, VmState};
use serde::{Deserialize, Serialize};

/// What the book has of a bag by maps, beside what it has of every work.
#[derive(Debug, Clone, PartialEq)]
pub struct BagBook {
    /// The bag with its plan.
    pub work: BagWork,
    /// What the executor was told, and when, milliseconds.
    pub events: Vec<(i64, BagEvent)>,
}

/// What became of the servers and tasks of a bag by maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BagSummary {
    /// How often a server hibernated.
    pub hibernations: usize,
    /// How often one went on afterwards.
    pub resumed: usize,
    /// How many backups were up.
    pub backups: usize,
    /// How many tasks were done on a backup.
    pub moved: usize,
}

impl BagBook {
    /// What became of servers and tasks so far.
    #[must_use]
    pub fn summary(&self) -> BagSummary {
        let count = |which: fn(&BagEvent) -> bool| {
            let events = self.events.iter();
            events.filter(|(_, event)| which(event)).count()
        };
        BagSummary {
            hibernations: count(|one| matches!(one, BagEvent::Hibernated(_))),
            resumed: count(|one| matches!(one, BagEvent::Resumed(_))),
            backups: count(|one| matches!(one, BagEvent::Started(VmId::Backup(_)))),
            moved: count(|one| {
                let backup = |vm: &VmId| matches!(vm, VmId::Backup(_));
                matches!(one, BagEvent::Finished { vm, .. } if backup(vm))
            }),
        }
    }

    #[must_use]
    pub fn words(&self, event: BagEvent) -> String {
        let node = |vm| self.work.node(vm);
        match event {
            BagEvent::Started(vm) => format!("{} is up", node(vm)),
            BagEvent::Hibernated(vm) => format!("{} hibernates", node(vm)),
            BagEvent::Resumed(vm) => format!("{} goes on", node(vm)),
            BagEvent::Interrupted(vm) => format!("{} is gone", node(vm)),
            BagEvent::Finished { task, vm } => {
                let task = self.work.bag.tasks().get(task);
                let name = task.map_or("a task", |task| &task.name);
                format!("{name} is done on {}", node(vm))
            }
            BagEvent::Checkpointed { .. } => "a checkpoint".to_owned(),
            BagEvent::Time => "the latest start of a backup".to_owned(),
        }
    }

    /// Both maps with the state of each server. Without a run the bag is over.
    #[must_use]
    pub fn maps(&self, run: Option<&BagRun>) -> Vec<MapServer> {
        let mut maps = self.work.maps();
        for one in &mut maps {
            let Some(vm) = self.work.vm(&one.node) else {
                continue;
            };
            let state = run.map_or(VmState::Gone, |run| run.state(vm));
            one.state = match state {
                VmState::Planned => "planned",
                VmState::Launched => "coming",
                VmState::Up => "up",
                VmState::Hibernated => "hibernated",
                VmState::Gone => "gone",
            }
            .to_owned();
            let events = self.events.iter().map(|(_, event)| *event);
            one.hibernations = events.filter(|e| *e == BagEvent::Hibernated(vm)).count();
        }
        maps
    }
}

#[derive(Debug)]
pub struct BagRun {
    executor: Executor,
    begun: i64,
    /// Time of the newest event or look: a clock that was set back stands still until it has caught
    /// up.
    last: i64,
}

impl BagRun {
    /// Goes on with a bag that began then.
    ///
    /// # Errors
    /// [`BatchError::Work`] for an event about what the plan does not have.
    pub fn new(bag: &BagBook, begun: i64) -> Result<Self, BatchError> {
        // What there should be is read from the executor's state, not from its actions: an action
        // that was lost is then seen to be missing.
        let (executor, _) =
            Executor::begin(&bag.work.bag, &bag.work.plan, ExecutionPolicy::default());
        let mut run = Self {
            executor,
            begun,
            last: begun,
        };
        for (at, event) in &bag.events {
            run.look_at(*at);
            run.tell(*event)?;
        }
        Ok(run)
    }

    /// Time goes on; what counts as now, milliseconds.
    pub fn look_at(&mut self, now: i64) -> i64 {
        self.last = self.last.max(now);
        self.last
    }

    /// Tells the executor what happened at the newest time.
    ///
    /// # Errors
    /// [`BatchError::Work`] for an event about what the plan does not have.
    pub fn tell(&mut self, event: BagEvent) -> Result<(), BatchError> {
        let seconds = self.last.saturating_sub(self.begun) / 1_000;
        let told = self.executor.on(u64::try_from(seconds).unwrap_or(0), event);
        let refused = |error: ebbtide_bag::BagError| {
            BatchError::work(error.code().to_owned(), error.to_string())
        };
        told.map(drop).map_err(refused)
    }

    /// When a backup has to start at the latest, milliseconds since 1970; `None` if none waits.
    #[must_use]
    pub fn wake_at(&self) -> Option<i64> {
        let at = self.executor.wake_at()?;
        let ms = i64::try_from(at).unwrap_or(i64::MAX / 4_000) * 1_000;
        Some(self.begun.saturating_add(ms))
    }

    /// What a server of the plan is doing.
    #[must_use]
    pub fn state(&self, vm: VmId) -> VmState {
        self.executor.state(vm)
    }

    /// Whether the executor knows that a task is done.
    #[must_use]
    pub fn is_task_done(&self, task: usize) -> bool {
        self.executor.is_task_done(task)
    }

    /// The tasks that run, and where. Those of a frozen server are frozen.
    #[must_use]
    pub fn running(&self) -> Vec<(VmId, usize)> {
        self.executor.running().collect()
    }
}
