//! The optimal cost against a mixed-integer programme solved by another solver (microlp), up to 40
//! candidates.
//!
//! The programme knows costs only, so this compares costs; the order of equals is the brute force's
//! part.

use crate::common;

use common::{
    Answer, Candidate, HAND_OVER, Host, SEARCH_ONLY, distinct_vectors, mixed_flavors, seeded,
};
use ebbtide_solver::{Scratch, SearchLimits};
use good_lp::{
    Expression, ResolutionError, Solution, SolverModel, constraint, microlp, variable, variables,
};
use rand::RngExt;

/// The least cost in micro-units, or `None` if there is no sufficient set within the budgets.
fn least_cost(host: &Host) -> Option<u64> {
    let mut variables = variables!();
    let taken: Vec<_> = host
        .candidates
        .iter()
        .map(|_| variables.add(variable().binary()))
        .collect();
    let sum = |weight: &dyn Fn(&Candidate) -> f64| -> Expression {
        host.candidates
            .iter()
            .zip(&taken)
            .map(|(c, &x)| weight(c) * x)
            .sum()
    };
    // In units: the solver's tolerances are made for numbers near one.
    let mut model = variables
        .minimise(sum(&|c| c.micros as f64 / 1e6))
        .using(microlp);
    for (class, &deficit) in host.deficit.iter().enumerate() {
        if deficit > 0 {
            let share = |c: &Candidate| c.resources[class] as f64 / deficit as f64;
            model = model.with(constraint!(sum(&share) >= 1.0));
        }
    }
    for (key, &limit) in host.limits.iter().enumerate() {
        let member = |c: &Candidate| f64::from(u8::from(c.budgets.contains(&(key as u32))));
        model = model.with(constraint!(sum(&member) <= f64::from(limit)));
    }
    match model.solve() {
        Ok(solution) => {
            // Only the choice is the other solver's; the sum is exact.
            let set: Vec<usize> = (0..taken.len())
                .filter(|&i| solution.value(taken[i]) > 0.5)
                .collect();
            assert!(
                host.suffices(&set) && host.keeps_budgets(&set),
                "the oracle is wrong: {set:?}"
            );
            Some(set.iter().map(|&i| host.candidates[i].micros).sum())
        }
        Err(ResolutionError::Infeasible) => None,
        Err(error) => panic!("the oracle failed: {error}"),
    }
}

fn compare(host: &Host, scratch: &mut Scratch) {
    let expected = least_cost(host);
    for limits in [SearchLimits::DEFAULT, SEARCH_ONLY, HAND_OVER] {
        let found = host.solve(scratch, limits);
        match (&found, expected) {
            (
                Answer::Solved {
                    victims,
                    micros,
                    optimal: true,
                    ..
                },
                Some(least),
            ) => {
                assert!(
                    host.suffices(victims) && host.keeps_budgets(victims),
                    "{found:?}"
                );
                assert_eq!(*micros, least, "{limits:?}: {found:?} on {host:?}");
                assert!(host.lower_bound() <= least);
            }
            (Answer::Infeasible { .. }, None) | (Answer::NotNeeded, Some(0)) => {}
            _ => {
                panic!("{limits:?}: found {found:?}, the oracle's cost is {expected:?} on {host:?}")
            }
        }
    }
}

/// Two keys each, out of `projects` and three groups.
fn add_budgets(host: &mut Host, rng: &mut rand_pcg::Pcg64Mcg, projects: u32, most: u32) {
    for candidate in &mut host.candidates {
        candidate.budgets = vec![
            rng.random_range(0..projects),
            projects + rng.random_range(0..3u32),
        ];
    }
    host.limits = (0..projects + 3)
        .map(|_| rng.random_range(0..=most))
        .collect();
}

#[test]
fn mixed_flavors_cost_what_the_mip_says() {
    let mut scratch = Scratch::new();
    for seed in 0..150 {
        let mut rng = seeded(seed);
        let size = rng.random_range(4..=40);
        compare(&mixed_flavors(&mut rng, size), &mut scratch);
    }
}

#[test]
fn large_preemptors_cost_what_the_mip_says() {
    let mut scratch = Scratch::new();
    for seed in 0..40 {
        let mut rng = seeded(1000 + seed);
        let mut host = mixed_flavors(&mut rng, 24);
        for class in 0..3 {
            let all: i64 = host.candidates.iter().map(|c| c.resources[class]).sum();
            host.deficit[class] = all * rng.random_range(20..70) / 100;
        }
        compare(&host, &mut scratch);
    }
}

#[test]
fn mixed_flavors_within_budgets_cost_what_the_mip_says() {
    let mut scratch = Scratch::new();
    for seed in 0..150 {
        let mut rng = seeded(2000 + seed);
        let size = rng.random_range(4..=40);
        let mut host = mixed_flavors(&mut rng, size);
        add_budgets(&mut host, &mut rng, 6, 2);
        compare(&host, &mut scratch);
    }
}

#[test]
fn distinct_vectors_cost_what_the_mip_says() {
    let mut scratch = Scratch::new();
    for seed in 0..60 {
        let mut rng = seeded(3000 + seed);
        let (size, classes) = (rng.random_range(10..=40), rng.random_range(1..=5));
        let share = rng.random_range(5..30);
        let cost = |rng: &mut rand_pcg::Pcg64Mcg, _: i64| rng.random_range(0..3_600_000_000);
        compare(
            &distinct_vectors(&mut rng, size, classes, share, cost),
            &mut scratch,
        );
    }
}

#[test]
fn distinct_vectors_within_budgets_cost_what_the_mip_says() {
    let mut scratch = Scratch::new();
    for seed in 0..60 {
        let mut rng = seeded(4000 + seed);
        let (size, classes) = (rng.random_range(10..=30), rng.random_range(1..=4));
        let share = rng.random_range(5..25);
        let cost = |rng: &mut rand_pcg::Pcg64Mcg, _: i64| rng.random_range(0..3_600_000_000);
        let mut host = distinct_vectors(&mut rng, size, classes, share, cost);
        add_budgets(&mut host, &mut rng, 5, 3);
        compare(&host, &mut scratch);
    }
}
