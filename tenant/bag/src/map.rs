//! Instances with their tasks, core by core.

use crate::input::Bag;
use ebbtide_model::Money;
use serde::{Deserialize, Serialize};

/// How an instance is bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// Cheap, and it may hibernate or be interrupted at any time.
    Preemptible,
    /// Dear, and it stays.
    OnDemand,
}

impl Market {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preemptible => "preemptible",
            Self::OnDemand => "on-demand",
        }
    }

    /// What a type costs for an hour on this market, if it is sold there.
    #[must_use]
    pub fn hourly(self, bag: &Bag, ty: usize) -> Option<Money> {
        let ty = &bag.types()[ty];
        match self {
            Self::Preemptible => ty.preemptible,
            Self::OnDemand => ty.on_demand,
        }
    }
}

/// An instance of the primary map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    pub ty: usize,
    /// How it is bought.
    pub market: Market,
    /// The tasks of each core that is used, in the order in which they run.
    pub cores: Vec<Vec<usize>>,
}

/// When a task of an instance ends, if nothing happens to the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finish {
    /// Seconds since the begin, boot included.
    pub end: u64,
    pub task: usize,
    pub core: usize,
}

impl Vm {
    /// Its tasks, core by core.
    pub fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        self.cores.iter().flatten().copied()
    }

    /// When the last task ends, seconds since the begin, boot included.
    #[must_use]
    pub fn end(&self, bag: &Bag) -> u64 {
        let longest = self.cores.iter().map(|core| load(bag, self.ty, core)).max();
        bag.rules().boot + longest.unwrap_or(0)
    }

    /// When each task ends, in that order.
    #[must_use]
    pub fn finishes(&self, bag: &Bag) -> Vec<Finish> {
        let mut finishes = Vec::with_capacity(self.cores.iter().map(Vec::len).sum());
        for (core, tasks) in self.cores.iter().enumerate() {
            let mut end = bag.rules().boot;
            for &task in tasks {
                end += seconds(bag, task, self.ty);
                finishes.push(Finish { end, task, core });
            }
        }
        finishes.sort_unstable();
        finishes
    }

    /// What its planned use costs, millionths.
    #[must_use]
    pub fn price(&self, bag: &Bag) -> u64 {
        self.market
            .hourly(bag, self.ty)
            .map_or(u64::MAX, |hourly| bag.price(hourly, self.end(bag)))
    }

    /// Whether its cores and its memory are enough: a core keeps the memory of its largest task as
    /// long as the instance lives, so that tasks may move in time without ever being too many.
    #[must_use]
    pub fn fits(&self, bag: &Bag) -> bool {
        let ty = &bag.types()[self.ty];
        let memory = |core: &Vec<usize>| core.iter().map(|&t| bag.tasks()[t].memory_mb).max();
        let kept: u64 = self.cores.iter().filter_map(memory).sum();
        self.cores.len() <= ty.vcpus as usize && kept <= ty.memory_mb
    }
}

/// A sum of prices, held at the largest number there is.
pub(crate) fn sum(prices: impl Iterator<Item = u64>) -> u64 {
    prices.fold(0, u64::saturating_add)
}

/// Seconds of a task on a type. A plan never puts a task where it does not fit; if one did, no
/// deadline would be met.
pub(crate) fn seconds(bag: &Bag, task: usize, ty: usize) -> u64 {
    bag.runtime(task, ty).unwrap_or(crate::input::LONGEST * 2)
}

/// Seconds of some tasks one after another.
pub(crate) fn load(bag: &Bag, ty: usize, tasks: &[usize]) -> u64 {
    tasks.iter().map(|&task| seconds(bag, task, ty)).sum()
}
