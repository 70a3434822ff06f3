//! The best hosts without sorting all of them.

use ebbtide_model::host_set::{HostSet, WORD, ones};

/// The `top` hosts with the largest totals among those alive, best first; of equal ones the
/// earlier. Totals are no NaN.
pub(super) fn best(totals: &[f64], alive: &HostSet, top: usize) -> Vec<(usize, f64)> {
    let mut found: Vec<(usize, f64)> = Vec::with_capacity(top.min(totals.len()) + 1);
    if top == 0 {
        return found;
    }
    if top >= alive.count() {
        found.extend(alive.iter().map(|at| (at, totals[at])));
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        return found;
    }
    let mut least = f64::NEG_INFINITY;
    for (block, (word, totals)) in alive.words().iter().zip(totals.chunks(WORD)).enumerate() {
        // The largest of the block, dead hosts included: if it does not beat the last of the best,
        // none does.
        let full = found.len() == top;
        if *word == 0 || (full && largest(totals) <= least) {
            continue;
        }
        for bit in ones(*word) {
            let total = totals[bit];
            if found.len() == top {
                if total <= least {
                    continue;
                }
                found.pop();
            }
            let place = found.partition_point(|(_, known)| *known >= total);
            found.insert(place, (block * WORD + bit, total));
            if found.len() == top {
                least = found.last().map_or(least, |(_, total)| *total);
            }
        }
    }
    found
}

/// Four at a time, so that the comparisons do not wait for each other.
fn largest(totals: &[f64]) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; 4];
    let mut chunks = totals.chunks_exact(4);
    for chunk in &mut chunks {
        for (lane, total) in lanes.iter_mut().zip(chunk) {
            *lane = if *total > *lane { *total } else { *lane };
        }
    }
    let rest = chunks.remainder().iter().copied();
    lanes
        .into_iter()
        .chain(rest)
        .fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_the_first_of_a_stable_sort(
            hosts in prop::collection::vec((0_i8..6, any::<bool>()), 0..300),
            top in 0_usize..40,
        ) {
            let totals: Vec<f64> = hosts.iter().map(|(total, _)| f64::from(*total) - 2.0).collect();
            let mut alive = HostSet::none(hosts.len());
            hosts.iter().enumerate().filter(|(_, h)| h.1).for_each(|(at, _)| alive.set(at));
            let mut expected: Vec<(usize, f64)> = alive.iter().map(|at| (at, totals[at])).collect();
            expected.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap());
            expected.truncate(top);
            prop_assert_eq!(best(&totals, &alive, top), expected);
        }
    }
}
