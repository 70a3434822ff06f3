//! Which VMs of a trace are preemptible. The trace does not say, so a hash of the VM's name does.

use crate::SimError;

/// A share of the VMs, chosen by a hash of name and seed: the same for the same trace on every
/// machine, and a larger share contains every smaller one of the same seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PreemptibleShare {
    share: f64,
    seed: u64,
}

impl PreemptibleShare {
    /// A share between 0 and 1.
    ///
    /// # Errors
    /// [`SimError::Option`] outside of it.
    pub fn new(share: f64, seed: u64) -> Result<Self, SimError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self { share, seed })
        } else {
            Err(SimError::Option(format!(
                "a share of {share} makes no sense: use a number from 0 to 1"
            )))
        }
    }

    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True if this VM is preemptible.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // 53 bits fit exactly.
    pub fn contains(&self, vm: &str) -> bool {
        let unit = (hash(vm, self.seed) >> 11) as f64 / (1_u64 << 53) as f64;
        unit < self.share
    }
}

/// FNV-1a over the name, then SplitMix64's finish: FNV alone leaves the high bits of short names
/// alike. Both are fixed for ever, unlike the standard library's hasher.
fn hash(vm: &str, seed: u64) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in vm.bytes() {
        h = (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_share_is_about_what_was_asked_for() {
        for share in [0.0, 0.1, 0.3, 0.9, 1.0] {
            let chosen = PreemptibleShare::new(share, 7).unwrap();
            let hits = (0..10_000)
                .filter(|vm| chosen.contains(&vm.to_string()))
                .count();
            let wanted = share * 10_000.0;
            assert!((hits as f64 - wanted).abs() <= 200.0, "{share}: {hits}");
        }
    }

    #[test]
    fn the_choice_is_fixed_for_ever() {
        let chosen = PreemptibleShare::new(0.5, 42).unwrap();
        let picked: String = (0..32)
            .map(|vm| {
                if chosen.contains(&vm.to_string()) {
                    '1'
                } else {
                    '0'
                }
            })
            .collect();
        assert_eq!(
            picked, FIXED,
            "a replay of last year would not be repeatable"
        );
    }

    const FIXED: &str = "01001010010100100010100000110011";

    #[test]
    fn shares_outside_of_0_to_1_are_refused() {
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(PreemptibleShare::new(bad, 0).is_err(), "{bad} was taken");
        }
    }

    proptest! {
        #[test]
        fn a_larger_share_contains_every_smaller_one(
            vm in ".{0,20}", seed: u64, a in 0.0..=1.0_f64, b in 0.0..=1.0_f64,
        ) {
            let small = PreemptibleShare::new(a.min(b), seed).unwrap();
            let large = PreemptibleShare::new(a.max(b), seed).unwrap();
            prop_assert!(!small.contains(&vm) || large.contains(&vm));
        }
    }
}
