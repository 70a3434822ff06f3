//! Needs that can be met in several ways, and any number of resource classes: NUMA cells, PCI
//! pools.

use crate::common;

use common::{Answer, Candidate, Columns, Host, seeded};
use ebbtide_solver::{
    AlternativesOutcome, CoverResult, EvictionCost, Infeasible, Problem, Scratch, SearchLimits,
    SetCost, SetScratch, SolverError, solve, solve_any,
};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// VCPU, MEMORY_MB, DISK_GB; then for each of two cells PCPU, memory and huge pages; then two PCI
/// pools.
const CLASSES: usize = 11;
const CELL: [usize; 2] = [3, 6];
const POOL: [usize; 2] = [9, 10];

/// A host of two cells whose preemptible instances are pinned to one of them, some with a device.
fn numa_host(rng: &mut Pcg64Mcg, n: usize) -> Host {
    let candidates = (0..n).map(|at| {
        let mut resources = vec![0; CLASSES];
        let cpus = 1i64 << rng.random_range(0..3);
        resources[1] = cpus * 2048;
        resources[2] = cpus * 10;
        let cell = CELL[rng.random_range(0..2)];
        resources[cell] = cpus;
        resources[cell + 1] = cpus * 2048;
        resources[cell + 2] = rng.random_range(0..3);
        if rng.random_range(0..3) == 0 {
            resources[POOL[rng.random_range(0..2)]] = 1;
        }
        Candidate {
            resources,
            micros: rng.random_range(0..20),
            age_ms: rng.random_range(0..3),
            uuid: u128::from(rng.random::<u64>()) << 8 | at as u128,
            budgets: vec![],
        }
    });
    Host {
        deficit: vec![0; CLASSES],
        candidates: candidates.collect(),
        limits: vec![],
        cutoff: None,
    }
}

/// The same need in either cell, and with a device of either pool if `device`.
fn either_cell(host: &mut Host, rng: &mut Pcg64Mcg, device: bool) -> Vec<Vec<i64>> {
    let cpus = rng.random_range(1..5);
    let pools: &[Option<usize>] = if device { &[Some(0), Some(1)] } else { &[None] };
    let mut all = Vec::new();
    for cell in CELL {
        for pool in pools {
            let mut deficit = vec![0; CLASSES];
            deficit[1] = cpus * 2048;
            deficit[2] = -5;
            deficit[cell] = cpus;
            deficit[cell + 1] = cpus * 1024;
            deficit[cell + 2] = rng.random_range(0..2);
            if let Some(pool) = pool {
                deficit[POOL[*pool]] = 1;
            }
            all.push(deficit);
        }
    }
    host.deficit = all[0].clone();
    all
}

fn any(host: &Host, deficits: &[Vec<i64>], limits: SearchLimits) -> AlternativesOutcome {
    let columns = Columns::of(host);
    let deficits: Vec<&[i64]> = deficits.iter().map(Vec::as_slice).collect();
    solve_any(
        &columns.problem(host),
        &deficits,
        &SetCost::Additive,
        &mut SetScratch::new(),
        limits,
    )
    .unwrap()
}

/// The best over all alternatives, each by enumeration.
fn brute_force(host: &Host, deficits: &[Vec<i64>]) -> Option<(u64, usize, u64, Vec<u128>)> {
    let answers = deficits.iter().filter_map(|deficit| {
        let one = Host {
            deficit: deficit.clone(),
            ..host.clone()
        };
        match one.brute_force() {
            Answer::Solved {
                victims,
                micros,
                age_ms,
                ..
            } => {
                let uuids = victims.iter().map(|&v| host.candidates[v].uuid).collect();
                Some((micros, victims.len(), age_ms, uuids))
            }
            Answer::NotNeeded => Some((0, 0, 0, vec![])),
            _ => None,
        }
    });
    answers.min()
}

fn ranked(host: &Host, chosen: &ebbtide_solver::AlternativeCover) -> (u64, usize, u64, Vec<u128>) {
    let uuids = chosen
        .victims
        .iter()
        .map(|&v| host.candidates[v as usize].uuid)
        .collect();
    (
        chosen.cost.micros(),
        chosen.victims.len(),
        chosen.total_age_ms,
        uuids,
    )
}

#[test]
fn the_cheapest_set_over_all_cells_and_pools_is_found() {
    let mut found = [0; 2];
    for seed in 0..150 {
        let mut rng = seeded(seed);
        let n = rng.random_range(2..11);
        let mut host = numa_host(&mut rng, n);
        let deficits = either_cell(&mut host, &mut rng, seed % 3 == 0);
        if seed % 4 == 0 {
            host.limits = vec![1];
            for candidate in host.candidates.iter_mut().step_by(2) {
                candidate.budgets = vec![0];
            }
        }
        let outcome = any(&host, &deficits, SearchLimits::DEFAULT);
        let expected = brute_force(&host, &deficits);
        match &outcome {
            AlternativesOutcome::Solved(chosen) => {
                assert!(chosen.optimal && chosen.lower_bound == chosen.cost);
                let set: Vec<usize> = chosen.victims.iter().map(|&v| v as usize).collect();
                let covered = Host {
                    deficit: deficits[chosen.alternative].clone(),
                    ..host.clone()
                };
                assert!(covered.suffices(&set), "seed {seed}");
                assert_eq!(Some(ranked(&host, chosen)), expected, "seed {seed}");
                found[usize::from(chosen.alternative > 0)] += 1;
            }
            other => {
                assert!(
                    matches!(other, AlternativesOutcome::Infeasible(_)),
                    "seed {seed}: {other:?}"
                );
                assert_eq!(expected, None, "seed {seed}");
            }
        }
    }
    assert!(
        found.iter().all(|&times| times > 20),
        "both kinds of answers occur: {found:?}"
    );
}

#[test]
fn eleven_classes_at_once_are_exact() {
    for seed in 0..40 {
        let mut rng = seeded(seed);
        let mut host = numa_host(&mut rng, 11);
        // Everything is missing at once: both cells, both pools.
        host.deficit = (0..CLASSES)
            .map(|class| {
                host.candidates
                    .iter()
                    .map(|c| c.resources[class])
                    .sum::<i64>()
                    / 3
            })
            .collect();
        assert_eq!(
            host.solve(&mut Scratch::new(), SearchLimits::DEFAULT),
            host.brute_force(),
            "seed {seed}"
        );
    }
}

#[test]
fn where_nodes_run_out_the_gap_over_all_alternatives_is_true() {
    for seed in 0..60 {
        let mut rng = seeded(seed);
        let mut host = numa_host(&mut rng, 12);
        let deficits = either_cell(&mut host, &mut rng, true);
        let limits = SearchLimits {
            quick_nodes: 1,
            max_nodes: 1,
        };
        if let (AlternativesOutcome::Solved(chosen), Some(best)) =
            (any(&host, &deficits, limits), brute_force(&host, &deficits))
        {
            assert!(
                chosen.lower_bound.micros() <= best.0 && best.0 <= chosen.cost.micros(),
                "seed {seed}"
            );
            assert!(
                !chosen.optimal || ranked(&host, &chosen) == best,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn the_order_of_alternatives_decides_only_between_equals() {
    for seed in 0..60 {
        let mut rng = seeded(seed);
        let mut host = numa_host(&mut rng, 10);
        let mut deficits = either_cell(&mut host, &mut rng, true);
        let set = |outcome: &AlternativesOutcome| match outcome {
            AlternativesOutcome::Solved(chosen) => Some(ranked(&host, chosen)),
            _ => None,
        };
        let forwards = set(&any(&host, &deficits, SearchLimits::DEFAULT));
        deficits.reverse();
        assert_eq!(
            set(&any(&host, &deficits, SearchLimits::DEFAULT)),
            forwards,
            "seed {seed}"
        );
    }
}

#[test]
fn a_cell_that_has_room_needs_no_victims_and_impossible_ones_say_why() {
    let mut rng = seeded(5);
    let host = numa_host(&mut rng, 6);
    let (nothing, too_much) = (vec![0; CLASSES], vec![1 << 40; CLASSES]);
    let AlternativesOutcome::Solved(chosen) =
        any(&host, &[too_much.clone(), nothing], SearchLimits::DEFAULT)
    else {
        panic!("one has room")
    };
    assert_eq!(
        (chosen.alternative, chosen.victims.len(), chosen.cost),
        (1, 0, EvictionCost::ZERO)
    );
    assert_eq!(
        any(&host, &[too_much.clone(), too_much], SearchLimits::DEFAULT),
        AlternativesOutcome::Infeasible(Infeasible::NotEnough)
    );
    assert_eq!(
        any(&host, &[], SearchLimits::DEFAULT),
        AlternativesOutcome::Infeasible(Infeasible::NotEnough)
    );
    let columns = Columns::of(&host);
    let short = solve_any(
        &columns.problem(&host),
        &[&[1]],
        &SetCost::Additive,
        &mut SetScratch::new(),
        SearchLimits::DEFAULT,
    );
    assert!(matches!(
        short,
        Err(SolverError::ColumnLength {
            column: "deficits",
            ..
        })
    ));
}

#[test]
fn a_victim_of_the_wrong_cell_frees_nothing_there() {
    let pinned = |cell: usize, micros, uuid| {
        let mut resources = vec![0; CLASSES];
        resources[CELL[cell]] = 4;
        Candidate {
            resources,
            micros,
            age_ms: 0,
            uuid,
            budgets: vec![],
        }
    };
    let mut host = Host {
        deficit: vec![0; CLASSES],
        candidates: vec![pinned(0, 1, 1), pinned(1, 2, 2), pinned(0, 5, 3)],
        ..Host::default()
    };
    host.deficit[CELL[1]] = 4;
    let columns = Columns::of(&host);
    let problem: Problem<'_> = columns.problem(&host);
    let mut scratch = Scratch::new();
    let CoverResult::Solved(solution) =
        solve(&problem, &mut scratch, SearchLimits::DEFAULT).unwrap()
    else {
        panic!("there is enough")
    };
    assert_eq!(solution.victims, [1]);
}
