//! Hosts on which a careless search explodes. Work is counted in nodes, which do not depend on the
//! machine; the ceilings are about three times what was measured.

use crate::common;

use common::{Answer, Candidate, Host, distinct_vectors, mixed_flavors, seeded};
use ebbtide_solver::{Scratch, SearchLimits, Stats};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Solves to the end and answers the work.
fn work(host: &Host) -> Stats {
    let mut scratch = Scratch::new();
    match host.solve(&mut scratch, SearchLimits::DEFAULT) {
        Answer::Solved {
            victims, optimal, ..
        } => {
            assert!(optimal, "out of nodes: {:?}", scratch.stats());
            assert!(host.suffices(&victims) && host.keeps_budgets(&victims));
        }
        other => panic!("{other:?}"),
    }
    scratch.stats()
}

fn assert_at_most(host: &Host, nodes: u64) {
    let stats = work(host);
    assert!(stats.nodes <= nodes, "{stats:?} is more than {nodes} nodes");
}

/// All of them of a few flavors; `percent` of everything is missing.
fn crowd(size: usize, percent: i64, change: impl Fn(&mut Candidate)) -> Host {
    let mut host = mixed_flavors(&mut seeded(7), size);
    host.candidates.iter_mut().for_each(change);
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
    host
}

#[test]
fn ten_thousand_candidates_of_a_few_flavors_take_few_nodes() {
    for percent in [1, 10, 50] {
        assert_at_most(&crowd(10_000, percent, |_| ()), 3_000);
    }
}

#[test]
fn ten_thousand_candidates_that_all_cost_the_same_take_few_nodes() {
    for percent in [1, 10, 50] {
        assert_at_most(&crowd(10_000, percent, |c| c.micros = 1_000_000), 100);
    }
}

#[test]
fn ten_thousand_candidates_equal_in_all_but_uuid_and_flavor_take_few_nodes() {
    for percent in [1, 10, 50] {
        let host = crowd(10_000, percent, |c| (c.micros, c.age_ms) = (0, 0));
        assert_at_most(&host, 100);
    }
}

#[test]
fn sixteen_thousand_identical_candidates_are_cut_by_uuid() {
    let mut host = crowd(ebbtide_solver::MAX_CANDIDATES, 10, |c| {
        (c.micros, c.age_ms) = (5, 5);
        c.resources = vec![1, 2, 3];
    });
    host.deficit = vec![100, 1, 1];
    let mut scratch = Scratch::new();
    let Answer::Solved { victims, .. } = host.solve(&mut scratch, SearchLimits::DEFAULT) else {
        panic!("there is enough");
    };
    let mut uuids: Vec<u128> = host.candidates.iter().map(|c| c.uuid).collect();
    uuids.sort_unstable();
    let chosen: Vec<u128> = victims.iter().map(|&v| host.candidates[v].uuid).collect();
    assert_eq!(chosen, uuids[..100]);
}

#[test]
fn ten_thousand_distinct_vectors_take_few_nodes_where_costs_differ() {
    let cost = |rng: &mut Pcg64Mcg, _: i64| rng.random_range(0..3_600_000_000);
    let mut host = distinct_vectors(&mut seeded(1), 10_000, 3, 1, cost);
    host.deficit = vec![8_000, 8_000, 8_000];
    assert_at_most(&host, 20_000);
}

#[test]
fn forty_distinct_vectors_with_nearly_equal_costs_end() {
    for (classes, nodes) in [(1, 300), (2, 20_000), (3, 100_000)] {
        for seed in 0..4 {
            let cost = |rng: &mut Pcg64Mcg, _: i64| 100_000_000 + rng.random_range(0..10_000_000);
            let host = distinct_vectors(&mut seeded(seed), 40, classes, 30, cost);
            assert_at_most(&host, nodes);
        }
    }
}

#[test]
fn forty_distinct_vectors_without_any_cost_or_age_end() {
    for classes in [1, 3, 5] {
        for share in [10, 30, 60] {
            let mut host = distinct_vectors(&mut seeded(3), 40, classes, share, |_, _| 0);
            host.candidates.iter_mut().for_each(|c| c.age_ms = 0);
            assert_at_most(&host, 5_000);
        }
    }
}

#[test]
fn a_host_at_the_edge_of_the_numbers_is_solved_without_overflow() {
    let candidate = |at: u128, amount, micros| Candidate {
        resources: vec![amount, i64::MAX],
        micros,
        age_ms: (1 << 50) / 4 - 1,
        uuid: at,
        budgets: vec![],
    };
    let quarter = (1 << 60) / 4;
    let host = Host {
        deficit: vec![i64::MAX, i64::MAX],
        candidates: vec![
            candidate(1, i64::MAX - 1, quarter),
            candidate(2, i64::MAX / 2, quarter),
            candidate(3, i64::MAX / 2 + 1, quarter - 1),
            candidate(4, 1, quarter),
        ],
        ..Host::default()
    };
    let expected = host.brute_force();
    assert!(
        matches!(&expected, Answer::Solved { victims, .. } if *victims == [0, 2]),
        "{expected:?}"
    );
    for limits in [
        SearchLimits::DEFAULT,
        common::SEARCH_ONLY,
        common::HAND_OVER,
    ] {
        assert_eq!(host.solve(&mut Scratch::new(), limits), expected);
    }
}

#[test]
fn twelve_missing_resource_classes_are_solved() {
    let cost = |rng: &mut Pcg64Mcg, _: i64| rng.random_range(1..1_000_000_000);
    for seed in 0..20 {
        let host = distinct_vectors(&mut seeded(seed), 12, 12, 25, cost);
        assert_eq!(
            host.solve(&mut Scratch::new(), SearchLimits::DEFAULT),
            host.brute_force()
        );
    }
}
