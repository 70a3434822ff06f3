//! Where chance comes from: a seed, and nothing else.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A stream of chance.
#[derive(Debug, Clone)]
pub(crate) struct WorldRng(Pcg64);

impl WorldRng {
    /// A stream of its own for each purpose: what one draws does not shift what another gets.
    #[must_use]
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        // The golden ratio spreads purposes over the seeds, as in SplitMix64.
        Self(Pcg64::seed_from_u64(
            seed ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ))
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u32 {
        u32::try_from(self.0.next_u64() >> 32).unwrap_or_default()
    }

    /// A number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        if n == 0 { 0 } else { self.any() % n }
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// The place of one of these weights, drawn by weight.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u32 = weights.iter().sum();
        let mut left = self.below(total);
        for (place, weight) in weights.iter().enumerate() {
            if left < *weight {
                return place;
            }
            left -= weight;
        }
        0
    }
}
