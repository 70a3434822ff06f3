//! A bound that costs one pass over the columns and needs no scratch.

use crate::cost::EvictionCost;
use crate::problem::Problem;

/// A cost that no sufficient set can undercut; use it to skip a host before solving.
///
/// For each missing resource class, the cheapest price of one unit times the missing amount is a
/// lower bound of the cost. An amount beyond the deficit counts as the deficit, because the request
/// needs no more. The result is the largest of these bounds. Budgets only make sets more expensive
/// and are ignored.
///
/// [`EvictionCost::ZERO`] if nothing is missing, [`EvictionCost::MAX`] if no candidate has any of a
/// missing class. The problem must be well-formed; for a malformed one the answer is
/// [`EvictionCost::ZERO`], which skips nothing.
pub fn lower_bound(problem: &Problem<'_>) -> EvictionCost {
    let width = problem.deficit.len();
    if problem.resources.len() != problem.costs.len() * width {
        return EvictionCost::ZERO;
    }
    let mut bound = 0u64;
    for (class, &deficit) in problem.deficit.iter().enumerate() {
        if deficit <= 0 {
            continue;
        }
        let deficit = deficit.unsigned_abs();
        // The cheapest price so far as the fraction cost / amount; 1/0 is dearer than any.
        let (mut cost, mut amount) = (1u64, 0u64);
        for (row, price) in problem.resources.chunks_exact(width).zip(problem.costs) {
            let offered = row[class].max(0).unsigned_abs().min(deficit);
            if u128::from(price.micros()) * u128::from(amount)
                < u128::from(cost) * u128::from(offered)
            {
                (cost, amount) = (price.micros(), offered);
            }
        }
        if amount == 0 {
            return EvictionCost::MAX;
        }
        let covering = (u128::from(cost) * u128::from(deficit)).div_ceil(u128::from(amount));
        bound = bound.max(u64::try_from(covering).unwrap_or(u64::MAX));
    }
    EvictionCost::from_micros(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Budgets;

    fn bound(deficit: &[i64], resources: &[i64], micros: &[u64]) -> EvictionCost {
        let costs: Vec<EvictionCost> = micros
            .iter()
            .copied()
            .map(EvictionCost::from_micros)
            .collect();
        lower_bound(&Problem {
            deficit,
            resources,
            costs: &costs,
            ages_ms: &vec![0; costs.len()],
            uuids: &vec![0; costs.len()],
            budgets: Budgets::NONE,
            cutoff: None,
        })
    }

    #[test]
    fn the_dearest_missing_class_gives_the_bound() {
        // Class 0: 4 units at 10/2 each; class 1: 6 units at 7/3 each.
        assert_eq!(
            bound(&[4, 6], &[2, 1, 1, 3], &[10, 7]),
            EvictionCost::from_micros(20)
        );
    }

    #[test]
    fn more_than_is_missing_is_not_a_discount() {
        assert_eq!(bound(&[1], &[1000], &[10]), EvictionCost::from_micros(10));
    }

    #[test]
    fn no_deficit_costs_nothing_and_no_candidates_cost_everything() {
        assert_eq!(bound(&[0, -5], &[1, 1], &[10]), EvictionCost::ZERO);
        assert_eq!(bound(&[1], &[], &[]), EvictionCost::MAX);
        assert_eq!(bound(&[1, 1], &[5, 0], &[0]), EvictionCost::MAX);
    }
}
