//! Sets that need no search: a fair one built victim by victim, and any one without its idle
//! members.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::problem::Problem;
use crate::set_cost::NO_GROUP;

/// A sufficient set within the budgets, each victim the one with the least cost and step for what
/// it covers. Sets of a relaxation are extreme in their counts where there are many victims, this
/// one is even. `step` says what the next victim of a group costs more that has so many. Nothing if
/// it runs into the budgets.
pub(crate) fn fair_set(
    problem: &Problem<'_>,
    groups: &[u32],
    step: impl Fn(u32) -> u64,
) -> Option<Vec<u32>> {
    let width = problem.deficit.len();
    let mut missing: Vec<i64> = problem
        .deficit
        .iter()
        .map(|&deficit| deficit.max(0))
        .collect();
    let mut used = vec![0u32; problem.budgets.limits.len()];
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    let mut open: Vec<u32> = (0..problem.candidates() as u32).collect();
    let mut set = Vec::new();
    while missing.iter().any(|&missing| missing > 0) {
        // Floating point only proposes: whatever is built is looked at in integers.
        let price = |candidate: u32| {
            let c = candidate as usize;
            let row = &problem.resources[c * width..(c + 1) * width];
            let covers: f64 = (missing.iter().zip(row).zip(problem.deficit))
                .filter(|((missing, _), _)| **missing > 0)
                .map(|((&missing, &amount), &deficit)| amount.min(missing) as f64 / deficit as f64)
                .sum();
            let before = counts.get(&groups[c]).copied().unwrap_or(0);
            let surcharge = if groups[c] == NO_GROUP {
                0
            } else {
                step(before)
            };
            ((problem.costs[c].micros() + surcharge) as f64 + 1.0) / covers
        };
        open.retain(|&candidate| {
            let mut keys = problem.budgets.of(candidate as usize);
            keys.all(|key| used[key] < problem.budgets.limits[key])
        });
        let (price, _, at) = (open.iter().enumerate())
            .map(|(at, &candidate)| (price(candidate), problem.uuids[candidate as usize], at))
            .min_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)))?;
        if !price.is_finite() {
            return None;
        }
        let candidate = open.swap_remove(at);
        let c = candidate as usize;
        for (missing, &amount) in missing.iter_mut().zip(&problem.resources[c * width..]) {
            *missing = missing.saturating_sub(amount).max(0);
        }
        for key in problem.budgets.of(c) {
            used[key] += 1;
        }
        *counts.entry(groups[c]).or_default() += 1;
        set.push(candidate);
    }
    set.sort_unstable_by_key(|&victim| (problem.uuids[victim as usize], victim));
    Some(set)
}

/// Leaves out, dearest first, every victim without which the others still suffice.
pub(crate) fn drop_idle(problem: &Problem<'_>, victims: &mut Vec<u32>) {
    let width = problem.deficit.len();
    let row =
        |victim: u32| &problem.resources[victim as usize * width..(victim as usize + 1) * width];
    let mut spare: Vec<i128> = problem
        .deficit
        .iter()
        .map(|&deficit| -i128::from(deficit))
        .collect();
    for &victim in victims.iter() {
        for (spare, &amount) in spare.iter_mut().zip(row(victim)) {
            *spare += i128::from(amount);
        }
    }
    let mut order: Vec<u32> = victims.clone();
    order.sort_unstable_by_key(|&victim| {
        let v = victim as usize;
        Reverse((problem.costs[v], problem.ages_ms[v], problem.uuids[v]))
    });
    for victim in order {
        if spare
            .iter()
            .zip(row(victim))
            .all(|(&spare, &amount)| spare >= i128::from(amount) || amount == 0)
        {
            for (spare, &amount) in spare.iter_mut().zip(row(victim)) {
                *spare -= i128::from(amount);
            }
            victims.retain(|&other| other != victim);
        }
    }
}
