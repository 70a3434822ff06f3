//! Chance, where the configuration allows any: Nova's `shuffle_best_same_weighed_hosts` and
//! `host_subset_size`.
//!
//! All of it comes from the seed. With the defaults (no shuffle, a subset of one) the seed changes
//! nothing.

use crate::EngineConfig;
use ebbtide_weigher_api::arithmetic::best_first;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::cmp::Ordering;

/// The random numbers of one attempt to decide.
#[derive(Debug)]
pub(crate) struct DecisionRng(Pcg64);

impl DecisionRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Shuffles the best of `order` if they are equal, and says which rank is taken; `None` if
    /// there is nothing to take.
    pub(super) fn choose(
        &mut self,
        order: &mut [usize],
        totals: &[f64],
        config: &EngineConfig,
    ) -> Option<usize> {
        let best = totals[*order.first()?];
        if config.shuffle_best_same_weighed_hosts {
            let equal = |&&at: &&usize| best_first(totals[at], best) == Ordering::Equal;
            let many = order.iter().take_while(equal).count();
            for last in (1..many).rev() {
                order.swap(last, self.below(last + 1));
            }
        }
        let subset = order.len().min(config.host_subset_size as usize);
        Some(if subset > 1 { self.below(subset) } else { 0 })
    }

    /// A number below `n`, which is above zero. The high half of a product: its bias is n / 2^64,
    /// beyond observation.
    fn below(&mut self, n: usize) -> usize {
        let product = u128::from(self.0.next_u64()) * n as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn choose(config: &EngineConfig, totals: &[f64], seed: u64) -> usize {
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_by(|&a, &b| best_first(totals[a], totals[b]));
        let rank = DecisionRng::new(seed)
            .choose(&mut order, totals, config)
            .unwrap();
        order[rank]
    }

    #[test]
    fn without_leave_for_chance_the_seed_changes_nothing() {
        let config = EngineConfig::default();
        assert!((0..100).all(|seed| choose(&config, &[1.0, 2.0, 2.0], seed) == 1));
    }

    #[test]
    fn the_shuffle_reaches_exactly_the_best_equals() {
        let config = EngineConfig {
            shuffle_best_same_weighed_hosts: true,
            ..Default::default()
        };
        let seen: BTreeSet<usize> = (0..100)
            .map(|seed| choose(&config, &[1.0, 2.0, 2.0, 2.0, f64::NAN], seed))
            .collect();
        assert_eq!(seen, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn the_subset_reaches_exactly_the_first_few() {
        for (size, reached) in [(2, vec![1, 2]), (9, vec![0, 1, 2])] {
            let config = EngineConfig {
                host_subset_size: size,
                ..Default::default()
            };
            let seen: BTreeSet<usize> = (0..200)
                .map(|seed| choose(&config, &[1.0, 3.0, 2.0], seed))
                .collect();
            assert_eq!(seen, reached.into_iter().collect());
        }
    }

    #[test]
    fn nothing_to_choose_from_is_no_choice() {
        let config = EngineConfig::default();
        assert_eq!(DecisionRng::new(0).choose(&mut [], &[], &config), None);
    }
}
