//! Several instances on several hosts within budgets, against integer programming.

use crate::common;

use common::cloud::{Cloud, saturated};
use common::seeded;
use ebbtide_solver::SearchLimits;
use good_lp::{
    Expression, Solution as _, SolverModel, constraint, default_solver, variable, variables,
};
use rand::RngExt;

#[test]
fn the_mip_finds_nothing_cheaper() {
    for seed in 0..12 {
        let mut cloud = saturated(seed, 4, 6, 5);
        cloud.limits = vec![3, 3];
        let mut rng = seeded(seed + 100);
        for place in &mut cloud.places {
            for candidate in &mut place.candidates {
                candidate.budgets = vec![rng.random_range(0..3)]
                    .into_iter()
                    .filter(|key| *key < 2)
                    .collect();
            }
        }
        let (outcome, _) = cloud.solve(SearchLimits::DEFAULT);
        let found = cloud.checked(&outcome).map(|(price, _)| price.0);
        assert_eq!(found, mip(&cloud), "seed {seed}");
    }
}

/// The least cost by integer programming: a binary for each candidate and an integer for each
/// host's count.
fn mip(cloud: &Cloud) -> Option<u64> {
    let mut vars = variables!();
    let x: Vec<Vec<_>> = cloud
        .places
        .iter()
        .map(|p| {
            p.candidates
                .iter()
                .map(|_| vars.add(variable().binary()))
                .collect()
        })
        .collect();
    let y: Vec<_> = cloud
        .places
        .iter()
        .map(|p| vars.add(variable().integer().min(0).max(p.most)))
        .collect();
    let all = || {
        cloud
            .places
            .iter()
            .enumerate()
            .flat_map(|(h, p)| (0..p.candidates.len()).map(move |at| (h, at)))
    };
    // In milliseconds, as the MIP works with doubles.
    let cost: Expression = all()
        .map(|(h, at)| x[h][at] * (cloud.candidate((h, at)).micros as f64 / 1e6))
        .sum();
    let mut model = vars.minimise(cost).using(default_solver);
    let placed: Expression = y.iter().copied().map(Expression::from).sum();
    model = model.with(constraint!(placed == f64::from(cloud.count)));
    for (h, place) in cloud.places.iter().enumerate() {
        for class in 0..cloud.need.len() {
            let freed: Expression = place
                .candidates
                .iter()
                .enumerate()
                .map(|(at, c)| x[h][at] * c.resources[class] as f64)
                .sum();
            model = model.with(constraint!(
                freed + place.free[class] as f64 >= y[h] * cloud.need[class] as f64
            ));
        }
    }
    for (key, &limit) in cloud.limits.iter().enumerate() {
        let members: Expression = all()
            .filter(|&v| cloud.candidate(v).budgets.contains(&(key as u32)))
            .map(|(h, at)| Expression::from(x[h][at]))
            .sum();
        model = model.with(constraint!(members <= f64::from(limit)));
    }
    let solution = model.solve().ok()?;
    Some(
        all()
            .filter(|&(h, at)| solution.value(x[h][at]) > 0.5)
            .map(|v| cloud.candidate(v).micros)
            .sum(),
    )
}
