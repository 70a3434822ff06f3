//! The backup map (Algorithm 2): for every task of a preemptible instance an on-demand instance, a
//! core on it, and the latest start.
//!
//! An instance that hibernates takes all its unfinished tasks with it: those that run, and those
//! that wait behind them (the paper's recovery group, equation 2: the union of the successors of
//! all that run in parallel). As a hibernation freezes the whole instance, its tasks end in the
//! planned order whatever happens; so the recovery groups are the tails of that order, and one
//! assignment of tasks to backups serves all of them. It is made from the last task to end
//! forwards: when a task is added, it and those before are the recovery group just before the
//! task's planned end, and have to fit between that end and the deadline (the constraint under
//! equation 3).

use crate::input::Bag;
use crate::map::{Finish, Market, Vm, load, seconds, sum};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// An on-demand instance that is launched only if it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub ty: usize,
    /// The tasks of each core, in the order in which they would run.
    pub cores: Vec<Vec<usize>>,
    /// True if a task on it ends on its preemptible instance after the latest start of the backup,
    /// although nothing hibernates: then its copy starts in any case and is dropped when the task
    /// ends (the paper's constraint cannot hold for it).
    pub copies: bool,
}

impl Backup {
    /// Its tasks, core by core.
    pub fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        self.cores.iter().flatten().copied()
    }

    /// Equation 3: the last moment at which it can be launched so that all its tasks are done in
    /// time, seconds since the begin.
    #[must_use]
    pub fn latest_start(&self, bag: &Bag) -> u64 {
        latest(bag, self.longest(bag))
    }

    /// The longest core, seconds.
    fn longest(&self, bag: &Bag) -> u64 {
        let loads = self.cores.iter().map(|core| load(bag, self.ty, core));
        loads.max().unwrap_or(0)
    }

    /// What it costs if it runs all its tasks, millionths.
    #[must_use]
    pub fn price(&self, bag: &Bag) -> u64 {
        Market::OnDemand
            .hourly(bag, self.ty)
            .map_or(u64::MAX, |hourly| {
                bag.price(hourly, bag.rules().boot + self.longest(bag))
            })
    }

    /// As an instance.
    #[must_use]
    pub fn vm(&self) -> Vm {
        Vm {
            ty: self.ty,
            market: Market::OnDemand,
            cores: self.cores.clone(),
        }
    }
}

/// The latest start of what takes so long, boot apart.
pub(crate) fn latest(bag: &Bag, seconds: u64) -> u64 {
    bag.end().saturating_sub(bag.rules().boot + seconds)
}

/// A task to be placed, and how long the recovery group may take when it is in it, boot apart.
struct Need {
    task: usize,
    cap: u64,
}

/// The cheapest backups for an instance among these: its own cores on one of any type, packings
/// onto one type, for each type, and onto the type where each task is cheapest. None takes longer
/// than the instance itself would take from the begin, so that hibernations are waited out about as
/// long as with the same type as backup.
pub(crate) fn backups(bag: &Bag, vm: &Vm) -> Vec<Backup> {
    if vm.market == Market::OnDemand {
        return Vec::new();
    }
    let boot = bag.rules().boot;
    let mut again = vec![0; vm.cores.len()];
    let mut whole = 0;
    let mut needs = Vec::new();
    let mut late = Vec::new();
    for finish in vm.finishes(bag).into_iter().rev() {
        again[finish.core] += seconds(bag, finish.task, vm.ty);
        whole = whole.max(again[finish.core]);
        let room = bag.end().saturating_sub(boot + finish.end);
        let quickest = bag.fastest(finish.task).0;
        if quickest > room {
            late.push(finish);
        } else {
            needs.push(Need {
                task: finish.task,
                cap: room.min(whole.max(quickest)),
            });
        }
    }
    let mut found = cheapest(bag, vm, &needs);
    found.extend(copies(bag, &late));
    found
}

fn cheapest(bag: &Bag, vm: &Vm, needs: &[Need]) -> Vec<Backup> {
    let price = |backups: &Vec<Backup>| sum(backups.iter().map(|b| b.price(bag)));
    let types = || bag.backup_types().iter().copied();
    let own = std::iter::once(vm.ty).filter(|&ty| bag.types()[ty].on_demand.is_some());
    let mirrors = types().chain(own).map(|ty| mirror(bag, vm, needs, ty));
    let one_type = types().map(|ty| pack(bag, needs, Some(ty)));
    let mixed = std::iter::once_with(|| pack(bag, needs, None));
    mirrors
        .chain(one_type)
        .chain(mixed)
        .flatten()
        .min_by_key(|backups| (price(backups), backups.len()))
        .unwrap_or_default()
}

/// One backup with the cores of the instance itself, if that is in time.
fn mirror(bag: &Bag, vm: &Vm, needs: &[Need], ty: usize) -> Option<Vec<Backup>> {
    let mut core_of = HashMap::with_capacity(needs.len());
    for (core, tasks) in vm.cores.iter().enumerate() {
        core_of.extend(tasks.iter().map(|&task| (task, core)));
    }
    let mut loads = vec![0; vm.cores.len()];
    let mut cores: Vec<Vec<usize>> = vec![Vec::new(); vm.cores.len()];
    for need in needs {
        let &core = core_of.get(&need.task)?;
        loads[core] += bag.runtime(need.task, ty)?;
        if loads[core] > need.cap {
            return None;
        }
        cores[core].push(need.task);
    }
    cores.retain(|core| !core.is_empty());
    let backup = Backup {
        ty,
        cores,
        copies: false,
    };
    if needs.is_empty() {
        return Some(Vec::new());
    }
    backup.vm().fits(bag).then(|| vec![backup])
}

/// A backup that is being filled.
struct Open {
    ty: usize,
    cores: Vec<OpenCore>,
    memory: u64,
}

struct OpenCore {
    load: u64,
    memory: u64,
    tasks: Vec<usize>,
}

impl Open {
    fn new(ty: usize) -> Self {
        Self {
            ty,
            cores: Vec::new(),
            memory: 0,
        }
    }

    /// The core that is left fullest by this task within its cap; one that is not used yet only if
    /// there is no other.
    fn place(&self, bag: &Bag, task: usize, cap: u64) -> Option<(usize, u64)> {
        let runtime = bag.runtime(task, self.ty)?;
        let needed = bag.tasks()[task].memory_mb;
        let ty = &bag.types()[self.ty];
        let used = self.cores.iter().enumerate().filter_map(|(at, core)| {
            let more = needed.saturating_sub(core.memory);
            let fits = core.load + runtime <= cap && self.memory + more <= ty.memory_mb;
            fits.then_some((at, core.load + runtime))
        });
        used.max_by_key(|&(at, load)| (load, std::cmp::Reverse(at)))
            .or_else(|| {
                let free = self.cores.len() < ty.vcpus as usize
                    && self.memory + needed <= ty.memory_mb
                    && runtime <= cap;
                free.then_some((self.cores.len(), runtime))
            })
    }

    fn put(&mut self, bag: &Bag, task: usize, at: usize, load: u64) {
        let needed = bag.tasks()[task].memory_mb;
        if at == self.cores.len() {
            self.cores.push(OpenCore {
                load: 0,
                memory: 0,
                tasks: Vec::new(),
            });
        }
        let core = &mut self.cores[at];
        self.memory += needed.saturating_sub(core.memory);
        core.memory = core.memory.max(needed);
        core.load = load;
        core.tasks.push(task);
    }

    fn done(self, copies: bool) -> Backup {
        // The last to be placed end first on the preemptible instance; what ends last there is
        // begun first here.
        Backup {
            ty: self.ty,
            cores: self.cores.into_iter().map(|core| core.tasks).collect(),
            copies,
        }
    }
}

/// Packs tasks onto backups of one type, or of whatever type is cheapest where one is opened.
fn pack(bag: &Bag, needs: &[Need], only: Option<usize>) -> Option<Vec<Backup>> {
    let mut open: Vec<Open> = Vec::new();
    for need in needs {
        let place = open
            .iter()
            .enumerate()
            .find_map(|(vm, o)| Some((vm, o.place(bag, need.task, need.cap)?)));
        let (vm, (at, load)) = match place {
            Some(place) => place,
            None => {
                let ty = match only {
                    Some(ty) => ty,
                    None => opened(bag, need)?,
                };
                open.push(Open::new(ty));
                let last = open.len() - 1;
                (last, open[last].place(bag, need.task, need.cap)?)
            }
        };
        open[vm].put(bag, need.task, at, load);
    }
    Some(open.into_iter().map(|o| o.done(false)).collect())
}

/// The type on which a task alone is cheapest in time.
fn opened(bag: &Bag, need: &Need) -> Option<usize> {
    let types = bag.backup_types().iter().filter_map(|&ty| {
        let runtime = bag.runtime(need.task, ty).filter(|&r| r <= need.cap)?;
        let hourly = Market::OnDemand.hourly(bag, ty)?;
        Some((bag.price(hourly, bag.rules().boot + runtime), runtime, ty))
    });
    types.min().map(|(_, _, ty)| ty)
}

/// Tasks that end too late for a backup that waits: each has a core of its own, so that its copy
/// starts as late as can be.
fn copies(bag: &Bag, late: &[Finish]) -> Vec<Backup> {
    let boot = bag.rules().boot;
    let mut open: Vec<Open> = Vec::new();
    for (done, finish) in late.iter().enumerate() {
        let runtime = |ty: usize| bag.runtime(finish.task, ty);
        let room = open.iter().position(|o| {
            let memory = o.memory + bag.tasks()[finish.task].memory_mb;
            o.cores.len() < bag.types()[o.ty].vcpus as usize
                && memory <= bag.types()[o.ty].memory_mb
                && runtime(o.ty).is_some_and(|r| boot + r <= bag.end())
        });
        let left = (late.len() - done) as u64;
        let vm = room.or_else(|| {
            let types = bag.backup_types().iter().filter_map(|&ty| {
                let seconds = runtime(ty).filter(|r| boot + r <= bag.end())?;
                let hourly = Market::OnDemand.hourly(bag, ty)?;
                let used = finish.end.saturating_sub(latest(bag, seconds));
                let t = &bag.types()[ty];
                let together = t
                    .memory_mb
                    .checked_div(bag.tasks()[finish.task].memory_mb)
                    .unwrap_or(u64::MAX)
                    .min(u64::from(t.vcpus))
                    .min(left);
                let price = bag.price(hourly, used.min(boot + seconds)) / together.max(1);
                Some((price, seconds, ty))
            });
            let (_, _, ty) = types.min()?;
            open.push(Open::new(ty));
            Some(open.len() - 1)
        });
        // There is always a type: the deadline was proven for each task on one.
        if let Some(vm) = vm
            && let Some(seconds) = runtime(open[vm].ty)
        {
            let core = open[vm].cores.len();
            open[vm].put(bag, finish.task, core, seconds);
        }
    }
    open.into_iter().map(|o| o.done(true)).collect()
}

/// What copies cost that start although nothing hibernates, millionths: from the latest start of
/// the group until each of its tasks has ended on either side.
pub(crate) fn price_of_copies(bag: &Bag, backup: &Backup, finishes: &[Finish]) -> u64 {
    if !backup.copies {
        return 0;
    }
    let start = backup.latest_start(bag);
    let ready = start + bag.rules().boot;
    let ends = backup.cores.iter().filter_map(|core| {
        let &task = core.first()?;
        let primary = finishes.iter().find(|f| f.task == task)?.end;
        Some(primary.min(ready + seconds(bag, task, backup.ty)))
    });
    let used = ends.max().unwrap_or(0).saturating_sub(start);
    Market::OnDemand
        .hourly(bag, backup.ty)
        .map_or(0, |hourly| bag.price(hourly, used))
}
