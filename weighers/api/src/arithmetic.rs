//! The shared arithmetic of all weighers, exactly as Nova's `nova/weights.py` does it.
//!
//! Exactly means bit for bit: the same comparisons, the same order of float64 operations, no fused
//! multiply-add, no division turned into a multiplication. Rankings of thousands of hosts hang on
//! last bits, and explanations are compared with Nova's own numbers.
//!
//! Invariants: finite input whose range `hi − lo` does not overflow gives finite output; without
//! bounds, or with bounds that hold all numbers, the output lies in 0…1; the order of the hosts
//! plays no role.

use crate::Bounds;

/// Brings every raw number into the weigher's bounds (`BaseWeigher.weigh_objects`).
///
/// Python's `max(weight, minval)` keeps its first argument unless the second is really larger; so
/// do we, which matters for the sign of zero only.
pub fn clamp(raw: &mut [f64], bounds: Bounds) {
    if let Some(min) = bounds.min {
        raw.iter_mut().filter(|x| min > **x).for_each(|x| *x = min);
    }
    if let Some(max) = bounds.max {
        raw.iter_mut().filter(|x| max < **x).for_each(|x| *x = max);
    }
}

/// Turns raw numbers into normalised ones, in place: clamps them, then maps the lower end of the
/// scale to 0 and the upper end to 1 (`normalize`).
///
/// An end is the bound where there is one, else the smallest or largest of the numbers. If both
/// ends are equal all become 0. Two effects of Nova's that surprise: with `min = Some(0.0)` hosts
/// that are all equal get 1 and not 0 (unless they have nothing at all); and with `max = Some(0.0)`
/// over numbers that are not positive, a host at 0 gets 1 whatever the others have.
///
/// Nova skips all weighing when there are fewer than two hosts; that is the caller's business.
pub fn normalise(raw: &mut [f64], bounds: Bounds) {
    clamp(raw, bounds);
    let Some(&first) = raw.first() else { return };
    let smallest = raw.iter().fold(first, |lo, &x| if x < lo { x } else { lo });
    let largest = raw.iter().fold(first, |hi, &x| if x > hi { x } else { hi });
    let lo = bounds.min.unwrap_or(smallest);
    let hi = bounds.max.unwrap_or(largest);
    if lo == hi {
        raw.fill(0.0);
        return;
    }
    let range = hi - lo;
    for x in raw {
        *x = (*x - lo) / range;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: Bounds = Bounds {
        min: None,
        max: None,
    };
    const FROM_ZERO: Bounds = Bounds {
        min: Some(0.0),
        max: None,
    };
    const UP_TO_ZERO: Bounds = Bounds {
        min: None,
        max: Some(0.0),
    };

    fn normalised(raw: &[f64], bounds: Bounds) -> Vec<f64> {
        let mut numbers = raw.to_vec();
        normalise(&mut numbers, bounds);
        numbers
    }

    #[test]
    fn the_table_of_nova_s_rules_holds() {
        let table: [(&str, &[f64], Bounds, &[f64]); 9] = [
            ("no hosts, no numbers", &[], NONE, &[]),
            (
                "smallest 0, largest 1",
                &[3.0, 1.0, 2.0],
                NONE,
                &[1.0, 0.0, 0.5],
            ),
            (
                "all equal without bounds gives 0",
                &[7.0, 7.0],
                NONE,
                &[0.0, 0.0],
            ),
            (
                "all equal above a lower bound gives 1",
                &[7.0, 7.0],
                FROM_ZERO,
                &[1.0, 1.0],
            ),
            (
                "negative numbers are clamped to the bound",
                &[-4.0, 8.0],
                FROM_ZERO,
                &[0.0, 1.0],
            ),
            ("all clamped gives 0", &[-4.0, -8.0], FROM_ZERO, &[0.0, 0.0]),
            (
                "an upper bound of 0 is always the 1",
                &[-1.0, -4.0],
                UP_TO_ZERO,
                &[0.75, 0.0],
            ),
            (
                "above an upper bound is clamped",
                &[2.0, -4.0],
                UP_TO_ZERO,
                &[1.0, 0.0],
            ),
            (
                "two bounds do not look at the numbers",
                &[5.0],
                Bounds {
                    min: Some(0.0),
                    max: Some(10.0),
                },
                &[0.5],
            ),
        ];
        for (what, raw, bounds, expected) in table {
            assert_eq!(normalised(raw, bounds), expected, "{what}");
        }
    }

    #[test]
    fn a_quotient_has_the_bits_that_python_gives() {
        // Python 3.11: (1 - 0.0) / (3.0 - 0.0), and Nova's own CPU weights of a real case.
        assert_eq!(
            normalised(&[1.0, 3.0], FROM_ZERO)[0].to_bits(),
            0.333_333_333_333_333_3_f64.to_bits()
        );
        let cpu = normalised(&[142.0, 234.0, 463.0], FROM_ZERO);
        assert_eq!(cpu[0].to_bits(), 0.306_695_464_362_850_94_f64.to_bits());
        assert_eq!(cpu[1].to_bits(), 0.505_399_568_034_557_2_f64.to_bits());
    }

    fn numbers() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1e12_f64..1e12, 1..20)
    }

    fn any_bounds() -> impl Strategy<Value = Bounds> {
        prop_oneof![
            Just(NONE),
            (-1e12_f64..1e12).prop_map(|x| Bounds {
                min: Some(x),
                max: None
            }),
            (-1e12_f64..1e12).prop_map(|x| Bounds {
                min: None,
                max: Some(x)
            }),
            (-1e12_f64..0.0, 0.0_f64..1e12).prop_map(|(a, b)| Bounds {
                min: Some(a),
                max: Some(b)
            }),
        ]
    }

    proptest! {
        #[test]
        fn every_normalised_number_lies_between_0_and_1(raw in numbers(), bounds in any_bounds()) {
            for x in normalised(&raw, bounds) {
                prop_assert!((0.0..=1.0).contains(&x), "{x}");
            }
        }

        #[test]
        fn a_better_raw_number_is_never_worse_after_normalising(raw in numbers(), bounds in any_bounds()) {
            let after = normalised(&raw, bounds);
            for i in 0..raw.len() {
                for j in 0..raw.len() {
                    prop_assert!(raw[i] > raw[j] || after[i] <= after[j]);
                }
            }
        }

        #[test]
        fn the_order_of_the_hosts_does_not_matter(raw in numbers(), bounds in any_bounds()) {
            let mut backwards: Vec<f64> = raw.iter().rev().copied().collect();
            normalise(&mut backwards, bounds);
            backwards.reverse();
            prop_assert_eq!(normalised(&raw, bounds), backwards);
        }

        #[test]
        fn clamping_twice_is_clamping_once(raw in numbers(), bounds in any_bounds()) {
            let mut once = raw;
            clamp(&mut once, bounds);
            let mut twice = once.clone();
            clamp(&mut twice, bounds);
            prop_assert_eq!(once, twice);
        }
    }
}
