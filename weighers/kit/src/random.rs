//! Numbers that look like chance and are the same every time.

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A whole number from `lo` to `hi`.
    pub(crate) fn between(&mut self, lo: i64, hi: i64) -> f64 {
        let span = hi.abs_diff(lo).saturating_add(1);
        (lo + i64::try_from(self.below(span)).unwrap_or(0)) as f64
    }
}
