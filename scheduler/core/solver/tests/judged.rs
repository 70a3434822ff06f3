//! Sets that another component judges, against the enumeration of all sets. The judge is any table
//! of verdicts, so that nothing can be assumed of it.

use ebbtide_solver::{
    AlternativesOutcome, Budgets, EvictionCost, Groups, Problem, SearchLimits, SetCost, SetScratch,
    solve_judged,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    /// Cost, age, what is freed of two classes, group.
    candidates: Vec<(u64, u64, [i64; 2], u32)>,
    deficits: Vec<[i64; 2]>,
    /// Every so many sets are refused, by a hash of the set.
    refused: u64,
    seed: u64,
    steps: Vec<u64>,
    /// At most so many victims of the first three candidates.
    budget: Option<u32>,
    cutoff: Option<u64>,
}

impl Case {
    fn accepts(&self, set: u32) -> bool {
        let all = (1 << self.candidates.len()) - 1;
        let hash = (u64::from(set) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        set == all || self.refused == 0 || hash % 4 >= self.refused
    }

    fn members(&self, set: u32) -> impl Iterator<Item = usize> + '_ {
        (0..self.candidates.len()).filter(move |at| set >> at & 1 == 1)
    }

    fn covers(&self, set: u32) -> bool {
        let freed = |class: usize| -> i64 {
            let members = self.members(set);
            members.map(|at| self.candidates[at].2[class]).sum()
        };
        let mut all = self.deficits.iter();
        all.any(|deficit| (0..2).all(|class| freed(class) >= deficit[class]))
    }

    /// Cost, count, age and UUIDs of a set; `None` beyond the budget or the cutoff.
    fn rank(&self, set: u32) -> Option<(u64, usize, u64, Vec<u128>)> {
        let of_budget = self.members(set).filter(|at| *at < 3).count();
        if self
            .budget
            .is_some_and(|budget| of_budget > budget as usize)
        {
            return None;
        }
        let mut counts = [0_usize; 2];
        let mut cost = 0;
        for at in self.members(set) {
            let (micros, _, _, group) = self.candidates[at];
            let count = &mut counts[group as usize];
            let step = self.steps.get(*count).or_else(|| self.steps.last());
            cost += micros + step.copied().unwrap_or(0);
            *count += 1;
        }
        let age = self.members(set).map(|at| self.candidates[at].1).sum();
        let uuids = self.members(set).map(|at| at as u128 + 1).collect();
        let within = self.cutoff.is_none_or(|cutoff| cost <= cutoff);
        within.then_some((cost, set.count_ones() as usize, age, uuids))
    }

    fn best(&self) -> Option<(u64, usize, u64, Vec<u128>)> {
        let sets = 0..1_u32 << self.candidates.len();
        let good = sets.filter(|set| self.covers(*set) && self.accepts(*set));
        good.filter_map(|set| self.rank(set)).min()
    }

    fn solve(&self, limits: SearchLimits) -> AlternativesOutcome {
        let costs: Vec<EvictionCost> = self
            .candidates
            .iter()
            .map(|candidate| EvictionCost::from_micros(candidate.0))
            .collect();
        let ages: Vec<u64> = self
            .candidates
            .iter()
            .map(|candidate| candidate.1)
            .collect();
        let resources: Vec<i64> = self.candidates.iter().flat_map(|c| c.2).collect();
        let of: Vec<u32> = self
            .candidates
            .iter()
            .map(|candidate| candidate.3)
            .collect();
        let uuids: Vec<u128> = (1..).take(costs.len()).collect();
        let keys: Vec<u32> = (0..costs.len())
            .map(|at| if at < 3 { 0 } else { ebbtide_solver::NO_BUDGET })
            .collect();
        let budget = self.budget.map(|budget| [budget]);
        let budgets = match &budget {
            Some(limits) => Budgets {
                limits,
                keys_per_candidate: 1,
                keys: &keys,
            },
            None => Budgets::NONE,
        };
        let steps: Vec<EvictionCost> = self
            .steps
            .iter()
            .map(|step| EvictionCost::from_micros(*step))
            .collect();
        let set_cost = match steps.is_empty() {
            true => SetCost::Additive,
            false => SetCost::Groups(Groups {
                of: &of,
                steps: &steps,
            }),
        };
        let deficits: Vec<&[i64]> = self.deficits.iter().map(<[i64; 2]>::as_slice).collect();
        let problem = Problem {
            deficit: &[0, 0],
            resources: &resources,
            costs: &costs,
            ages_ms: &ages,
            uuids: &uuids,
            budgets,
            cutoff: self.cutoff.map(EvictionCost::from_micros),
        };
        let mut judge =
            |set: &[u32]| self.accepts(set.iter().fold(0, |bits, member| bits | 1 << member));
        let mut scratch = SetScratch::new();
        solve_judged(
            &problem,
            &deficits,
            &set_cost,
            &mut scratch,
            limits,
            &mut judge,
        )
        .unwrap()
        .0
    }
}

fn case() -> impl Strategy<Value = Case> {
    let candidate = (
        0..4_u64,
        0..3_u64,
        prop::array::uniform2(0..3_i64),
        0..2_u32,
    );
    let steps = prop_oneof![Just(vec![]), Just(vec![0, 1, 3])];
    (
        prop::collection::vec(candidate, 0..8),
        prop::collection::vec(prop::array::uniform2(-1..5_i64), 1..3),
        0..4_u64,
        any::<u64>(),
        steps,
        prop::option::of(0..3_u32),
        prop::option::of(0..12_u64),
    )
        .prop_map(
            |(candidates, deficits, refused, seed, steps, budget, cutoff)| Case {
                candidates,
                deficits,
                refused,
                seed,
                steps,
                budget,
                cutoff,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_first_accepted_set_of_all_is_found(case in case()) {
        match (case.solve(SearchLimits::DEFAULT), case.best()) {
            (AlternativesOutcome::Solved(found), Some(best)) => {
                prop_assert!(found.optimal);
                let uuids: Vec<u128> = found.victims.iter().map(|at| u128::from(*at) + 1).collect();
                prop_assert_eq!((found.cost.micros(), uuids.len(), found.total_age_ms, uuids), best);
            }
            (AlternativesOutcome::NotBetter, None) => prop_assert!(case.cutoff.is_some()),
            (AlternativesOutcome::Infeasible(_), None) => {}
            (found, best) => prop_assert!(false, "{:?} and {:?}", found, best),
        }
    }

    #[test]
    fn a_cut_search_gives_an_accepted_set_or_says_that_it_is_open(case in case()) {
        let limits = SearchLimits { quick_nodes: 1, max_nodes: 1 };
        let best = case.best();
        match case.solve(limits) {
            AlternativesOutcome::Solved(found) => {
                let set = found.victims.iter().fold(0, |bits, member| bits | 1 << member);
                prop_assert!(case.accepts(set) && case.covers(set));
                let best = best.unwrap().0;
                prop_assert!(found.lower_bound.micros() <= best);
                prop_assert!(found.cost.micros() >= best);
                prop_assert!(!found.optimal || found.cost.micros() == best);
            }
            AlternativesOutcome::Undecided(bound) => {
                prop_assert!(best.is_none_or(|best| bound.micros() <= best.0));
            }
            AlternativesOutcome::NotBetter | AlternativesOutcome::Infeasible(_) => {
                prop_assert_eq!(best, None);
            }
        }
    }
}
