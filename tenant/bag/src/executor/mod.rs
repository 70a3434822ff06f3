//! Carries a plan out: events in, actions out, no clock.
//!
//! **The promise.** With copies, and if on-demand instances boot in the rules' time and stay, tasks
//! take no longer than planned, and [`Executor::wake_at`] is answered in time, every task is done
//! by [`Bag::end`], whatever hibernates, comes back, is interrupted or never starts. The reason is
//! short: as long as a task is not done, either its backup runs, launched when there was time for
//! all that it has to run; or there still is time, since its latest start lies ahead.
//!
//! The paper starts backups of hibernating instances only. Then a second hibernation after the
//! latest start, or a first one of an instance whose tasks end late, breaks the deadline;
//! [`ExecutionPolicy::paper`] does so, to compare with.

mod instance;

use crate::error::BagError;
use crate::input::Bag;
use crate::map::Market;
use crate::plan::Plan;
use instance::{ExecutorInstance, VmPhase};
use serde::{Deserialize, Serialize};

/// An instance of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VmId {
    /// Of the primary map, by its place there.
    Primary(usize),
    /// A backup, counted through all instances of the primary map.
    Backup(usize),
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BagEvent {
    /// An instance is up and can run tasks.
    Started(VmId),
    /// A preemptible instance is frozen, with all that runs on it.
    Hibernated(VmId),
    /// It goes on where it was.
    Resumed(VmId),
    /// It is gone for good, and what was not saved is lost.
    Interrupted(VmId),
    /// A task is done.
    Finished { task: usize, vm: VmId },
    /// A task has saved its state where backups find it.
    Checkpointed {
        task: usize,
        /// Of its work, seconds on the base machine.
        work: u64,
    },
    /// Nothing but the time: what [`Executor::wake_at`] asks for.
    Time,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BagAction {
    /// Launch an instance; [`BagEvent::Started`] is the answer.
    Launch(VmId),
    /// Run a task on a core.
    Run {
        task: usize,
        vm: VmId,
        core: usize,
        /// How much of its work is saved and need not be done again, seconds on the base machine.
        saved: u64,
    },
    /// Stop a task: it is done elsewhere.
    Cancel { task: usize, vm: VmId, core: usize },
    /// Delete an instance, whatever it is doing.
    Release(VmId),
}

/// What an instance of a plan is doing, as far as the executor was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmState {
    /// A backup that was not needed so far.
    Planned,
    /// Launched, and not up yet.
    Launched,
    Up,
    /// Frozen.
    Hibernated,
    /// Released, or interrupted for good.
    Gone,
}

impl VmState {
    /// Whether there is to be an instance.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        matches!(self, Self::Launched | Self::Up | Self::Hibernated)
    }
}

/// What is done when an instance hibernates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnHibernation {
    /// Wait until the latest start of its backups.
    #[default]
    Wait,
    /// Give it up and start its backups at once.
    Migrate,
}

/// How a plan is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionPolicy {
    /// What is done when an instance hibernates.
    pub on_hibernation: OnHibernation,
    /// Whether backups also start at their latest start when the instance is running: its tasks
    /// then have a copy each, and the first that is done stops the other. Without, the promise does
    /// not hold.
    pub copies: bool,
}

impl Default for ExecutionPolicy {
    fn default() -> Self {
        Self {
            on_hibernation: OnHibernation::Wait,
            copies: true,
        }
    }
}

impl ExecutionPolicy {
    /// As the paper: backups only for instances that hibernate.
    #[must_use]
    pub fn paper(on_hibernation: OnHibernation) -> Self {
        Self {
            on_hibernation,
            copies: false,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct TaskState {
    done: bool,
    saved: u64,
    primary: usize,
    backup: Option<usize>,
}

/// The state of a plan that is being carried out.
#[derive(Debug, Clone)]
pub struct Executor {
    bag: Bag,
    policy: ExecutionPolicy,
    now: u64,
    primaries: Vec<ExecutorInstance>,
    backups: Vec<ExecutorInstance>,
    /// For each backup its instance of the primary map, and the latest start for what is left of
    /// its tasks.
    covers: Vec<(usize, u64)>,
    /// For each instance of the primary map its first backup and the one after its last.
    covered: Vec<(usize, usize)>,
    tasks: Vec<TaskState>,
}

impl Executor {
    /// Begins at time 0: all instances of the primary map are launched.
    #[must_use]
    pub fn begin(bag: &Bag, plan: &Plan, policy: ExecutionPolicy) -> (Self, Vec<BagAction>) {
        let mut executor = Self {
            bag: bag.clone(),
            policy,
            now: 0,
            primaries: Vec::with_capacity(plan.vms.len()),
            backups: Vec::new(),
            covers: Vec::new(),
            covered: Vec::with_capacity(plan.vms.len()),
            tasks: vec![TaskState::default(); bag.tasks().len()],
        };
        for (at, planned) in plan.vms.iter().enumerate() {
            for task in planned.vm.tasks() {
                executor.tasks[task].primary = at;
            }
            executor.primaries.push(ExecutorInstance::new(
                planned.vm.ty,
                planned.vm.market,
                &planned.vm.cores,
            ));
            let first = executor.backups.len();
            for backup in &planned.backups {
                for task in backup.tasks() {
                    executor.tasks[task].backup = Some(executor.backups.len());
                }
                executor.covers.push((at, backup.latest_start(bag)));
                executor.backups.push(ExecutorInstance::new(
                    backup.ty,
                    Market::OnDemand,
                    &backup.cores,
                ));
            }
            executor.covered.push((first, executor.backups.len()));
        }
        let mut actions = Vec::new();
        for (at, instance) in executor.primaries.iter_mut().enumerate() {
            instance.phase = VmPhase::Launched;
            actions.push(BagAction::Launch(VmId::Primary(at)));
        }
        (executor, actions)
    }

    /// Takes in what happened, `at` seconds after the begin. What is repeated or comes too late to
    /// matter changes nothing.
    ///
    /// # Errors
    /// [`BagError::Event`] if time runs backwards, or for an instance or task that is not of the
    /// plan.
    pub fn on(&mut self, at: u64, event: BagEvent) -> Result<Vec<BagAction>, BagError> {
        let wrong = |problem: String| Err(BagError::Event { at, problem });
        if at < self.now {
            return wrong(format!("the one before was at {} s", self.now));
        }
        let known = |vm: VmId| match vm {
            VmId::Primary(vm) => vm < self.primaries.len(),
            VmId::Backup(vm) => vm < self.backups.len(),
        };
        let (vm, task) = match event {
            BagEvent::Started(vm)
            | BagEvent::Hibernated(vm)
            | BagEvent::Resumed(vm)
            | BagEvent::Interrupted(vm) => (Some(vm), None),
            BagEvent::Finished { task, vm } => (Some(vm), Some(task)),
            BagEvent::Checkpointed { task, .. } => (None, Some(task)),
            BagEvent::Time => (None, None),
        };
        if let Some(vm) = vm.filter(|&vm| !known(vm)) {
            return wrong(format!("the plan has no instance {vm:?}"));
        }
        if let Some(task) = task.filter(|&task| task >= self.tasks.len()) {
            return wrong(format!("the bag has no task {task}"));
        }
        self.now = at;
        let mut actions = Vec::new();
        match event {
            BagEvent::Started(vm) => {
                if self.instance(vm).phase == VmPhase::Launched {
                    self.instance(vm).phase = VmPhase::Up;
                    self.fill(vm, &mut actions);
                }
            }
            BagEvent::Hibernated(vm) => self.hibernated(vm, &mut actions),
            BagEvent::Resumed(vm) => {
                if let VmPhase::Hibernated { up } = self.instance(vm).phase {
                    self.instance(vm).phase = if up { VmPhase::Up } else { VmPhase::Launched };
                    self.fill(vm, &mut actions);
                }
            }
            BagEvent::Interrupted(vm) => self.interrupted(vm, &mut actions),
            BagEvent::Finished { task, vm } => self.finished(task, vm, &mut actions),
            BagEvent::Checkpointed { task, work } => {
                let most = self.bag.tasks()[task].seconds;
                let state = &mut self.tasks[task];
                state.saved = state.saved.max(work.min(most));
                if let Some(backup) = state.backup {
                    self.reckon(backup);
                }
            }
            BagEvent::Time => {}
        }
        self.start_backups(event == BagEvent::Time, &mut actions);
        Ok(actions)
    }

    /// When [`BagEvent::Time`] has to come at the latest, unless another event comes before: the
    /// next latest start. `None` if there is none.
    #[must_use]
    pub fn wake_at(&self) -> Option<u64> {
        (0..self.backups.len())
            .filter(|&backup| self.waits(backup))
            .map(|backup| self.covers[backup].1)
            .min()
    }

    /// True when every task is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.done)
    }

    /// True if the task is done.
    #[must_use]
    pub fn is_task_done(&self, task: usize) -> bool {
        self.tasks.get(task).is_some_and(|task| task.done)
    }

    /// The backups of an instance of the primary map.
    #[must_use]
    pub fn backups_of(&self, primary: usize) -> std::ops::Range<usize> {
        let (first, end) = self.covered.get(primary).copied().unwrap_or((0, 0));
        first..end
    }

    /// All instances of the plan.
    pub fn vms(&self) -> impl Iterator<Item = VmId> + use<> {
        let backups = (0..self.backups.len()).map(VmId::Backup);
        (0..self.primaries.len()).map(VmId::Primary).chain(backups)
    }

    /// What an instance is doing; one that the plan does not have is gone.
    #[must_use]
    pub fn state(&self, vm: VmId) -> VmState {
        let instance = match vm {
            VmId::Primary(vm) => self.primaries.get(vm),
            VmId::Backup(vm) => self.backups.get(vm),
        };
        match instance.map(|one| one.phase) {
            Some(VmPhase::Planned) => VmState::Planned,
            Some(VmPhase::Launched) => VmState::Launched,
            Some(VmPhase::Up) => VmState::Up,
            Some(VmPhase::Hibernated { .. }) => VmState::Hibernated,
            Some(VmPhase::Gone) | None => VmState::Gone,
        }
    }

    /// The tasks that run on instances that are wanted: those of a hibernated one are frozen.
    pub fn running(&self) -> impl Iterator<Item = (VmId, usize)> + '_ {
        let all = self.vms().filter(|vm| self.state(*vm).is_wanted());
        all.flat_map(|vm| {
            let instance = match vm {
                VmId::Primary(at) => &self.primaries[at],
                VmId::Backup(at) => &self.backups[at],
            };
            instance.tasks().map(move |task| (vm, task))
        })
    }

    fn instance(&mut self, vm: VmId) -> &mut ExecutorInstance {
        match vm {
            VmId::Primary(vm) => &mut self.primaries[vm],
            VmId::Backup(vm) => &mut self.backups[vm],
        }
    }

    fn hibernated(&mut self, vm: VmId, actions: &mut Vec<BagAction>) {
        let instance = self.instance(vm);
        let up = match instance.phase {
            VmPhase::Up => true,
            VmPhase::Launched => false,
            VmPhase::Planned | VmPhase::Hibernated { .. } | VmPhase::Gone => return,
        };
        instance.phase = VmPhase::Hibernated { up };
        if let (VmId::Primary(primary), OnHibernation::Migrate) = (vm, self.policy.on_hibernation)
            && !self.backups_of(primary).is_empty()
        {
            self.instance(vm).phase = VmPhase::Gone;
            actions.push(BagAction::Release(vm));
            self.launch_all(primary, actions);
        }
    }

    fn interrupted(&mut self, vm: VmId, actions: &mut Vec<BagAction>) {
        let instance = self.instance(vm);
        if matches!(instance.phase, VmPhase::Planned | VmPhase::Gone) {
            return;
        }
        match (vm, instance.market) {
            (VmId::Primary(primary), Market::Preemptible) => {
                instance.phase = VmPhase::Gone;
                self.launch_all(primary, actions);
            }
            // An on-demand instance that dies is no preemption. The best that can be done is
            // another one; the promise is not made for this.
            _ => {
                instance.restart();
                actions.push(BagAction::Launch(vm));
            }
        }
    }

    fn finished(&mut self, task: usize, vm: VmId, actions: &mut Vec<BagAction>) {
        if self.tasks[task].done {
            return;
        }
        self.tasks[task].done = true;
        let state = self.tasks[task];
        let places = [
            Some(VmId::Primary(state.primary)),
            state.backup.map(VmId::Backup),
        ];
        for place in places.into_iter().flatten() {
            let instance = self.instance(place);
            instance.left -= 1;
            let left = instance.left;
            if let Some(core) = instance.stop(task)
                && place != vm
                && instance.phase != VmPhase::Gone
            {
                actions.push(BagAction::Cancel {
                    task,
                    vm: place,
                    core,
                });
            }
            if left > 0 {
                self.fill(place, actions);
            } else if !matches!(self.instance(place).phase, VmPhase::Planned | VmPhase::Gone) {
                self.instance(place).phase = VmPhase::Gone;
                actions.push(BagAction::Release(place));
            }
        }
        if let Some(backup) = state.backup {
            self.reckon(backup);
        }
    }

    /// Gives every idle core its next task that is not done.
    fn fill(&mut self, vm: VmId, actions: &mut Vec<BagAction>) {
        let tasks = std::mem::take(&mut self.tasks);
        let instance = self.instance(vm);
        for (core, task) in instance.next(|task| tasks[task].done) {
            actions.push(BagAction::Run {
                task,
                vm,
                core,
                saved: tasks[task].saved,
            });
        }
        self.tasks = tasks;
    }

    /// The latest start of a backup for what is left of its tasks.
    fn reckon(&mut self, backup: usize) {
        let instance = &self.backups[backup];
        let longest = instance.cores.iter().map(|core| -> u64 {
            let left = core.iter().filter(|&&task| !self.tasks[task].done);
            left.filter_map(|&task| self.bag.rest(task, instance.ty, self.tasks[task].saved))
                .sum()
        });
        self.covers[backup].1 = crate::backup::latest(&self.bag, longest.max().unwrap_or(0));
    }

    /// Whether a backup still waits for its latest start.
    fn waits(&self, backup: usize) -> bool {
        let instance = &self.backups[backup];
        instance.phase == VmPhase::Planned
            && instance.left > 0
            && (self.policy.copies || self.primaries[self.covers[backup].0].phase != VmPhase::Up)
    }

    /// What is due exactly now waits for [`BagEvent::Time`]: other tasks may end in the same
    /// second.
    fn start_backups(&mut self, due: bool, actions: &mut Vec<BagAction>) {
        for backup in 0..self.backups.len() {
            let latest = self.covers[backup].1;
            if self.waits(backup) && (latest < self.now || due && latest == self.now) {
                self.launch(backup, actions);
            }
        }
    }

    fn launch_all(&mut self, primary: usize, actions: &mut Vec<BagAction>) {
        for backup in self.backups_of(primary) {
            if self.backups[backup].phase == VmPhase::Planned && self.backups[backup].left > 0 {
                self.launch(backup, actions);
            }
        }
    }

    fn launch(&mut self, backup: usize, actions: &mut Vec<BagAction>) {
        self.backups[backup].phase = VmPhase::Launched;
        actions.push(BagAction::Launch(VmId::Backup(backup)));
    }
}
