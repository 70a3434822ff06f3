//! What must hold of every answer, as sentences, on hosts too large for brute force.

use crate::common;

use common::{
    Answer, Candidate, HAND_OVER, Host, SEARCH_ONLY, distinct_vectors, mixed_flavors, seeded,
};
use ebbtide_solver::{Scratch, SearchLimits};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Hosts of many kinds; each property looks at all of them.
fn hosts() -> Vec<Host> {
    let mut hosts = Vec::new();
    for seed in 0..240 {
        let mut rng = seeded(seed);
        let size = rng.random_range(1..=40);
        let mut host = if seed % 3 == 0 {
            let (classes, share) = (rng.random_range(1..=5), rng.random_range(2..15));
            let top = [1, 3, 3_600_000_000][seed as usize / 3 % 3];
            distinct_vectors(&mut rng, size, classes, share, |rng, _| {
                rng.random_range(0..top)
            })
        } else {
            mixed_flavors(&mut rng, size)
        };
        if seed % 5 == 1 {
            for candidate in &mut host.candidates {
                candidate.micros = 1_000_000 * rng.random_range(1..=3u64);
                candidate.age_ms = 60_000 * rng.random_range(1..=2u64);
            }
        }
        if seed % 4 == 2 {
            for candidate in &mut host.candidates {
                candidate.budgets = vec![rng.random_range(0..4), 4 + rng.random_range(0..3u32)];
            }
            host.limits = (0..7).map(|_| rng.random_range(0..4)).collect();
        }
        hosts.push(host);
    }
    hosts
}

fn solved(host: &Host, scratch: &mut Scratch, limits: SearchLimits) -> Option<(Vec<usize>, u64)> {
    match host.solve(scratch, limits) {
        Answer::Solved {
            victims,
            micros,
            optimal,
            lower_bound,
            ..
        } => {
            assert!(optimal && lower_bound == micros);
            Some((victims, micros))
        }
        _ => None,
    }
}

/// Every solved host with its victims; fails if the hosts are so poor that nothing would be tested.
fn each_solved(mut check: impl FnMut(&Host, &[usize], u64, &mut Scratch)) {
    let mut scratch = Scratch::new();
    let mut count = 0;
    for host in hosts() {
        for limits in [SearchLimits::DEFAULT, SEARCH_ONLY, HAND_OVER] {
            if let Some((victims, micros)) = solved(&host, &mut scratch, limits) {
                check(&host, &victims, micros, &mut scratch);
                count += 1;
            }
        }
    }
    assert!(count > 400, "only {count} hosts were solved");
}

#[test]
fn the_victims_suffice_and_keep_the_budgets() {
    each_solved(|host, victims, _, _| {
        assert!(host.suffices(victims) && host.keeps_budgets(victims));
    });
}

#[test]
fn no_victim_can_be_left_out() {
    each_solved(|host, victims, _, _| {
        for &spared in victims {
            let rest: Vec<usize> = victims.iter().copied().filter(|&v| v != spared).collect();
            assert!(
                !host.suffices(&rest),
                "{spared} of {victims:?} dies for nothing on {host:?}"
            );
        }
    });
}

#[test]
fn no_victim_can_be_exchanged_for_a_better_one() {
    let rank = |c: &Candidate| (c.micros, c.age_ms, c.uuid);
    each_solved(|host, victims, _, _| {
        for (place, &victim) in victims.iter().enumerate() {
            for other in (0..host.candidates.len()).filter(|other| !victims.contains(other)) {
                if rank(&host.candidates[other]) < rank(&host.candidates[victim]) {
                    let mut exchanged = victims.to_vec();
                    exchanged[place] = other;
                    assert!(!(host.suffices(&exchanged) && host.keeps_budgets(&exchanged)));
                }
            }
        }
    });
}

#[test]
fn the_answer_does_not_depend_on_the_order_of_the_candidates() {
    let mut scratch = Scratch::new();
    let uuids = |host: &Host, answer: &Answer| match answer {
        Answer::Solved { victims, .. } => Ok(victims
            .iter()
            .map(|&v| host.candidates[v].uuid)
            .collect::<Vec<_>>()),
        other => Err(other.clone()),
    };
    for (seed, host) in hosts().into_iter().enumerate() {
        let mut rng = seeded(seed as u64);
        let mut shuffled = host.clone();
        for at in (1..shuffled.candidates.len()).rev() {
            shuffled.candidates.swap(at, rng.random_range(0..=at));
        }
        // The cut-off search, too: which nodes it sees must not depend on the order either.
        let few = SearchLimits {
            quick_nodes: 5,
            max_nodes: 3,
        };
        for limits in [SearchLimits::DEFAULT, SEARCH_ONLY, few] {
            let (left, right) = (
                host.solve(&mut scratch, limits),
                shuffled.solve(&mut Scratch::new(), limits),
            );
            assert_eq!(
                uuids(&host, &left),
                uuids(&shuffled, &right),
                "{limits:?} {host:?}"
            );
        }
    }
}

#[test]
fn a_smaller_deficit_never_costs_more() {
    each_solved(|host, _, micros, scratch| {
        for class in 0..host.deficit.len() {
            let mut easier = host.clone();
            easier.deficit[class] -= easier.deficit[class] / 3 + 1;
            match easier.solve(scratch, SearchLimits::DEFAULT) {
                Answer::Solved { micros: less, .. } => assert!(less <= micros),
                Answer::NotNeeded => {}
                other => panic!("an easier problem has no answer: {other:?}"),
            }
        }
    });
}

#[test]
fn one_more_candidate_never_makes_it_dearer() {
    each_solved(|host, _, micros, scratch| {
        let mut richer = host.clone();
        richer.candidates.push(Candidate {
            uuid: 1,
            ..host.candidates[0].clone()
        });
        match richer.solve(scratch, SearchLimits::DEFAULT) {
            Answer::Solved { micros: less, .. } => assert!(less <= micros),
            other => panic!("a richer host has no answer: {other:?}"),
        }
    });
}

#[test]
fn plain_enumeration_and_branch_and_bound_choose_the_same_victims() {
    let mut scratch = Scratch::new();
    let patient = SearchLimits {
        quick_nodes: 200_000,
        ..SearchLimits::DEFAULT
    };
    let mut compared = 0;
    for host in hosts() {
        let enumerated = host.solve(&mut scratch, patient);
        let stats = scratch.stats();
        if stats.nodes == 0 && stats.quick_nodes > 0 {
            assert_eq!(
                host.solve(&mut scratch, SEARCH_ONLY),
                enumerated,
                "{host:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 120, "only {compared} hosts could be enumerated");
}

#[test]
fn the_cheap_bound_never_exceeds_the_cost() {
    each_solved(|host, _, micros, _| assert!(host.lower_bound() <= micros));
}

#[test]
fn budgets_that_are_not_reached_change_nothing() {
    let mut scratch = Scratch::new();
    for mut host in hosts() {
        host.limits.clear();
        host.candidates.iter_mut().for_each(|c| c.budgets.clear());
        let free = host.solve(&mut scratch, SearchLimits::DEFAULT);
        let size = host.candidates.len() as u32;
        for (at, candidate) in host.candidates.iter_mut().enumerate() {
            candidate.budgets = vec![at as u32 % 3, 3];
        }
        host.limits = vec![size; 4];
        assert_eq!(host.solve(&mut scratch, SearchLimits::DEFAULT), free);
    }
}

#[test]
fn a_cutoff_at_the_cost_changes_nothing_and_one_below_hides_it() {
    each_solved(|host, victims, micros, scratch| {
        let mut compared = host.clone();
        compared.cutoff = Some(micros);
        let same = solved(&compared, scratch, SearchLimits::DEFAULT);
        assert_eq!(same, Some((victims.to_vec(), micros)));
        if micros > 0 {
            compared.cutoff = Some(micros - 1);
            assert_eq!(
                compared.solve(scratch, SearchLimits::DEFAULT),
                Answer::NotBetter
            );
            assert_eq!(compared.solve(scratch, SEARCH_ONLY), Answer::NotBetter);
        }
    });
}

/// A host on which the search is long.
fn hard_host(seed: u64) -> Host {
    let cost = |rng: &mut Pcg64Mcg, _: i64| 100_000_000 + rng.random_range(0..10_000_000);
    distinct_vectors(&mut seeded(seed), 40, 3, 40, cost)
}

#[test]
fn where_the_limit_cuts_the_search_the_set_is_sound_and_the_gap_is_true() {
    let mut scratch = Scratch::new();
    let mut cut = 0;
    for seed in 0..12 {
        let host = hard_host(seed);
        let (_, least) = solved(&host, &mut scratch, SearchLimits::DEFAULT).expect("solvable");
        for max_nodes in [0, 1, 10, 100] {
            for quick_nodes in [0, 20] {
                let limits = SearchLimits {
                    quick_nodes,
                    max_nodes,
                };
                let Answer::Solved {
                    victims,
                    micros,
                    optimal,
                    lower_bound,
                    ..
                } = host.solve(&mut scratch, limits)
                else {
                    panic!("without budgets there is always a set");
                };
                assert!(host.suffices(&victims));
                for &spared in &victims {
                    let rest: Vec<usize> =
                        victims.iter().copied().filter(|&v| v != spared).collect();
                    assert!(
                        !host.suffices(&rest),
                        "a member of a cut search's set is idle"
                    );
                }
                assert!(lower_bound <= least && least <= micros);
                // Relaxations are good on these hosts: the gap is small even at the first node.
                assert!(
                    (micros - lower_bound) * 4 <= micros,
                    "{lower_bound} of {micros}"
                );
                assert!(micros == least || !optimal);
                cut += u32::from(!optimal);
            }
        }
    }
    assert!(cut > 20, "only {cut} searches were cut");
}

#[test]
fn a_search_without_nodes_under_budgets_says_undecided_or_gives_a_sound_set() {
    let mut scratch = Scratch::new();
    let mut undecided = 0;
    for seed in 0..40 {
        let mut host = hard_host(seed);
        for (at, candidate) in host.candidates.iter_mut().enumerate() {
            candidate.budgets = vec![at as u32 % 5];
        }
        host.limits = vec![4, 4, 4, 3, 3];
        match host.solve(
            &mut scratch,
            SearchLimits {
                quick_nodes: 0,
                max_nodes: 0,
            },
        ) {
            Answer::Solved {
                victims,
                micros,
                lower_bound,
                ..
            } => {
                assert!(host.suffices(&victims) && host.keeps_budgets(&victims));
                assert!(lower_bound <= micros);
            }
            Answer::Undecided { lower_bound } => {
                undecided += 1;
                assert!(lower_bound > 0);
            }
            Answer::Infeasible { budgets: true } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(undecided > 0, "no search ran out of nodes");
}
