//! What holds for every bag and everything that can happen to it.

use crate::common;

use common::bags;
use ebbtide_bag::simulate::{Outage, OutageEnd, Scenario, simulate};
use ebbtide_bag::{
    Bag, BagError, Effort, ExecutionPolicy, Market, Method, OnHibernation, Plan, PlannedVm, Rules,
    Vm, critical, least_price, plan, plan_on_demand,
};
use proptest::prelude::*;

/// Outages as parts of the deadline: an instance, from when, for how long, how it ends.
fn outages() -> impl Strategy<Value = Vec<(usize, f64, f64, u8)>> {
    prop::collection::vec((0usize..64, 0.0f64..1.1, 0.0f64..0.6, 0u8..12), 0..40)
}

fn real(bag: &Bag, plan: &Plan, outages: &[(usize, f64, f64, u8)]) -> Vec<Outage> {
    let at = |part: f64| (bag.rules().deadline as f64 * part) as u64;
    let each = outages.iter().map(|&(vm, from, long, end)| Outage {
        vm: vm % plan.vms.len(),
        from: at(from),
        end: match end {
            0 => OutageEnd::Never,
            1 => OutageEnd::Interrupted,
            _ => OutageEnd::Resumes(at(from) + at(long)),
        },
    });
    each.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_deadline_is_met_whatever_hibernates_or_is_interrupted(
        bag in bags(24),
        outages in outages(),
        migrate in any::<bool>(),
        searched in any::<bool>(),
    ) {
        let effort = if searched { Effort::Search { rounds: 20, seed: 1 } } else { Effort::Greedy };
        let plan = plan(&bag, effort);
        prop_assert_eq!(plan.flaw(&bag), None);
        let scenario = Scenario {
            outages: real(&bag, &plan, &outages),
            policy: ExecutionPolicy {
                on_hibernation: if migrate { OnHibernation::Migrate } else { OnHibernation::Wait },
                copies: true,
            },
            ..Scenario::default()
        };
        let run = simulate(&bag, &plan, &scenario).unwrap();
        prop_assert!(run.met, "done after {} of {} s", run.makespan, bag.rules().deadline);
        prop_assert!(run.done.iter().all(|&done| done > 0));
    }

    #[test]
    fn a_quiet_run_costs_what_the_plan_says_and_ends_when_it_says(bag in bags(24)) {
        let plan = plan(&bag, Effort::Search { rounds: 20, seed: 1 });
        let run = simulate(&bag, &plan, &Scenario::default()).unwrap();
        prop_assert!(run.met);
        prop_assert!(run.makespan <= plan.makespan(&bag));
        // Copies may be done first and save slots of the instance: the plan's price is the most
        // that is paid.
        prop_assert!(run.price <= plan.price.quiet(), "{} {:?}", run.price, plan.price);
        if plan.price.copies == 0 {
            prop_assert_eq!(run.price, plan.price.primary);
            prop_assert_eq!(run.backups, 0);
        }
    }

    #[test]
    fn without_copies_one_outage_for_ever_before_the_latest_start_still_meets_the_deadline(
        bag in bags(16),
        vm in 0usize..64,
        part in 0.0f64..1.0,
    ) {
        let plan = plan(&bag, Effort::Greedy);
        let vm = vm % plan.vms.len();
        if let Some(latest) = plan.vms[vm].latest_start(&bag) {
            let from = (latest as f64 * part) as u64;
            let scenario = Scenario {
                outages: vec![Outage { vm, from, end: OutageEnd::Never }],
                policy: ExecutionPolicy::paper(OnHibernation::Wait),
                ..Scenario::default()
            };
            prop_assert!(simulate(&bag, &plan, &scenario).unwrap().met);
        }
    }

    #[test]
    fn no_plan_is_dearer_than_the_greedy_ones_or_cheaper_than_the_bound(bag in bags(20), seed in 0u64..100) {
        let greedy = plan(&bag, Effort::Greedy);
        let better = plan(&bag, Effort::Search { rounds: 30, seed });
        prop_assert!(better.price.weighed(&bag) <= greedy.price.weighed(&bag));
        let paper = plan(&bag, Effort::Literal);
        prop_assert!(better.price.weighed(&bag) <= paper.price.weighed(&bag));
        prop_assert!(better.bound <= better.price.quiet());
        prop_assert!(better.backup_bound <= better.price.backups);
        prop_assert_eq!(&better, &plan(&bag, Effort::Search { rounds: 30, seed }));
        let dear = plan_on_demand(&bag, Effort::Greedy);
        prop_assert_eq!(dear.flaw(&bag), None);
        prop_assert!(dear.vms.iter().all(|p| p.vm.market == Market::OnDemand && p.backups.is_empty()));
        let less = plan_on_demand(&bag, Effort::Search { rounds: 30, seed });
        prop_assert!(less.price.quiet() <= dear.price.quiet());
        prop_assert!(better.price.quiet() <= less.price.quiet() || bag.tasks().len() > 8);
    }

    #[test]
    fn the_paper_s_map_is_a_plan_without_flaw_and_its_deadline_is_met(bag in bags(20), vm in 0usize..64, part in 0.0f64..1.0) {
        let literal = plan(&bag, Effort::Literal);
        prop_assert_eq!(literal.flaw(&bag), None);
        prop_assert_eq!(literal.method, Method::Literal);
        let vm = vm % literal.vms.len();
        let from = (literal.vms[vm].vm.end(&bag) as f64 * part) as u64;
        let scenario = Scenario {
            outages: vec![Outage { vm, from, end: OutageEnd::Never }],
            ..Scenario::default()
        };
        prop_assert!(simulate(&bag, &literal, &scenario).unwrap().met);
    }

    #[test]
    fn the_smallest_deadline_can_be_met_and_a_second_less_cannot(bag in bags(12)) {
        let least = critical(&bag).unwrap().seconds;
        let rules = Rules { deadline: least, ..*bag.rules() };
        let tight = bag.with_rules(rules).unwrap();
        prop_assert_eq!(plan(&tight, Effort::Greedy).flaw(&tight), None);
        if least > 1 {
            let refused = bag.with_rules(Rules { deadline: least - 1, ..rules });
            let told = matches!(&refused, Err(BagError::Infeasible { seconds, .. }) if *seconds == least);
            prop_assert!(told, "{:?}", refused.err());
        }
    }
}

/// Every plan there is, task by task: on a core of an instance that is there, on a new core of it,
/// or on a new instance of any type and market.
fn cheapest(bag: &Bag, order: &[usize], vms: &mut Vec<Vm>, best: &mut u64) {
    let Some((&task, rest)) = order.split_first() else {
        let sound = vms.iter().all(|vm| {
            let queued = vm.cores.iter().any(|core| core.len() > 1);
            let limit = if vm.market == Market::Preemptible && queued {
                bag.limit()
            } else {
                bag.end()
            };
            vm.fits(bag) && vm.end(bag) <= limit
        });
        if sound {
            let price = vms
                .iter()
                .map(|vm| PlannedVm::new(bag, vm.clone()).price.quiet())
                .sum();
            *best = (*best).min(price);
        }
        return;
    };
    for vm in 0..vms.len() {
        for core in 0..=vms[vm].cores.len() {
            if core == vms[vm].cores.len() {
                vms[vm].cores.push(Vec::new());
            }
            vms[vm].cores[core].push(task);
            cheapest(bag, rest, vms, best);
            vms[vm].cores[core].pop();
            if vms[vm].cores[core].is_empty() {
                vms[vm].cores.pop();
            }
        }
    }
    for ty in 0..bag.types().len() {
        for market in [Market::Preemptible, Market::OnDemand] {
            vms.push(Vm {
                ty,
                market,
                cores: vec![vec![task]],
            });
            cheapest(bag, rest, vms, best);
            vms.pop();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn small_bags_are_solved_as_well_as_by_trying_everything(bag in bags(4)) {
        let mut order: Vec<usize> = (0..bag.tasks().len()).collect();
        order.sort_by_key(|&task| (std::cmp::Reverse(bag.tasks()[task].seconds), task));
        let mut best = u64::MAX;
        cheapest(&bag, &order, &mut Vec::new(), &mut best);
        let found = plan(&bag, Effort::usual(1));
        prop_assert!(found.price.quiet() <= best, "{} {best}", found.price.quiet());
        if found.method == Method::Exact {
            prop_assert_eq!(found.price.quiet(), best);
        }
        prop_assert!(least_price(&bag) <= best);
    }
}
