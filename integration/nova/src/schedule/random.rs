//! What Nova leaves to `random` (`SchedulerManager._get_sorted_hosts`).

use super::steps::SortedHosts;
use crate::model::Options;

/// Chance from a seed. Without one the best host is taken, and hosts with the same weight stay in
/// the order of the input.
#[derive(Debug, Clone)]
pub struct SelectionRng {
    state: Option<u64>,
}

impl SelectionRng {
    /// From a seed.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Self {
        Self { state: seed }
    }

    /// Whether the options leave more than one host to choose from.
    pub(super) fn is_open(&self, sorted: &SortedHosts, options: &Options) -> bool {
        let (many, subset) = (sorted.hosts.len(), options.host_subset_size);
        let same = || {
            let best = sorted.totals.first();
            sorted
                .totals
                .iter()
                .filter(|total| Some(*total) == best)
                .count()
        };
        many > 1 && (subset > 1 || (options.shuffle_best_same_weighed_hosts && same() > 1))
    }

    /// The hosts as Nova goes through them: those with the best weight shuffled if the options say
    /// so, then one of the first `host_subset_size` in front.
    pub(super) fn choose(
        &mut self,
        mut hosts: Vec<usize>,
        totals: &[f64],
        options: &Options,
    ) -> Vec<usize> {
        if self.state.is_none() || hosts.len() < 2 {
            return hosts;
        }
        if options.shuffle_best_same_weighed_hosts {
            let best = totals.first();
            let same = totals
                .iter()
                .take_while(|total| Some(*total) == best)
                .count();
            for last in (1..same).rev() {
                let other = self.below(last + 1);
                hosts.swap(last, other);
            }
        }
        let subset = usize::try_from(options.host_subset_size).unwrap_or(1);
        let subset = subset.clamp(1, hosts.len());
        if subset > 1 {
            let chosen = self.below(subset);
            hosts[..=chosen].rotate_right(1);
        }
        hosts
    }

    /// A number below `many`. SplitMix64: small, and the same on every machine.
    fn below(&mut self, many: usize) -> usize {
        let state = self.state.get_or_insert(0);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // The high half of a product: even enough for lists of hosts.
        ((u128::from(z) * many as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn options(subset: i64, shuffle: bool) -> Options {
        Options {
            host_subset_size: subset,
            shuffle_best_same_weighed_hosts: shuffle,
            ..Options::default()
        }
    }

    fn firsts(options: &Options) -> BTreeSet<usize> {
        let totals = [3.0, 3.0, 3.0, 2.0, 1.0];
        let choose =
            |seed| SelectionRng::new(Some(seed)).choose(vec![0, 1, 2, 3, 4], &totals, options);
        (0..200).map(|seed| choose(seed)[0]).collect()
    }

    #[test]
    fn the_first_host_comes_from_those_that_the_options_name() {
        assert_eq!(firsts(&options(1, false)), BTreeSet::from([0]));
        assert_eq!(firsts(&options(4, false)), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(firsts(&options(1, true)), BTreeSet::from([0, 1, 2]));
        assert_eq!(firsts(&options(9, true)).len(), 5);
    }

    #[test]
    fn the_others_keep_their_order_and_no_host_is_lost() {
        let totals = [5.0, 4.0, 3.0, 2.0];
        for seed in 0..50 {
            let hosts =
                SelectionRng::new(Some(seed)).choose(vec![7, 8, 9, 6], &totals, &options(3, true));
            let rest: Vec<usize> = hosts[1..].to_vec();
            let expected: Vec<usize> = [7, 8, 9, 6]
                .into_iter()
                .filter(|h| *h != hosts[0])
                .collect();
            assert_eq!(rest, expected);
        }
    }

    #[test]
    fn without_a_seed_the_best_is_taken() {
        let hosts = SelectionRng::new(None).choose(vec![2, 1], &[1.0, 1.0], &options(2, true));
        assert_eq!(hosts, [2, 1]);
    }
}
