//! Greedy primary maps, task by task: ours ([`greedy`]), and Algorithm 1 of the paper as printed
//! ([`literal`]).
//!
//! Both take tasks by falling memory (the paper does not order equals; here by falling duration,
//! then in the order of the bag), and open a new instance of the type `best_VM`: fewest periods of
//! running time, the cheaper of equals, the first of those. Neither holds a new instance against
//! the share of the deadline: two of the paper's four jobs are possible only so. If even a new
//! preemptible instance is too slow for the deadline, the task runs on demand.
//!
//! They differ in the instance that gets a further task. Algorithm 1 takes the one with the *most*
//! waste (equation 1) whose paid slots are enough, otherwise the one with the *least* waste that
//! gets new slots. Ours takes the one whose price grows least, then the one with the least waste,
//! and only if the task can still be moved to its backup at its end.

use crate::input::Bag;
use crate::map::{Market, Vm, seconds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An instance that is being filled. Tasks come by falling memory, so a core that is open is large
/// enough for all that follow.
pub(crate) struct OpenInstance {
    vm: Vm,
    /// Load and place of every core, the least loaded first.
    loads: BinaryHeap<Reverse<(u64, usize)>>,
    longest: u64,
    memory: u64,
}

impl OpenInstance {
    pub(crate) fn new(ty: usize, market: Market) -> Self {
        Self {
            vm: Vm {
                ty,
                market,
                cores: Vec::new(),
            },
            loads: BinaryHeap::new(),
            longest: 0,
            memory: 0,
        }
    }

    pub(crate) fn ty(&self) -> usize {
        self.vm.ty
    }

    pub(crate) fn done(self) -> Vm {
        self.vm
    }

    /// How much the earliest core is loaded already; `None` if the type is too small for the task.
    pub(crate) fn earliest(&self, bag: &Bag, task: usize) -> Option<(u64, usize)> {
        let ty = &bag.types()[self.vm.ty];
        let memory = bag.tasks()[task].memory_mb;
        if self.vm.cores.len() < ty.vcpus as usize && self.memory + memory <= ty.memory_mb {
            return Some((0, self.vm.cores.len()));
        }
        self.loads.peek().map(|Reverse(first)| *first)
    }

    pub(crate) fn put(&mut self, bag: &Bag, task: usize) {
        let Some((load, core)) = self.earliest(bag, task) else {
            return;
        };
        if core == self.vm.cores.len() {
            self.vm.cores.push(Vec::new());
            self.memory += bag.tasks()[task].memory_mb;
        } else {
            self.loads.pop();
        }
        let load = load + seconds(bag, task, self.vm.ty);
        self.vm.cores[core].push(task);
        self.loads.push(Reverse((load, core)));
        self.longest = self.longest.max(load);
    }
}

/// Tasks by falling memory, then by falling duration.
pub(crate) fn in_order(bag: &Bag, tasks: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut tasks: Vec<usize> = tasks.into_iter().collect();
    tasks.sort_by_key(|&task| {
        let t = &bag.tasks()[task];
        (Reverse(t.memory_mb), Reverse(t.seconds), task)
    });
    tasks
}

/// Our greedy map on a market. On demand there is neither a share nor a backup.
pub(crate) fn greedy(bag: &Bag, market: Market) -> Vec<Vm> {
    let mut open: Vec<OpenInstance> = Vec::new();
    for task in in_order(bag, 0..bag.tasks().len()) {
        let vm = best_open(bag, &open, task).unwrap_or_else(|| {
            let (ty, market) = best_new(bag, task, market);
            open.push(OpenInstance::new(ty, market));
            open.len() - 1
        });
        open[vm].put(bag, task);
    }
    open.into_iter().map(|o| o.vm).collect()
}

/// Algorithm 1 as printed. On demand, which is to compare with, all instances are on demand.
pub(crate) fn literal(bag: &Bag, market: Market) -> Vec<Vm> {
    let mut open: Vec<OpenInstance> = Vec::new();
    for task in in_order(bag, 0..bag.tasks().len()) {
        let vm = literal_open(bag, &open, task).unwrap_or_else(|| {
            let (ty, market) = match market {
                Market::Preemptible => literal_new(bag, task),
                Market::OnDemand => best_new(bag, task, market),
            };
            open.push(OpenInstance::new(ty, market));
            open.len() - 1
        });
        open[vm].put(bag, task);
    }
    open.into_iter().map(|o| o.vm).collect()
}

/// Lines 5 to 26: an instance whose allocated slots are enough, by falling waste; otherwise one
/// that gets new slots, by rising waste. The limit is D · VM_time_limit; line 22 compares the end
/// of new slots with `<`.
fn literal_open(bag: &Bag, open: &[OpenInstance], task: usize) -> Option<usize> {
    let rules = bag.rules();
    let slots = |end: u64| end.div_ceil(rules.slot) * rules.slot;
    let places: Vec<(usize, u64, u64, u64)> = open
        .iter()
        .enumerate()
        .filter_map(|(at, o)| {
            let (load, _) = o.earliest(bag, task)?;
            let end = rules.boot + load + bag.runtime(task, o.vm.ty)?;
            let last = rules.boot + o.longest;
            Some((at, end, slots(last), slots(last) - last))
        })
        .collect();
    let allocated = places
        .iter()
        .filter(|(_, end, paid, _)| end <= paid && *end <= bag.limit())
        .min_by_key(|(at, _, _, waste)| (Reverse(*waste), *at));
    let extended = || {
        places
            .iter()
            .filter(|(_, end, _, _)| slots(*end) < bag.limit())
            .min_by_key(|(at, _, _, waste)| (*waste, *at))
    };
    allocated.or_else(extended).map(|(at, ..)| *at)
}

/// Lines 28 to 33: the type by `best_VM`, then the market of that type by its price. Types of both
/// markets count; of equals the one whose cheaper market costs less.
fn literal_new(bag: &Bag, task: usize) -> (usize, Market) {
    let rules = bag.rules();
    let types = (0..bag.types().len()).filter_map(|ty| {
        let on = |market: Market| market.hourly(bag, ty).map(|hourly| (hourly, market));
        let (hourly, market) = match (on(Market::Preemptible), on(Market::OnDemand)) {
            (Some(preemptible), Some(on_demand)) if preemptible.0 >= on_demand.0 => on_demand,
            (Some(preemptible), _) => preemptible,
            (None, on_demand) => on_demand?,
        };
        let runtime = bag.runtime(task, ty)?;
        let in_time = rules.boot + runtime <= bag.end();
        in_time.then(|| ((runtime.div_ceil(rules.period), hourly, ty), market))
    });
    let best = types.min_by_key(|(order, _)| *order);
    best.map(|((_, _, ty), market)| (ty, market))
        // The bag's proof says that this one is in time.
        .unwrap_or_else(|| (bag.fastest(task).1, Market::OnDemand))
}

fn best_open(bag: &Bag, open: &[OpenInstance], task: usize) -> Option<usize> {
    let rules = bag.rules();
    let places = open.iter().enumerate().filter_map(|(at, o)| {
        let (load, _) = o.earliest(bag, task)?;
        let end = rules.boot + load + bag.runtime(task, o.vm.ty)?;
        let in_time = match o.vm.market {
            Market::OnDemand => end <= bag.end(),
            Market::Preemptible => {
                end <= bag.limit() && end + rules.boot + bag.fastest(task).0 <= bag.end()
            }
        };
        if !in_time {
            return None;
        }
        let hourly = o.vm.market.hourly(bag, o.vm.ty)?;
        let before = bag.price(hourly, rules.boot + o.longest);
        let last = (rules.boot + o.longest).max(end);
        let waste = last.div_ceil(rules.slot) * rules.slot - last;
        Some((bag.price(hourly, last) - before, waste, at))
    });
    places.min().map(|(_, _, at)| at)
}

/// `best_VM`.
fn best_new(bag: &Bag, task: usize, market: Market) -> (usize, Market) {
    let rules = bag.rules();
    let best = |market: Market| {
        let types = (0..bag.types().len()).filter_map(|ty| {
            let hourly = market.hourly(bag, ty)?;
            let runtime = bag.runtime(task, ty)?;
            let in_time = rules.boot + runtime <= bag.end();
            in_time.then(|| (runtime.div_ceil(rules.period), hourly, ty))
        });
        types.min().map(|(_, _, ty)| (ty, market))
    };
    best(market)
        .or_else(|| best(Market::OnDemand))
        // The bag's proof says that this one is in time.
        .unwrap_or_else(|| (bag.fastest(task).1, Market::OnDemand))
}
