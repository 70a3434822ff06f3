//! Pseudo-random numbers from a seed, the same on every machine and with every version of every
//! crate.
//!
//! SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
//! Not for secrets.

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub struct SeededNumbers(u64);

/// The bits of a number, mixed.
#[must_use]
pub fn mixed(number: u64) -> u64 {
    let x = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl SeededNumbers {
    /// The sequence of a seed; `stream` tells independent sequences of the same seed apart, one a
    /// host for instance.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ mixed(stream.wrapping_mul(2) | 1))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number from 0 to `limit` − 1; 0 if the limit is 0. For limits far below 2^64 the bias is
    /// nothing.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw().checked_rem(limit).unwrap_or(0)
    }

    /// One of the things, each as likely as its weight says. `None` if nothing weighs anything.
    pub fn pick<'a, T>(&mut self, things: &'a [(T, u64)]) -> Option<&'a T> {
        let mut left = self.below(things.iter().map(|(_, weight)| weight).sum());
        for (thing, weight) in things {
            if left < *weight {
                return Some(thing);
            }
            left -= weight;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_stream_gives_others() {
        let numbers = |seed, stream| {
            let mut seeded = SeededNumbers::new(seed, stream);
            [seeded.draw(), seeded.draw(), seeded.draw()]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }

    #[test]
    fn what_weighs_nothing_is_never_picked_and_the_rest_by_its_weight() {
        let mut seeded = SeededNumbers::new(7, 0);
        let mut counts = [0_u32; 3];
        for _ in 0..4000 {
            counts[*seeded.pick(&[(0, 3), (1, 0), (2, 1)]).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((2800..3200).contains(&counts[0]), "{counts:?}");
        assert_eq!(seeded.pick::<u8>(&[]), None);
    }
}
