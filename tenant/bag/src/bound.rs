//! What no plan can do better: the smallest deadline that can be met, and the least money.

use crate::error::BagError;
use crate::input::{Bag, InstanceType};
use ebbtide_model::Money;

/// A task that takes longest even on the fastest instance for it: nothing is done before it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Critical {
    pub task: usize,
    /// Its fastest on-demand type.
    pub ty: usize,
    /// With boot and margin, seconds.
    pub seconds: u64,
}

/// The fastest on-demand type of each task with the seconds there; the cheaper one of equals.
///
/// # Errors
/// [`BagError::TooLarge`] for a task that fits nowhere.
pub(crate) fn all_fastest(bag: &Bag) -> Result<Vec<(u64, usize)>, BagError> {
    let each = bag.tasks().iter().enumerate().map(|(index, task)| {
        let types = bag.types().iter().enumerate();
        types
            .filter_map(|(ty, t)| Some((bag.runtime(index, ty)?, t.on_demand?, ty)))
            .min()
            .map(|(seconds, _, ty)| (seconds, ty))
            .ok_or_else(|| {
                let types = bag.types().iter().filter(|ty| ty.on_demand.is_some());
                let largest = types.max_by_key(|ty| ty.memory_mb);
                BagError::TooLarge {
                    task: task.name.clone(),
                    memory_mb: task.memory_mb,
                    largest: largest.map_or_else(String::new, |ty| ty.name.clone()),
                    largest_mb: largest.map_or(0, |ty| ty.memory_mb),
                }
            })
    });
    each.collect()
}

/// Checks that the deadline can be met. Instances are not scarce, so a bag can be done in time
/// exactly if each of its tasks alone can, on the fastest on-demand type for it.
///
/// # Errors
/// [`BagError::Infeasible`] with the critical task.
pub(crate) fn prove(bag: &Bag) -> Result<(), BagError> {
    let Some(critical) = critical(bag) else {
        return Err(BagError::Nothing("task"));
    };
    if critical.seconds <= bag.rules().deadline {
        return Ok(());
    }
    Err(BagError::Infeasible {
        deadline: bag.rules().deadline,
        task: bag.tasks()[critical.task].name.clone(),
        fastest: bag.types()[critical.ty].name.clone(),
        seconds: critical.seconds,
        boot: bag.rules().boot,
        margin: bag.rules().margin,
    })
}

/// The task that makes the smallest deadline; [`Critical::seconds`] is that deadline.
#[must_use]
pub fn critical(bag: &Bag) -> Option<Critical> {
    let rules = bag.rules();
    (0..bag.tasks().len())
        .map(|task| {
            let (seconds, ty) = bag.fastest(task);
            Critical {
                task,
                ty,
                seconds: seconds + rules.boot + rules.margin,
            }
        })
        .max_by_key(|c| (c.seconds, std::cmp::Reverse(c.task)))
}

/// The smallest deadline with which every task can end on a preemptible instance, if nothing
/// hibernates, before a backup would have to start: below it some task has its copy started in any
/// case, or runs on demand. Seconds; `None` if a task fits on no preemptible type.
#[must_use]
pub fn smallest_without_copies(bag: &Bag) -> Option<u64> {
    let rules = bag.rules();
    let mut most = 0;
    for task in 0..bag.tasks().len() {
        let types = bag.types().iter().enumerate();
        let primary = types
            .filter(|(_, t)| t.preemptible.is_some())
            .filter_map(|(ty, _)| bag.runtime(task, ty))
            .min()?;
        let (backup, _) = bag.fastest(task);
        most = most.max(primary + backup + 2 * rules.boot + rules.margin);
    }
    Some(most)
}

/// Mixtures of vCPUs and memory that the bound on the price is taken over: for each of them the
/// work of all tasks fits into what is paid.
const MIXTURES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The least that any plan costs, millionths, whatever its instances, cores and order: the larger
/// one of two bounds.
///
/// - *Work*: a task takes a share of the vCPUs and a share of the memory of its instance as long as
///   it runs, and no instance gives more than all of either; so it costs at least the mixture of
///   both shares of the price, on the type where that is least. If all tasks need the same memory,
///   the share is one of as many tasks as fit.
/// - *Longest*: each task pays at least the slots of an instance that runs nothing else.
#[must_use]
pub fn least_price(bag: &Bag) -> u64 {
    let tasks: Vec<usize> = (0..bag.tasks().len()).collect();
    let cheaper = |ty: &InstanceType| [ty.preemptible, ty.on_demand].into_iter().flatten().min();
    work(bag, &tasks, cheaper).max(longest(bag, &tasks, cheaper))
}

/// The least that backups of some tasks cost if all of them are needed, millionths: the same bounds
/// on demand.
pub(crate) fn least_price_of_backups(bag: &Bag, tasks: &[usize]) -> u64 {
    let on_demand = |ty: &InstanceType| ty.on_demand;
    work(bag, tasks, on_demand).max(longest(bag, tasks, on_demand))
}

fn longest(bag: &Bag, tasks: &[usize], hourly: impl Fn(&InstanceType) -> Option<Money>) -> u64 {
    let boot = bag.rules().boot;
    let least = |task: usize| {
        let types = bag.types().iter().enumerate();
        types
            .filter_map(|(ty, t)| Some(bag.price(hourly(t)?, bag.runtime(task, ty)? + boot)))
            .min()
            .unwrap_or(0)
    };
    tasks.iter().map(|&task| least(task)).max().unwrap_or(0)
}

fn work(bag: &Bag, tasks: &[usize], hourly: impl Fn(&InstanceType) -> Option<Money>) -> u64 {
    let memory_of = |task: usize| bag.tasks()[task].memory_mb;
    let memory = tasks.first().map_or(0, |&task| memory_of(task));
    let alike = tasks.iter().all(|&task| memory_of(task) == memory);
    let sum = |share: &dyn Fn(usize, usize) -> f64| -> f64 {
        let least = tasks.iter().map(|&task| {
            let types = bag.types().iter().enumerate();
            types
                .filter_map(|(ty, t)| {
                    let micros = hourly(t)?.micros() as f64;
                    let seconds = bag.runtime(task, ty)? as f64;
                    Some(micros * seconds / 3600.0 * share(task, ty))
                })
                .fold(f64::INFINITY, f64::min)
        });
        least.sum()
    };
    let best = if alike {
        sum(&|_, ty| 1.0 / together(bag, ty, memory) as f64)
    } else {
        let mixed = MIXTURES.iter().map(|mixture| {
            sum(&|task, ty| {
                let t = &bag.types()[ty];
                let cpu = 1.0 / f64::from(t.vcpus);
                let memory = memory_of(task) as f64 / t.memory_mb as f64;
                mixture * cpu + (1.0 - mixture) * memory
            })
        });
        mixed.fold(0.0, f64::max)
    };
    // A bound may be too small by what the sum of floats loses, never too large.
    (best * (1.0 - 1e-9)) as u64
}

/// How many tasks of one size run at the same time on a type.
fn together(bag: &Bag, ty: usize, memory: u64) -> u64 {
    let t = &bag.types()[ty];
    let fit = t.memory_mb.checked_div(memory).unwrap_or(u64::MAX);
    fit.min(u64::from(t.vcpus)).max(1)
}
