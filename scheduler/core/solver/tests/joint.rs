//! Several instances on several hosts, against the enumeration of all victim sets of all hosts
//! together.

use crate::common;

use common::Candidate;
use common::cloud::{Cloud, Place, PreferredHosts, saturated};
use ebbtide_solver::{
    EvictionCost, Hosts, JointOutcome, JointProblem, MAX_JOINT, Scratch, SearchLimits, SolverError,
    solve, solve_joint,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Resources, cost, age, group and budgets of a candidate.
type Raw = (Vec<i64>, u64, u64, u32, Vec<u32>);

#[derive(Clone, Copy)]
struct Shape {
    hosts: usize,
    candidates: usize,
    count: u32,
    amounts: i64,
    costs: u64,
    budgets: usize,
    steps: u64,
}

fn cloud(shape: Shape) -> impl Strategy<Value = Cloud> {
    (1..=2usize).prop_flat_map(move |classes| {
        let candidate = (
            prop::collection::vec(0..=shape.amounts, classes),
            0..=shape.costs,
            0..3u64,
            0..3u32,
            prop::collection::vec(0..shape.budgets.max(1) as u32, 0..=shape.budgets.min(2)),
        );
        let place = (
            prop::collection::vec(-1i64..=shape.amounts / 2, classes),
            1..=shape.count,
            prop::collection::vec(candidate, 0..=shape.candidates),
        );
        (
            prop::collection::vec(place, 1..=shape.hosts),
            prop::collection::vec(1..=shape.amounts, classes),
            1..=shape.count,
            prop::collection::vec(0u32..4, shape.budgets),
            prop::collection::vec(0..=shape.steps, usize::from(shape.steps > 0) * 3),
            any::<u64>(),
        )
            .prop_map(|(raw, need, count, limits, mut steps, salt)| {
                steps.sort_unstable();
                let mut number = 0u64;
                let mut place = |(free, most, raw): (Vec<i64>, u32, Vec<_>)| {
                    let raw: Vec<Raw> = raw;
                    let groups = raw.iter().map(|raw| raw.3).collect();
                    let candidates =
                        raw.into_iter()
                            .map(|(resources, micros, age_ms, _, budgets)| {
                                number += 1;
                                let uuid = u128::from(number.wrapping_mul(salt | 1)) << 64
                                    | u128::from(number);
                                Candidate {
                                    resources,
                                    micros,
                                    age_ms,
                                    uuid,
                                    budgets,
                                }
                            });
                    Place {
                        free,
                        most,
                        candidates: candidates.collect(),
                        groups,
                    }
                };
                Cloud {
                    places: raw.into_iter().map(&mut place).collect(),
                    need,
                    count,
                    limits,
                    steps,
                }
            })
    })
}

fn check(
    cases: u32,
    seed: u64,
    shape: Shape,
    property: impl Fn(&Cloud) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&cloud(shape), |cloud| property(&cloud))
        .unwrap_or_else(|failure| panic!("{failure}"));
}

const FREE: Shape = Shape {
    hosts: 4,
    candidates: 3,
    count: 4,
    amounts: 4,
    costs: 6,
    budgets: 0,
    steps: 0,
};
const WIDE: Shape = Shape {
    hosts: 3,
    candidates: 4,
    count: 4,
    amounts: 100,
    costs: 1000,
    budgets: 0,
    steps: 0,
};
const BUDGETS: Shape = Shape {
    hosts: 3,
    candidates: 4,
    count: 4,
    amounts: 4,
    costs: 9,
    budgets: 3,
    steps: 0,
};
const STEPS: Shape = Shape {
    hosts: 3,
    candidates: 4,
    count: 4,
    amounts: 4,
    costs: 9,
    budgets: 0,
    steps: 9,
};
const ALL: Shape = Shape {
    hosts: 3,
    candidates: 4,
    count: 3,
    amounts: 30,
    costs: 90,
    budgets: 2,
    steps: 60,
};

fn agrees_with_brute_force(cases: u32, seed: u64, shape: Shape) {
    check(cases, seed, shape, |cloud| {
        let (outcome, _) = cloud.solve(SearchLimits::DEFAULT);
        let found = cloud.checked(&outcome).map(|(price, _)| price);
        let expected = cloud.brute_force();
        prop_assert_eq!(found, expected, "{:?}", outcome);
        match outcome {
            JointOutcome::Solved(solution) => prop_assert!(solution.optimal),
            other => prop_assert_eq!(other, JointOutcome::Infeasible),
        }
        Ok(())
    });
}

#[test]
fn no_choice_of_hosts_and_victims_costs_less() {
    agrees_with_brute_force(900, 1, FREE);
    agrees_with_brute_force(600, 2, WIDE);
}

#[test]
fn budgets_hold_over_all_hosts_together_and_nothing_within_them_costs_less() {
    agrees_with_brute_force(1200, 3, BUDGETS);
}

#[test]
fn a_surcharge_counts_over_all_hosts_together_and_nothing_costs_less_with_it() {
    agrees_with_brute_force(900, 4, STEPS);
    agrees_with_brute_force(900, 5, ALL);
}

#[test]
fn where_nodes_run_out_the_gap_is_true() {
    for (seed, max_nodes) in [(6, 1), (7, 20), (8, 100)] {
        check(300, seed, ALL, |cloud| {
            let (outcome, _) = cloud.solve(SearchLimits {
                quick_nodes: 2,
                max_nodes,
            });
            let expected = cloud.brute_force();
            let found = cloud.checked(&outcome).map(|(price, _)| price);
            match (&outcome, expected) {
                (JointOutcome::Solved(solution), Some(best)) => {
                    prop_assert!(solution.lower_bound.micros() <= best.0 && Some(best) <= found);
                    prop_assert!(!solution.optimal || found == Some(best));
                }
                (JointOutcome::Undecided { lower_bound }, best) => {
                    prop_assert!(best.is_none_or(|best| lower_bound.micros() <= best.0));
                }
                (JointOutcome::Infeasible, None) => {}
                other => prop_assert!(false, "{other:?}"),
            }
            Ok(())
        });
    }
}

#[test]
fn the_order_of_the_candidates_does_not_matter() {
    for (seed, max_nodes) in [(9, 20), (10, 1_000_000)] {
        check(300, seed, ALL, |cloud| {
            let mut turned = cloud.clone();
            for place in &mut turned.places {
                place.candidates.reverse();
                place.groups.reverse();
            }
            let limits = SearchLimits {
                max_nodes,
                ..SearchLimits::DEFAULT
            };
            let uuids = |cloud: &Cloud| {
                let checked = cloud.checked(&cloud.solve(limits).0);
                checked.map(|(price, (counts, victims))| {
                    let mut uuids: Vec<u128> =
                        victims.iter().map(|&v| cloud.candidate(v).uuid).collect();
                    uuids.sort_unstable();
                    (price, counts, uuids)
                })
            };
            prop_assert_eq!(uuids(cloud), uuids(&turned));
            Ok(())
        });
    }
}

#[test]
fn among_equals_the_preferred_host_gets_as_many_as_possible() {
    check(500, 11, FREE, |cloud| {
        let Some((price, (counts, _))) = cloud.checked(&cloud.solve(SearchLimits::DEFAULT).0)
        else {
            return Ok(());
        };
        let mut fixed = cloud.clone();
        for host in 0..cloud.places.len() {
            let mine = counts.get(&host).copied().unwrap_or(0);
            // With one more on this host, and those before it as they are, it must cost more or be
            // impossible.
            if mine < cloud.places[host].most {
                prop_assert!(
                    forced(&fixed, host, mine + 1).is_none_or(|other| other > price),
                    "host {host} of {counts:?}"
                );
            }
            fixed.places[host].most = mine;
        }
        Ok(())
    });
}

/// The least price if a host gets exactly so many, by trying all counts of the others: one solve a
/// host.
fn forced(cloud: &Cloud, host: usize, count: u32) -> Option<(u64, usize)> {
    fn curve(cloud: &Cloud, host: usize, count: u32) -> Option<(u64, usize)> {
        let mut asked = PreferredHosts::new(cloud);
        let loaded = asked.load(host, count)?;
        match solve(&loaded.problem, &mut Scratch::new(), SearchLimits::DEFAULT).unwrap() {
            ebbtide_solver::CoverResult::NotNeeded => Some((0, 0)),
            ebbtide_solver::CoverResult::Solved(s) => Some((s.cost.micros(), s.victims.len())),
            _ => None,
        }
    }
    // Hosts before `host` are fixed by `most`; they take exactly that.
    let mut best: Vec<Option<(u64, usize)>> = vec![None; cloud.count as usize + 1];
    best[0] = Some((0, 0));
    for at in 0..cloud.places.len() {
        let choices: Vec<u32> = match at.cmp(&host) {
            std::cmp::Ordering::Less => vec![cloud.places[at].most],
            std::cmp::Ordering::Equal => vec![count],
            std::cmp::Ordering::Greater => (0..=cloud.places[at].most).collect(),
        };
        let mut next = vec![None; best.len()];
        for (placed, before) in best.iter().enumerate() {
            let Some(before) = before else { continue };
            for &count in &choices {
                let more = if count == 0 {
                    Some((0, 0))
                } else {
                    curve(cloud, at, count)
                };
                if let (Some(more), true) = (more, placed + (count as usize) < next.len()) {
                    let sum = (before.0 + more.0, before.1 + more.1);
                    let slot: &mut Option<(u64, usize)> = &mut next[placed + count as usize];
                    *slot = Some(slot.map_or(sum, |slot| slot.min(sum)));
                }
            }
        }
        best = next;
    }
    best[cloud.count as usize]
}

#[test]
fn more_room_never_costs_more() {
    check(400, 12, ALL, |cloud| {
        let price = |cloud: &Cloud| {
            cloud
                .checked(&cloud.solve(SearchLimits::DEFAULT).0)
                .map(|(price, _)| price)
        };
        let before = price(cloud);
        let mut roomier = cloud.clone();
        roomier.places[0]
            .free
            .iter_mut()
            .for_each(|free| *free += 2);
        let after = price(&roomier);
        prop_assert!(
            before.is_none() || (after.is_some() && after <= before),
            "{before:?} became {after:?}"
        );
        Ok(())
    });
}

#[test]
fn most_of_a_thousand_hosts_are_never_solved() {
    let cloud = saturated(1, 1000, 16, 4);
    let (outcome, loads) = cloud.solve(SearchLimits::DEFAULT);
    assert!(matches!(&outcome, JointOutcome::Solved(solution) if solution.optimal));
    assert!(loads < 600, "{loads} points were solved");
}

#[test]
fn fairness_over_a_hundred_hosts_is_answered_with_a_small_gap_at_worst() {
    let mut cloud = saturated(2, 100, 16, 6);
    cloud.steps = (0..10).map(|before| before * 600_000_000).collect();
    let (outcome, _) = cloud.solve(SearchLimits {
        max_nodes: 50_000,
        ..SearchLimits::DEFAULT
    });
    let JointOutcome::Solved(solution) = &outcome else {
        panic!("{outcome:?}")
    };
    cloud.checked(&outcome);
    assert!(
        solution.lower_bound.micros() * 2 >= solution.cost.micros(),
        "{solution:?}"
    );
}

#[test]
fn malformed_joint_problems_are_refused() {
    let cloud = saturated(1, 2, 3, 1);
    let solve = |count, steps: &[EvictionCost]| {
        let problem = JointProblem {
            count,
            limits: &[],
            steps,
        };
        solve_joint(
            &problem,
            &mut PreferredHosts::new(&cloud),
            SearchLimits::DEFAULT,
        )
        .map(|_| ())
    };
    assert_eq!(solve(0, &[]), Err(SolverError::JointCount { count: 0 }));
    assert_eq!(
        solve(MAX_JOINT + 1, &[]),
        Err(SolverError::JointCount {
            count: MAX_JOINT + 1
        })
    );
    let falling = [EvictionCost::from_micros(2), EvictionCost::from_micros(1)];
    assert_eq!(
        solve(1, &falling),
        Err(SolverError::FallingStep { step: 2 })
    );
}
