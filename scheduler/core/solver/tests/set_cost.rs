//! Set costs against the enumeration of all subsets: the surcharge by group, and any monotone
//! function.

use crate::common;

use common::{Candidate, Columns, Host, seeded};
use ebbtide_solver::{
    CoverResult, EvictionCost, Groups, NO_GROUP, SearchLimits, SetCost, SetScratch, Solution,
    SolverError, solve_set,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use rand::RngExt;
use std::cell::RefCell;

/// A host whose candidates belong to groups.
#[derive(Clone, Debug)]
struct Fair {
    host: Host,
    groups: Vec<u32>,
    /// Micro-units for the first, second, … victim of a group.
    steps: Vec<u64>,
}

/// Rank and UUIDs, which is what all answers are compared by.
type Ranked = (u64, usize, u64, Vec<u128>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Set {
        ranked: Ranked,
        optimal: bool,
        lower_bound: u64,
    },
    Undecided(u64),
    Other(&'static str),
}

impl Fair {
    fn surcharge(&self, set: &[u32]) -> u64 {
        let mut counts = std::collections::BTreeMap::new();
        set.iter()
            .filter(|&&v| self.groups[v as usize] != NO_GROUP)
            .map(|&v| {
                let count = counts.entry(self.groups[v as usize]).or_insert(0usize);
                *count += 1;
                self.steps
                    .get(*count - 1)
                    .or_else(|| self.steps.last())
                    .copied()
                    .unwrap_or(0)
            })
            .sum()
    }

    fn ranked(&self, set: &[u32]) -> Ranked {
        let member = |&v: &u32| &self.host.candidates[v as usize];
        let mut uuids: Vec<u128> = set.iter().map(|v| member(v).uuid).collect();
        uuids.sort_unstable();
        let micros: u64 = set.iter().map(|v| member(v).micros).sum();
        (
            micros + self.surcharge(set),
            set.len(),
            set.iter().map(|v| member(v).age_ms).sum(),
            uuids,
        )
    }

    fn found(&self, outcome: CoverResult<'_>) -> Found {
        match outcome {
            CoverResult::Solved(solution) => self.set(&solution),
            CoverResult::Undecided { lower_bound } => Found::Undecided(lower_bound.micros()),
            CoverResult::NotNeeded => Found::Other("not needed"),
            CoverResult::NotBetter => Found::Other("not better"),
            CoverResult::Infeasible(_) => Found::Other("infeasible"),
        }
    }

    fn set(&self, solution: &Solution<'_>) -> Found {
        let set: Vec<usize> = solution.victims.iter().map(|&v| v as usize).collect();
        assert!(self.host.suffices(&set), "{set:?} does not suffice");
        assert!(self.host.keeps_budgets(&set), "{set:?} breaks a budget");
        for left_out in 0..set.len() {
            let mut fewer = set.clone();
            fewer.remove(left_out);
            assert!(
                !self.host.suffices(&fewer),
                "{} is idle in {set:?}",
                set[left_out]
            );
        }
        let ranked = self.ranked(solution.victims);
        assert_eq!(
            solution.cost.micros(),
            ranked.0,
            "the cost that is said is not that of the set"
        );
        assert_eq!(solution.total_age_ms, ranked.2);
        Found::Set {
            ranked,
            optimal: solution.optimal,
            lower_bound: solution.lower_bound.micros(),
        }
    }

    fn by_groups(&self, scratch: &mut SetScratch, limits: SearchLimits) -> Found {
        let steps: Vec<EvictionCost> = self
            .steps
            .iter()
            .copied()
            .map(EvictionCost::from_micros)
            .collect();
        let columns = Columns::of(&self.host);
        let cost = SetCost::Groups(Groups {
            of: &self.groups,
            steps: &steps,
        });
        self.found(solve_set(&columns.problem(&self.host), &cost, scratch, limits).unwrap())
    }

    fn by_function(&self, scratch: &mut SetScratch, limits: SearchLimits) -> Found {
        let columns = Columns::of(&self.host);
        let surcharge = |set: &[u32]| EvictionCost::from_micros(self.surcharge(set));
        let cost = SetCost::Monotone(&surcharge);
        self.found(solve_set(&columns.problem(&self.host), &cost, scratch, limits).unwrap())
    }

    fn brute_force(&self) -> Found {
        if self.host.deficit.iter().all(|&deficit| deficit <= 0) {
            return Found::Other("not needed");
        }
        let n = self.host.candidates.len();
        assert!(n <= 14);
        let sets = (0u32..1 << n).map(|bits| {
            (0..n as u32)
                .filter(|i| bits >> i & 1 == 1)
                .collect::<Vec<u32>>()
        });
        let best = sets
            .filter(|set| {
                let set: Vec<usize> = set.iter().map(|&v| v as usize).collect();
                self.host.suffices(&set) && self.host.keeps_budgets(&set)
            })
            .map(|set| self.ranked(&set))
            .min();
        match (best, self.host.cutoff) {
            (None, None) => Found::Other("infeasible"),
            (None, Some(_)) => Found::Other("not better"),
            (Some(ranked), Some(cutoff)) if ranked.0 > cutoff => Found::Other("not better"),
            (Some(ranked), _) => Found::Set {
                lower_bound: ranked.0,
                ranked,
                optimal: true,
            },
        }
    }

    /// With a cutoff, "infeasible" and "not better" count as the same answer.
    fn agrees(&self, found: &Found, expected: &Found) -> bool {
        let none = |found: &Found| matches!(found, Found::Other("infeasible" | "not better"));
        found == expected || (self.host.cutoff.is_some() && none(found) && none(expected))
    }
}

#[derive(Clone, Copy)]
struct Shape {
    most: usize,
    amounts: i64,
    costs: u64,
    steps: u64,
    groups: u32,
    budgets: usize,
    cutoff: bool,
}

fn fair(shape: Shape) -> impl Strategy<Value = Fair> {
    (1..=3usize).prop_flat_map(move |classes| {
        let candidate = (
            prop::collection::vec(0..=shape.amounts, classes),
            0..=shape.costs,
            0..4u64,
            prop_oneof![1 => Just(NO_GROUP), 6 => 0..shape.groups],
            prop::collection::vec(0..shape.budgets.max(1) as u32, 0..=shape.budgets.min(2)),
        );
        (
            prop::collection::vec(candidate, 0..=shape.most),
            prop::collection::vec(0i64..=56, classes),
            prop::collection::vec(0u32..4, shape.budgets),
            prop::collection::vec(0..=shape.steps, 0..6),
            prop::collection::vec(0..=shape.costs * 4, 0..=usize::from(shape.cutoff)),
            any::<u64>(),
        )
            .prop_map(|(raw, shares, limits, mut steps, cutoff, salt)| {
                steps.sort_unstable();
                let groups = raw.iter().map(|raw| raw.3).collect();
                let candidates: Vec<Candidate> = raw
                    .into_iter()
                    .enumerate()
                    .map(|(at, (resources, micros, age_ms, _, budgets))| Candidate {
                        resources,
                        micros,
                        age_ms,
                        uuid: u128::from((at as u64 + 1).wrapping_mul(salt | 1)) << 64 | at as u128,
                        budgets,
                    })
                    .collect();
                let deficit = shares
                    .into_iter()
                    .enumerate()
                    .map(|(class, share)| {
                        candidates.iter().map(|c| c.resources[class]).sum::<i64>() * share / 64
                    })
                    .collect();
                let host = Host {
                    deficit,
                    candidates,
                    limits,
                    cutoff: cutoff.first().copied(),
                };
                Fair {
                    host,
                    groups,
                    steps,
                }
            })
    })
}

fn check(
    cases: u32,
    seed: u64,
    shape: Shape,
    property: impl Fn(&Fair, &mut SetScratch) -> Result<(), TestCaseError>,
) {
    let scratch = RefCell::new(SetScratch::new());
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&fair(shape), |fair| {
            property(&fair, &mut scratch.borrow_mut())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

const TIES: Shape = Shape {
    most: 11,
    amounts: 3,
    costs: 3,
    steps: 3,
    groups: 3,
    budgets: 0,
    cutoff: false,
};
const WIDE: Shape = Shape {
    most: 12,
    amounts: 1000,
    costs: 1_000_000,
    steps: 900_000,
    groups: 4,
    budgets: 0,
    cutoff: false,
};
const BUDGETS: Shape = Shape {
    most: 11,
    amounts: 5,
    costs: 9,
    steps: 12,
    groups: 3,
    budgets: 3,
    cutoff: true,
};

#[test]
fn no_sufficient_set_costs_less_with_its_surcharge() {
    for (seed, shape) in [(1, TIES), (2, WIDE), (3, BUDGETS)] {
        check(900, seed, shape, |fair, scratch| {
            let expected = fair.brute_force();
            let found = fair.by_groups(scratch, SearchLimits::DEFAULT);
            prop_assert!(
                fair.agrees(&found, &expected),
                "found {found:?}, expected {expected:?}"
            );
            Ok(())
        });
    }
}

#[test]
fn a_set_cost_given_as_a_function_is_exact_too() {
    for (seed, shape) in [(4, TIES), (5, WIDE), (6, BUDGETS)] {
        check(500, seed, shape, |fair, scratch| {
            let expected = fair.brute_force();
            let found = fair.by_function(scratch, SearchLimits::DEFAULT);
            prop_assert!(
                fair.agrees(&found, &expected),
                "found {found:?}, expected {expected:?}"
            );
            Ok(())
        });
    }
}

#[test]
fn where_nodes_run_out_the_gap_is_true() {
    for max_nodes in [1, 9, 40] {
        let limits = SearchLimits {
            quick_nodes: 4,
            max_nodes,
        };
        for (seed, shape) in [(7, TIES), (8, WIDE), (9, BUDGETS)] {
            check(300, seed, shape, |fair, scratch| {
                let expected = fair.brute_force();
                for found in [
                    fair.by_groups(scratch, limits),
                    fair.by_function(scratch, limits),
                ] {
                    match (&found, &expected) {
                        (
                            Found::Set {
                                ranked,
                                optimal,
                                lower_bound,
                            },
                            Found::Set { ranked: best, .. },
                        ) => {
                            prop_assert!(
                                *lower_bound <= best.0 && best.0 <= ranked.0,
                                "{found:?} for {best:?}"
                            );
                            prop_assert!(!optimal || ranked == best, "{found:?} is not {best:?}");
                        }
                        (Found::Undecided(bound), Found::Set { ranked: best, .. }) => {
                            prop_assert!(*bound <= best.0)
                        }
                        (Found::Undecided(_), Found::Other(_)) => {}
                        _ => prop_assert!(
                            fair.agrees(&found, &expected),
                            "found {found:?}, expected {expected:?}"
                        ),
                    }
                }
                Ok(())
            });
        }
    }
}

#[test]
fn the_order_of_the_candidates_does_not_matter_even_where_nodes_run_out() {
    for max_nodes in [1, 12, 1_000_000] {
        let limits = SearchLimits {
            quick_nodes: 16,
            max_nodes,
        };
        check(250, 10, WIDE, |fair, scratch| {
            let mut turned = fair.clone();
            turned.host.candidates.reverse();
            turned.groups.reverse();
            let found = fair.by_groups(scratch, limits);
            prop_assert_eq!(turned.by_groups(scratch, limits), found);
            let found = fair.by_function(scratch, limits);
            prop_assert_eq!(turned.by_function(scratch, limits), found);
            Ok(())
        });
    }
}

#[test]
fn more_room_never_costs_more_and_a_heavier_surcharge_never_costs_less() {
    let cost = |found: &Found| match found {
        Found::Set { ranked, .. } => Some(ranked.0),
        Found::Other("not needed") => Some(0),
        _ => None,
    };
    check(400, 11, WIDE, |fair, scratch| {
        let before = cost(&fair.by_groups(scratch, SearchLimits::DEFAULT));
        let mut roomier = fair.clone();
        roomier
            .host
            .deficit
            .iter_mut()
            .for_each(|deficit| *deficit = *deficit * 3 / 4);
        prop_assert!(
            cost(&roomier.by_groups(scratch, SearchLimits::DEFAULT)) <= before || before.is_none()
        );
        let mut dearer = fair.clone();
        dearer.steps.iter_mut().for_each(|step| *step *= 2);
        prop_assert!(cost(&dearer.by_groups(scratch, SearchLimits::DEFAULT)) >= before);
        Ok(())
    });
}

/// `n` candidates of usual flavors in `projects` projects, and a share of everything missing.
fn crowd(seed: u64, n: usize, projects: u32, percent: i64) -> Fair {
    let mut rng = seeded(seed);
    let mut host = common::mixed_flavors(&mut rng, n);
    host.deficit = (0..3)
        .map(|class| {
            host.candidates
                .iter()
                .map(|c| c.resources[class])
                .sum::<i64>()
                * percent
                / 100
        })
        .collect();
    let groups = (0..n).map(|_| rng.random_range(0..projects)).collect();
    Fair {
        host,
        groups,
        steps: (0..n as u64).map(|before| before * 600_000_000).collect(),
    }
}

#[test]
fn forty_candidates_of_several_projects_are_solved_exactly() {
    let mut most = 0;
    for seed in 0..10 {
        for (n, projects) in [(16, 4), (40, 3), (40, 8)] {
            for percent in [5, 15, 30] {
                let fair = crowd(seed, n, projects, percent);
                let mut scratch = SetScratch::new();
                let found = fair.by_groups(&mut scratch, SearchLimits::DEFAULT);
                assert!(
                    matches!(found, Found::Set { optimal: true, .. }),
                    "{n} of {projects}: {found:?}"
                );
                most = most.max(scratch.stats().nodes);
            }
        }
    }
    assert!(most <= 20_000, "{most} nodes");
}

#[test]
fn ten_thousand_candidates_answer_with_a_gap_at_worst() {
    let fair = crowd(1, 10_000, 50, 2);
    let mut scratch = SetScratch::new();
    let limits = SearchLimits {
        max_nodes: 30_000,
        ..SearchLimits::DEFAULT
    };
    let Found::Set {
        ranked,
        lower_bound,
        ..
    } = fair.by_groups(&mut scratch, limits)
    else {
        panic!("there is enough");
    };
    assert!(lower_bound <= ranked.0);
    assert!(
        lower_bound * 20 >= ranked.0 * 19,
        "{lower_bound} of {} is a poor bound",
        ranked.0
    );
}

#[test]
fn steps_that_fall_and_groups_of_another_length_are_refused() {
    let fair = crowd(1, 3, 1, 50);
    let columns = Columns::of(&fair.host);
    let steps = [EvictionCost::from_micros(2), EvictionCost::from_micros(1)];
    let solve = |groups| {
        solve_set(
            &columns.problem(&fair.host),
            &SetCost::Groups(groups),
            &mut SetScratch::new(),
            SearchLimits::DEFAULT,
        )
        .map(|_| ())
    };
    assert_eq!(
        solve(Groups {
            of: &[0, 0, 0],
            steps: &steps
        }),
        Err(SolverError::FallingStep { step: 2 })
    );
    assert!(matches!(
        solve(Groups {
            of: &[0],
            steps: &[]
        }),
        Err(SolverError::ColumnLength {
            column: "groups.of",
            ..
        })
    ));
}
