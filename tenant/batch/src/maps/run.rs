//! A bag that runs: what a look shows is told to the executor, and what the executor wants is
//! compared with what there is.

use super::entry::{BagEntry, BagFact};
use super::work::BagWork;
use crate::error::BatchError;
use ebbtide_bag::{BagAction, BagEvent, Conduct, Executor, VmId, VmState};
use ebbtide_burst::{PoolServer, Status};
use std::collections::BTreeMap;

/// An attempt that cannot be seen after so long was not taken, milliseconds.
const UNSEEN_MS: i64 = 15_000;
/// Repeat interval of an action without visible effect, and pause before another attempt on the
/// same server.
const AGAIN_MS: i64 = 5_000;

/// What can be seen of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptSeen {
    /// Nothing: it was not begun, or is forgotten.
    Unknown,
    /// It waits or runs; on a frozen server it is frozen.
    Active,
    /// It is over.
    Ended {
        /// Its exit code; `None` if it did not come that far.
        exit: Option<i32>,
    },
}

/// All that is looked at.
#[derive(Clone, Copy)]
pub struct BagSeen<'a> {
    /// The servers of the cloud.
    pub servers: &'a [PoolServer],
    /// Whether tasks can be started on a node whose server is active.
    pub ready: &'a dyn Fn(&str) -> bool,
    /// By which attempt a task is done.
    pub done: &'a dyn Fn(usize) -> Option<u32>,
    /// What became of an attempt at a task.
    pub attempt: &'a dyn Fn(usize, u32) -> AttemptSeen,
}

impl std::fmt::Debug for BagSeen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BagSeen")
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BagDo {
    /// Let a node have a server.
    Create {
        /// Which.
        node: String,
    },
    /// Give a server back.
    GiveBack {
        /// Its node.
        node: String,
        /// Its id.
        server: String,
    },
    /// Start an attempt.
    Start {
        /// The task.
        task: usize,
        /// Number of the attempt.
        number: u32,
        /// Where.
        node: String,
    },
    /// End an attempt: its task is done elsewhere, or its server is not wanted any more.
    Stop {
        /// The task.
        task: usize,
        /// Number of the attempt.
        number: u32,
    },
}

/// Result of one look.
#[derive(Debug, Default)]
pub struct BagLook {
    /// Facts, already taken in; to be written down before anything is done.
    pub facts: Vec<BagEntry>,
    /// What is to be done then.
    pub actions: Vec<BagDo>,
    /// Errors of tasks.
    pub problems: Vec<BatchError>,
}

/// What became of a bag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BagReport {
    /// Its tasks.
    pub tasks: usize,
    /// How many are done.
    pub done: usize,
    /// When the last one was done, milliseconds since the begin.
    pub took: i64,
    /// The deadline, milliseconds since the begin.
    pub deadline: i64,
    /// Whether all are done, and before the deadline.
    pub met: bool,
    /// How often a server hibernated.
    pub hibernated: usize,
    /// How many backups were launched.
    pub backups: usize,
    /// How many tasks were done on a backup.
    pub moved: usize,
}

/// An attempt at a task.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    vm: VmId,
    began: i64,
    ended: Option<i64>,
}

/// A bag that runs.
#[derive(Debug)]
pub struct BagRun<'a> {
    work: &'a BagWork,
    executor: Executor<'a>,
    begun: i64,
    /// Time of the newest fact or look.
    last: i64,
    /// Of each task, by number less one.
    attempts: Vec<Vec<Attempt>>,
    /// How often each task failed by itself, and its last exit code.
    failures: Vec<(u32, i32)>,
    cancelled: bool,
    over: bool,
    took: i64,
    hibernated: usize,
    backups: usize,
    moved: usize,
    /// When each action was last returned.
    sent: BTreeMap<BagDo, i64>,
    launch_again: i64,
}

impl<'a> BagRun<'a> {
    /// A bag that begins, or began, at a time. `launch_again` milliseconds after a server was asked
    /// for in vain it is asked for again.
    #[must_use]
    pub fn begin(work: &'a BagWork, begun: i64, launch_again: i64) -> Self {
        // What there should be is read from the executor's state, not from its actions: an action
        // that was lost is then seen to be missing.
        let (executor, _) = Executor::begin(&work.bag, &work.plan, Conduct::default());
        let tasks = work.bag.tasks().len();
        Self {
            work,
            executor,
            begun,
            last: begun,
            attempts: vec![Vec::new(); tasks],
            failures: vec![(0, 0); tasks],
            cancelled: false,
            over: false,
            took: 0,
            hibernated: 0,
            backups: 0,
            moved: 0,
            sent: BTreeMap::new(),
            launch_again,
        }
    }

    /// Takes in a fact of the journal.
    ///
    /// # Errors
    /// [`BatchError::Work`] for a fact about what the plan does not have.
    pub fn apply(&mut self, entry: &BagEntry) -> Result<(), BatchError> {
        // A clock that was set back stands still until it has caught up.
        self.last = self.last.max(entry.at);
        let event = match entry.fact {
            BagFact::Begun { .. } => return Ok(()),
            BagFact::Cancelled => {
                self.cancelled = true;
                return Ok(());
            }
            BagFact::Over | BagFact::GivenBack => {
                self.over = true;
                return Ok(());
            }
            BagFact::Attempt { task, vm, .. } => {
                let began = self.last;
                let attempt = Attempt {
                    vm,
                    began,
                    ended: None,
                };
                return self.of_task(task).map(|(all, _)| all.push(attempt));
            }
            BagFact::AttemptEnded { task, number, exit } => {
                let at = self.last;
                let (all, failures) = self.of_task(task)?;
                if let Some(one) = all.get_mut(place(number)) {
                    one.ended.get_or_insert(at);
                }
                if let Some(code) = exit.filter(|code| *code != 0) {
                    *failures = (failures.0 + 1, code);
                }
                return Ok(());
            }
            BagFact::Started { vm } => BagEvent::Started(vm),
            BagFact::Hibernated { vm } => BagEvent::Hibernated(vm),
            BagFact::Resumed { vm } => BagEvent::Resumed(vm),
            BagFact::Interrupted { vm } => BagEvent::Interrupted(vm),
            BagFact::Finished { task, vm } => BagEvent::Finished { task, vm },
            BagFact::Time => BagEvent::Time,
        };
        let actions = self.executor.on(self.seconds(), event);
        let actions = actions.map_err(|error| BatchError::work(error.code(), error.to_string()))?;
        let launched = |one: &&BagAction| matches!(one, BagAction::Launch(VmId::Backup(_)));
        self.backups += actions.iter().filter(launched).count();
        match event {
            BagEvent::Hibernated(_) => self.hibernated += 1,
            BagEvent::Finished { task, vm } => {
                self.took = self.last.saturating_sub(self.begun);
                self.moved += usize::from(matches!(vm, VmId::Backup(_)));
                let at = self.last;
                for one in self.attempts[task].iter_mut().filter(|one| one.vm == vm) {
                    one.ended.get_or_insert(at);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The attempts at a task, and its failures.
    fn of_task(&mut self, task: usize) -> Result<(&mut Vec<Attempt>, &mut (u32, i32)), BatchError> {
        match (self.attempts.get_mut(task), self.failures.get_mut(task)) {
            (Some(attempts), Some(failures)) => Ok((attempts, failures)),
            _ => Err(BatchError::work(
                "tasks",
                format!("there is no task {task}"),
            )),
        }
    }

    /// Looks at the world and returns what follows.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn look(&mut self, now: i64, seen: &BagSeen<'_>) -> Result<BagLook, BatchError> {
        self.last = self.last.max(now);
        let mut made = BagLook::default();
        if !self.over {
            self.finished(seen, &mut made)?;
            self.servers(seen, &mut made)?;
            self.ended(seen, &mut made)?;
            let due = self.executor.wake_at();
            if !self.cancelled && due.is_some_and(|at| at <= self.seconds()) {
                self.note(BagFact::Time, &mut made)?;
            }
            if self.executor.is_done() || self.cancelled || self.failed(&mut made) {
                self.note(BagFact::Over, &mut made)?;
            }
        }
        self.stop(seen, &mut made)?;
        self.start(&mut made)?;
        self.pool(seen, &mut made);
        let last = self.last;
        self.sent
            .retain(|_, at| at.saturating_add(100 * AGAIN_MS) > last);
        Ok(made)
    }

    /// All servers were given back. The entry is to be written down.
    #[must_use]
    pub fn given_back(&self) -> BagEntry {
        BagEntry {
            at: self.last,
            fact: BagFact::GivenBack,
        }
    }

    /// Gives the bag up. The entry is to be written down.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn cancel(&mut self, now: i64) -> Result<BagEntry, BatchError> {
        let entry = BagEntry {
            at: self.last.max(now),
            fact: BagFact::Cancelled,
        };
        self.apply(&entry)?;
        Ok(entry)
    }

    /// When the next look has to be at the latest, milliseconds since 1970.
    #[must_use]
    pub fn wake_at(&self) -> Option<i64> {
        let at = self.executor.wake_at().filter(|_| !self.over)?;
        let ms = i64::try_from(at).unwrap_or(i64::MAX / 4_000) * 1_000;
        Some(self.begun.saturating_add(ms))
    }

    /// Whether nothing is left to do, the servers given back included.
    #[must_use]
    pub fn is_over(&self, servers: &[PoolServer]) -> bool {
        let open = self
            .attempts
            .iter()
            .flatten()
            .any(|one| one.ended.is_none());
        let left = |(_, node): (VmId, &str)| {
            let mut own = servers.iter().filter(|one| one.node == node);
            own.any(|one| !matches!(one.status, Status::Gone | Status::Going))
        };
        self.over && !open && !self.work.nodes().any(left)
    }

    /// Whether the tenant has given it up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Whether a server of the plan is to be there.
    #[must_use]
    pub fn wants(&self, vm: VmId) -> bool {
        !self.over && !self.cancelled && self.executor.state(vm).is_wanted()
    }

    /// Attempts that have not ended: task, number, and where.
    pub fn open_attempts(&self) -> impl Iterator<Item = (usize, u32, VmId)> + '_ {
        self.attempts.iter().enumerate().flat_map(|(task, all)| {
            let open = (1..).zip(all).filter(|(_, one)| one.ended.is_none());
            open.map(move |(number, one)| (task, number, one.vm))
        })
    }

    /// What became of it so far.
    #[must_use]
    pub fn report(&self) -> BagReport {
        let tasks = self.work.bag.tasks().len();
        let done = (0..tasks).filter(|task| self.executor.is_task_done(*task));
        let done = done.count();
        let deadline = i64::try_from(self.work.bag.rules().deadline).unwrap_or(i64::MAX / 4_000);
        let deadline = deadline * 1_000;
        BagReport {
            tasks,
            done,
            took: self.took,
            deadline,
            met: done == tasks && self.took <= deadline,
            hibernated: self.hibernated,
            backups: self.backups,
            moved: self.moved,
        }
    }

    /// Whole seconds since the begin, of the newest time.
    fn seconds(&self) -> u64 {
        u64::try_from(self.last.saturating_sub(self.begun) / 1_000).unwrap_or(0)
    }

    fn note(&mut self, fact: BagFact, made: &mut BagLook) -> Result<(), BatchError> {
        let entry = BagEntry {
            at: self.last,
            fact,
        };
        self.apply(&entry)?;
        made.facts.push(entry);
        Ok(())
    }

    /// Tasks that are done: before anything else, so that what was done on a server that is gone
    /// now counts.
    fn finished(&mut self, seen: &BagSeen<'_>, made: &mut BagLook) -> Result<(), BatchError> {
        for task in 0..self.attempts.len() {
            if self.executor.is_task_done(task) {
                continue;
            }
            let Some(number) = (seen.done)(task) else {
                continue;
            };
            let by = self.attempts[task].get(place(number));
            let vm = by.or_else(|| self.attempts[task].last()).map(|one| one.vm);
            let vm = vm.unwrap_or(VmId::Primary(0));
            self.note(BagFact::Finished { task, vm }, made)?;
        }
        Ok(())
    }

    /// What became of servers.
    fn servers(&mut self, seen: &BagSeen<'_>, made: &mut BagLook) -> Result<(), BatchError> {
        for vm in self.executor.vms().collect::<Vec<_>>() {
            let node = self.work.node(vm);
            let status = server(seen.servers, node).map(|one| one.status);
            let fact = match (self.executor.state(vm), status) {
                (VmState::Launched, Some(Status::Active | Status::Leaving))
                    if (seen.ready)(node) =>
                {
                    BagFact::Started { vm }
                }
                (VmState::Launched | VmState::Up, Some(Status::Kept)) => BagFact::Hibernated { vm },
                (VmState::Hibernated, Some(Status::Active | Status::Leaving)) => {
                    BagFact::Resumed { vm }
                }
                (
                    VmState::Up | VmState::Hibernated,
                    None | Some(Status::Gone | Status::Going | Status::Failed),
                ) => BagFact::Interrupted { vm },
                _ => continue,
            };
            self.note(fact, made)?;
        }
        Ok(())
    }

    /// Attempts that ended without their task being done.
    fn ended(&mut self, seen: &BagSeen<'_>, made: &mut BagLook) -> Result<(), BatchError> {
        for (task, number, _) in self.open_attempts().collect::<Vec<_>>() {
            let exit = match (seen.attempt)(task, number) {
                AttemptSeen::Active => continue,
                AttemptSeen::Ended { exit } => exit,
                AttemptSeen::Unknown => {
                    let one = self.attempts[task].get(place(number));
                    let began = one.map_or(self.last, |one| one.began);
                    if self.last.saturating_sub(began) < UNSEEN_MS {
                        continue;
                    }
                    None
                }
            };
            self.note(BagFact::AttemptEnded { task, number, exit }, made)?;
        }
        Ok(())
    }

    /// Whether a task failed as often as it may.
    fn failed(&self, made: &mut BagLook) -> bool {
        let mut failures = self.failures.iter();
        let failed = failures.position(|(count, _)| *count > self.work.retries);
        let Some(task) = failed.filter(|task| !self.executor.is_task_done(*task)) else {
            return false;
        };
        made.problems.push(BatchError::Failed {
            id: self.work.work.name.clone(),
            member: self.work.bag.tasks()[task].name.clone(),
            exit: self.failures[task].1,
            attempts: self.attempts[task].len() as u32,
        });
        true
    }

    /// Ends attempts whose task does not run there any more.
    fn stop(&mut self, seen: &BagSeen<'_>, made: &mut BagLook) -> Result<(), BatchError> {
        for (task, number, vm) in self.open_attempts().collect::<Vec<_>>() {
            let runs = self.executor.running().any(|one| one == (vm, task));
            if runs && !self.over {
                continue;
            }
            if (seen.attempt)(task, number) == AttemptSeen::Active {
                self.send_once(AGAIN_MS, BagDo::Stop { task, number }, made);
            } else {
                let exit = None;
                self.note(BagFact::AttemptEnded { task, number, exit }, made)?;
            }
        }
        Ok(())
    }

    /// Starts the tasks that run by the executor and have no attempt there.
    fn start(&mut self, made: &mut BagLook) -> Result<(), BatchError> {
        if self.over {
            return Ok(());
        }
        for (vm, task) in self.executor.running().collect::<Vec<_>>() {
            let mut own = self.attempts[task].iter().filter(|one| one.vm == vm);
            // An attempt that was not taken has waited long enough.
            let soon = |one: &Attempt, at: i64| {
                at.saturating_add(AGAIN_MS) > self.last && at.saturating_sub(one.began) < UNSEEN_MS
            };
            let waits = own.any(|one| one.ended.is_none_or(|at| soon(one, at)));
            if waits || self.executor.state(vm) != VmState::Up {
                continue;
            }
            let number = self.attempts[task].len() as u32 + 1;
            self.note(BagFact::Attempt { task, vm, number }, made)?;
            made.actions.push(BagDo::Start {
                task,
                number,
                node: self.work.node(vm).to_owned(),
            });
        }
        Ok(())
    }

    /// Creates the servers that are missing, and gives back those that are not wanted.
    fn pool(&mut self, seen: &BagSeen<'_>, made: &mut BagLook) {
        let work = self.work;
        for (vm, node) in work.nodes() {
            let own = server(seen.servers, node);
            let wanted = self.wants(vm);
            let node = node.to_owned();
            let fails = own.is_some_and(|one| one.status == Status::Failed);
            let launched = self.executor.state(vm) == VmState::Launched;
            for one in seen.servers.iter().filter(|one| one.node == node) {
                let kept = wanted && !fails && own.is_some_and(|own| own.id == one.id);
                if !kept && !matches!(one.status, Status::Gone | Status::Going) {
                    let node = node.clone();
                    let server = one.id.clone();
                    self.send_once(AGAIN_MS, BagDo::GiveBack { node, server }, made);
                }
            }
            if wanted && launched && own.is_none() {
                self.send_once(self.launch_again, BagDo::Create { node }, made);
            }
        }
    }

    /// Returns an action, unless it was returned a moment ago.
    fn send_once(&mut self, again: i64, action: BagDo, made: &mut BagLook) {
        let at = self.sent.get(&action);
        if at.is_none_or(|at| at.saturating_add(again) <= self.last) {
            self.sent.insert(action.clone(), self.last);
            made.actions.push(action);
        }
    }
}

/// The place of an attempt with a number, which counts from 1.
fn place(number: u32) -> usize {
    (number as usize).wrapping_sub(1)
}

/// The server of a node: the oldest that is there or frozen, else one that is not gone.
fn server<'s>(servers: &'s [PoolServer], node: &str) -> Option<&'s PoolServer> {
    let own = servers.iter().filter(|one| one.node == node);
    let own = own.filter(|one| one.status != Status::Gone);
    own.min_by_key(|one| {
        let there = one.status.is_there() || one.status == Status::Kept;
        (!there, one.age_key())
    })
}
