//! Local search: a few instances are taken apart, and their tasks put together anew in some other
//! way; what is cheaper stays.

use super::pack::{Recipe, pack, recipes, types};
use crate::backup::Backup;
use crate::greedy::in_order;
use crate::input::Bag;
use crate::map::{Market, Vm, sum};
use crate::plan::{Method, Plan, PlanPrice, PlannedVm};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::HashSet;

/// Instances that are taken apart at once.
const FEWEST: usize = 1;
const MOST: usize = 4;
/// Within a thousandth of the bound there is nothing worth the time.
const ENOUGH: f64 = 1.001;
/// Ways to put them together that are tried in a round.
const TRIES: usize = 3;

pub(super) fn improve(bag: &Bag, market: Market, start: Plan, rounds: u32, seed: u64) -> Plan {
    let mut chance = Pcg64Mcg::seed_from_u64(seed);
    let recipes = recipes(bag, market);
    let mut method = start.method;
    let bound = start.bound;
    let mut vms = start.vms;
    for _ in 0..rounds {
        if recipes.is_empty() || vms.is_empty() {
            break;
        }
        let now = sum(vms.iter().map(|vm| vm.price.quiet()));
        if now as f64 <= bound as f64 * ENOUGH && bag.rules().risk == 0.0 {
            break;
        }
        let most = MOST.min(vms.len());
        let some = chance.random_range(FEWEST.min(most)..=most);
        let mut apart = Vec::with_capacity(some);
        while apart.len() < some {
            let vm = chance.random_range(0..vms.len());
            if !apart.contains(&vm) {
                apart.push(vm);
            }
        }
        apart.sort_unstable();
        let before = apart
            .iter()
            .fold(PlanPrice::default(), |sum, &vm| sum + vms[vm].price);
        let tasks = in_order(bag, apart.iter().flat_map(|&vm| vms[vm].vm.tasks()));
        let found = (0..TRIES)
            .map(|_| together(bag, market, &recipes, &tasks, &vms, &apart, &mut chance))
            .filter(|vms| quick_price(bag, vms) <= before.weighed(bag))
            .map(|vms| {
                let planned: Vec<PlannedVm> =
                    vms.into_iter().map(|vm| PlannedVm::new(bag, vm)).collect();
                let price = planned
                    .iter()
                    .fold(PlanPrice::default(), |sum, p| sum + p.price);
                (price.weighed(bag), planned)
            })
            .min_by_key(|(price, planned)| (*price, planned.len()));
        let Some((price, planned)) = found else {
            continue;
        };
        // Equals are taken, too: they lead out of valleys.
        if price <= before.weighed(bag) {
            if price < before.weighed(bag) {
                method = Method::Search;
            }
            for vm in apart.into_iter().rev() {
                vms.swap_remove(vm);
            }
            vms.extend(planned);
        }
    }
    Plan::new(bag, vms, method)
}

fn quick_price(bag: &Bag, vms: &[Vm]) -> u64 {
    sum(vms.iter().map(|vm| vm.price(bag)))
}

/// One other way to run some tasks.
fn together(
    bag: &Bag,
    market: Market,
    recipes: &[Recipe],
    tasks: &[usize],
    vms: &[PlannedVm],
    apart: &[usize],
    chance: &mut impl Rng,
) -> Vec<Vm> {
    let recipe = |chance: &mut dyn Rng| recipes[chance.random_range(0..recipes.len())];
    match chance.random_range(0..4) {
        // The same tasks on another type, core by core.
        0 => {
            let types = types(bag, market);
            let other = types[chance.random_range(0..types.len())];
            let changed: Vec<Vm> = apart
                .iter()
                .map(|&vm| Vm {
                    ty: other,
                    market,
                    cores: vms[vm].vm.cores.clone(),
                })
                .collect();
            let usable = |vm: &Vm| {
                vm.fits(bag)
                    && vm.tasks().all(|task| bag.runtime(task, vm.ty).is_some())
                    && vm.end(bag) <= bag.end()
            };
            if changed.iter().all(usable) {
                changed
            } else {
                pack(bag, market, recipe(chance), tasks)
            }
        }
        // Long tasks in one way, short ones in another.
        1 if tasks.len() > 1 => {
            let mut long = tasks.to_vec();
            long.sort_by_key(|&task| std::cmp::Reverse((bag.tasks()[task].seconds, task)));
            let cut = chance.random_range(1..tasks.len());
            let short = long.split_off(cut);
            let mut vms = pack(bag, market, recipe(chance), &in_order(bag, long));
            vms.extend(pack(bag, market, recipe(chance), &in_order(bag, short)));
            vms
        }
        2 if tasks.len() > 1 && apart.iter().any(|&vm| vms[vm].price.copies > 0) => {
            on_demand_where_copied(bag, market, recipe(chance), tasks, vms, apart)
        }
        _ => pack(bag, market, recipe(chance), tasks),
    }
}

/// Tasks that have a copy in any case run on demand from the begin, the others as they will.
fn on_demand_where_copied(
    bag: &Bag,
    market: Market,
    recipe: Recipe,
    tasks: &[usize],
    vms: &[PlannedVm],
    apart: &[usize],
) -> Vec<Vm> {
    let backups = apart.iter().flat_map(|&vm| &vms[vm].backups);
    let copied: HashSet<usize> = backups
        .filter(|backup| backup.copies)
        .flat_map(Backup::tasks)
        .collect();
    let (dear, cheap): (Vec<usize>, Vec<usize>) =
        tasks.iter().partition(|task| copied.contains(task));
    let mut found = pack(bag, market, recipe, &cheap);
    let slots = (bag.end() / bag.rules().slot).max(1);
    let fastest = dear.first().map_or(recipe.ty, |&task| bag.fastest(task).1);
    let recipe = Recipe { ty: fastest, slots };
    found.extend(pack(bag, Market::OnDemand, recipe, &dear));
    found
}
