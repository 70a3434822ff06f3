//! All plans of a very small bag, by dynamic programming over sets of tasks: the best single
//! instance for every set, then the best way to cut the bag into such sets.

use super::pack::types;
use crate::input::Bag;
use crate::map::{Market, Vm};
use crate::plan::PlannedVm;

/// Bags up to so many tasks are solved so: 21,147 ways to fill cores, each on each type.
pub(super) const MOST_TASKS: usize = 8;

/// The cheapest plan in which every core runs its tasks by falling duration, and no preemptible
/// instance is used beyond the share of the deadline unless it runs a single task on each core.
/// `None` if the bag is too large.
pub(super) fn best(bag: &Bag, market: Market) -> Option<Vec<PlannedVm>> {
    let count = bag.tasks().len();
    if count > MOST_TASKS {
        return None;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&task| (std::cmp::Reverse(bag.tasks()[task].seconds), task));
    let all = (1usize << count) - 1;
    let single: Vec<Option<PlannedVm>> = (0..=all)
        .map(|set| {
            let tasks: Vec<usize> = order
                .iter()
                .enumerate()
                .filter(|(bit, _)| set & (1 << bit) != 0)
                .map(|(_, &task)| task)
                .collect();
            instance(bag, market, &tasks)
        })
        .collect();
    // For every set the least price, and the part of it that one instance takes.
    let mut least: Vec<(u64, usize)> = vec![(u64::MAX, 0); all + 1];
    least[0] = (0, 0);
    for set in 1..=all {
        let lowest = set & set.wrapping_neg();
        let mut part = set;
        while part > 0 {
            if part & lowest != 0
                && let Some(planned) = &single[part]
                && least[set & !part].0 < u64::MAX
            {
                let price = planned
                    .price
                    .weighed(bag)
                    .saturating_add(least[set & !part].0);
                if price < least[set].0 {
                    least[set] = (price, part);
                }
            }
            part = (part - 1) & set;
        }
    }
    let mut vms = Vec::new();
    let mut left = all;
    while left > 0 {
        let part = least[left].1;
        vms.push(single.get(part)?.clone()?);
        left &= !part;
    }
    Some(vms)
}

/// The cheapest instance for a set of tasks, over all ways to fill cores and all types; on demand
/// besides.
fn instance(bag: &Bag, market: Market, tasks: &[usize]) -> Option<PlannedVm> {
    let mut best: Option<PlannedVm> = None;
    let mut cores: Vec<Vec<usize>> = Vec::new();
    if !tasks.is_empty() {
        fill(bag, market, tasks, &mut cores, &mut best);
    }
    best
}

fn fill(
    bag: &Bag,
    market: Market,
    tasks: &[usize],
    cores: &mut Vec<Vec<usize>>,
    best: &mut Option<PlannedVm>,
) {
    let Some((&task, rest)) = tasks.split_first() else {
        let markets = [market, Market::OnDemand];
        let distinct = if market == Market::OnDemand { 1 } else { 2 };
        for &market in &markets[..distinct] {
            for &ty in types(bag, market) {
                let vm = Vm {
                    ty,
                    market,
                    cores: cores.clone(),
                };
                consider(bag, vm, best);
            }
        }
        return;
    };
    for core in 0..=cores.len() {
        if core == cores.len() {
            cores.push(vec![task]);
        } else {
            cores[core].push(task);
        }
        fill(bag, market, rest, cores, best);
        cores[core].pop();
        if cores[core].is_empty() {
            cores.pop();
        }
    }
}

fn consider(bag: &Bag, vm: Vm, best: &mut Option<PlannedVm>) {
    let end = vm.end(bag);
    let limit = match vm.market {
        Market::Preemptible if vm.cores.iter().any(|core| core.len() > 1) => bag.limit(),
        _ => bag.end(),
    };
    if !vm.fits(bag) || vm.tasks().any(|t| bag.runtime(t, vm.ty).is_none()) || end > limit {
        return;
    }
    let least = best.as_ref().map_or(u64::MAX, |b| b.price.weighed(bag));
    if vm.price(bag) > least {
        return;
    }
    let planned = PlannedVm::new(bag, vm);
    if planned.price.weighed(bag) < least {
        *best = Some(planned);
    }
}
