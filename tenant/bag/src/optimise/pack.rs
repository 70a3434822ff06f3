//! Packings: tasks put tightly into instances of one type that all are used for the same number of
//! slots.

use super::{cheaper, complete};
use crate::greedy::in_order;
use crate::input::Bag;
use crate::map::{Market, Vm, sum};
use crate::plan::{Method, Plan};
use std::collections::BTreeSet;

/// With fewer tasks all types and numbers of slots are tried (up to [`MOST_HORIZONS`]); with more
/// only [`FEW_HORIZONS`] on the [`FEW_TYPES`] on which work is cheapest.
const MANY_TASKS: usize = 1_000;
const MOST_HORIZONS: u64 = 24;
const FEW_HORIZONS: u64 = 6;
const FEW_TYPES: usize = 6;

/// A way to pack: new instances are of this type and used for so many slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    pub(super) ty: usize,
    pub(super) slots: u64,
}

/// All ways to pack that are worth trying.
pub(super) fn recipes(bag: &Bag, market: Market) -> Vec<Recipe> {
    let most = (limit(bag, market) / bag.rules().slot).max(1);
    let tried = if bag.tasks().len() > MANY_TASKS {
        FEW_HORIZONS
    } else {
        MOST_HORIZONS
    };
    let slots: BTreeSet<u64> = if most <= tried {
        (1..=most).collect()
    } else {
        (1..=tried).map(|n| (most * n).div_ceil(tried)).collect()
    };
    let mut types: Vec<usize> = types(bag, market).to_vec();
    if bag.tasks().len() > MANY_TASKS {
        types.sort_by(|&a, &b| {
            price_of_work(bag, market, a).total_cmp(&price_of_work(bag, market, b))
        });
        types.truncate(FEW_TYPES);
    }
    types
        .iter()
        .flat_map(|&ty| slots.iter().map(move |&slots| Recipe { ty, slots }))
        .collect()
}

/// What a second of work on the base machine costs on a type that is full of average tasks.
fn price_of_work(bag: &Bag, market: Market, ty: usize) -> f64 {
    let t = &bag.types()[ty];
    let memory: u64 = bag.tasks().iter().map(|task| task.memory_mb).sum();
    let average = (memory as f64 / bag.tasks().len() as f64).max(1.0);
    let together = (t.memory_mb as f64 / average).min(f64::from(t.vcpus));
    let hourly = market
        .hourly(bag, ty)
        .map_or(f64::INFINITY, |h| h.micros() as f64);
    hourly * t.slowdown / together
}

/// The types that are used on a market.
pub(super) fn types(bag: &Bag, market: Market) -> &[usize] {
    match market {
        Market::Preemptible => bag.primary_types(),
        Market::OnDemand => bag.backup_types(),
    }
}

fn limit(bag: &Bag, market: Market) -> u64 {
    match market {
        Market::Preemptible => bag.limit(),
        Market::OnDemand => bag.end(),
    }
}

/// The cheapest of all packings.
pub(super) fn best(bag: &Bag, market: Market) -> Plan {
    let tasks = in_order(bag, 0..bag.tasks().len());
    let price = |vms: &[Vm]| sum(vms.iter().map(|vm| vm.price(bag)));
    let mut packings: Vec<(u64, Vec<Vm>)> = recipes(bag, market)
        .into_iter()
        .map(|recipe| {
            let vms = pack(bag, market, recipe, &tasks);
            (price(&vms), vms)
        })
        .collect();
    packings.sort_by_key(|(price, vms)| (*price, vms.len()));
    // Backups and copies decide among the few with the cheapest instances: to plan them for all
    // would take longer than the rest.
    let some = if tasks.len() > MANY_TASKS { 2 } else { 4 };
    let plans = packings.into_iter().take(some);
    plans
        .map(|(_, vms)| complete(bag, vms, Method::Search))
        .reduce(|a, b| cheaper(bag, a, b))
        .unwrap_or_else(|| complete(bag, crate::greedy::greedy(bag, market), Method::Greedy))
}

/// Packs tasks, which come by falling memory and duration: onto the core that they leave fullest,
/// else onto a new one.
pub(super) fn pack(bag: &Bag, market: Market, recipe: Recipe, tasks: &[usize]) -> Vec<Vm> {
    let mut packer = Packer {
        bag,
        market,
        recipe,
        vms: Vec::new(),
        cores: vec![BTreeSet::new(); bag.types().len()],
        room: vec![Vec::new(); bag.types().len()],
        used: Vec::new(),
    };
    for &task in tasks {
        packer.put(task);
    }
    let mut vms: Vec<Vm> = packer.vms.into_iter().map(|open| open.vm).collect();
    vms.retain(|vm| !vm.cores.is_empty());
    vms
}

struct Open {
    vm: Vm,
    /// Seconds of work that each core may have.
    cap: u64,
    memory: u64,
}

struct Packer<'a> {
    bag: &'a Bag,
    market: Market,
    recipe: Recipe,
    vms: Vec<Open>,
    /// For each type what is left on its cores, with instance and core.
    cores: Vec<BTreeSet<(u64, usize, usize)>>,
    /// For each type the instances that may have a core left.
    room: Vec<Vec<usize>>,
    /// Types that have instances.
    used: Vec<usize>,
}

impl Packer<'_> {
    fn put(&mut self, task: usize) {
        if self.on_open_core(task) || self.on_new_core(task) {
            return;
        }
        let (ty, market, cap) = self.new_instance(task);
        let vm = Vm {
            ty,
            market,
            cores: Vec::new(),
        };
        self.vms.push(Open { vm, cap, memory: 0 });
        if !self.used.contains(&ty) {
            self.used.push(ty);
        }
        self.room[ty].push(self.vms.len() - 1);
        self.open_core(self.vms.len() - 1, task);
    }

    fn on_open_core(&mut self, task: usize) -> bool {
        let best = self.used.iter().filter_map(|&ty| {
            let runtime = self.bag.runtime(task, ty)?;
            let &(left, vm, core) = self.cores[ty].range((runtime, 0, 0)..).next()?;
            Some((left - runtime, ty, left, vm, core))
        });
        let Some((rest, ty, left, vm, core)) = best.min() else {
            return false;
        };
        self.cores[ty].remove(&(left, vm, core));
        self.cores[ty].insert((rest, vm, core));
        self.vms[vm].vm.cores[core].push(task);
        true
    }

    fn on_new_core(&mut self, task: usize) -> bool {
        let needed = self.bag.tasks()[task].memory_mb;
        let used = std::mem::take(&mut self.used);
        let mut found = None;
        for &ty in &used {
            let t = &self.bag.types()[ty];
            let Some(runtime) = self.bag.runtime(task, ty) else {
                continue;
            };
            let vms = &self.vms;
            // Tasks come by falling memory, yet an instance without memory for this one may have
            // some for the next.
            self.room[ty].retain(|&vm| vms[vm].vm.cores.len() < t.vcpus as usize);
            found = self.room[ty]
                .iter()
                .copied()
                .find(|&vm| runtime <= vms[vm].cap && vms[vm].memory + needed <= t.memory_mb);
            if found.is_some() {
                break;
            }
        }
        self.used = used;
        if let Some(vm) = found {
            self.open_core(vm, task);
        }
        found.is_some()
    }

    fn open_core(&mut self, vm: usize, task: usize) {
        let open = &mut self.vms[vm];
        let ty = open.vm.ty;
        let runtime = crate::map::seconds(self.bag, task, ty);
        let core = open.vm.cores.len();
        open.vm.cores.push(vec![task]);
        open.memory += self.bag.tasks()[task].memory_mb;
        self.cores[ty].insert((open.cap.saturating_sub(runtime), vm, core));
    }

    /// Type, market and cap of a new instance for a task: those of the recipe if it is short
    /// enough, else the type where it is cheapest as one of many like it, for as many slots as it
    /// takes.
    fn new_instance(&self, task: usize) -> (usize, Market, u64) {
        let bag = self.bag;
        let rules = bag.rules();
        let limit = limit(bag, self.market);
        let cap = (self.recipe.slots * rules.slot)
            .min(limit)
            .saturating_sub(rules.boot);
        if bag.runtime(task, self.recipe.ty).is_some_and(|r| r <= cap) {
            return (self.recipe.ty, self.market, cap);
        }
        let best = |market: Market| {
            let types = types(bag, market).iter().filter_map(|&ty| {
                let runtime = bag.runtime(task, ty)?;
                let end = runtime + rules.boot;
                let hourly = market.hourly(bag, ty)?;
                let t = &bag.types()[ty];
                let memory = t.memory_mb.checked_div(bag.tasks()[task].memory_mb);
                let together = memory.unwrap_or(u64::MAX).min(u64::from(t.vcpus)).max(1);
                let late = end > limit;
                let price = bag.price(hourly, end) / together;
                (end <= bag.end()).then_some((late, price, runtime, ty))
            });
            types.min().map(|(late, _, runtime, ty)| {
                let paid = (runtime + rules.boot).div_ceil(rules.slot) * rules.slot;
                let last = if late { runtime + rules.boot } else { limit };
                (ty, market, paid.min(last).saturating_sub(rules.boot))
            })
        };
        best(self.market)
            .or_else(|| best(Market::OnDemand))
            .unwrap_or_else(|| {
                let (seconds, ty) = bag.fastest(task);
                (ty, Market::OnDemand, seconds)
            })
    }
}
