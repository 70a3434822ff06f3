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
use ebbtide_model::python::number;
use std::cmp::Ordering;

/// A raw number within the weigher's bounds.
///
/// Python's `max(weight, minval)` keeps its first argument unless the second is really larger; so
/// do we, which matters for the sign of zero only.
#[inline]
#[must_use]
pub fn clamped(raw: f64, bounds: Bounds) -> f64 {
    let mut x = raw;
    if let Some(min) = bounds.min.filter(|min| *min > x) {
        x = min;
    }
    if let Some(max) = bounds.max.filter(|max| *max < x) {
        x = max;
    }
    x
}

/// Brings every raw number into the weigher's bounds (`BaseWeigher.weigh_objects`).
pub fn clamp(raw: &mut [f64], bounds: Bounds) {
    raw.iter_mut().for_each(|x| *x = clamped(*x, bounds));
}

/// The ends of a weigher's scale.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scale {
    /// What becomes 0.
    pub lo: f64,
    /// What becomes 1.
    pub hi: f64,
}

impl Scale {
    /// The scale of raw numbers between `smallest` and `largest`. An end is the bound where there
    /// is one, else that number within the other bound.
    #[must_use]
    pub fn new(smallest: f64, largest: f64, bounds: Bounds) -> Self {
        Self {
            lo: bounds.min.unwrap_or_else(|| clamped(smallest, bounds)),
            hi: bounds.max.unwrap_or_else(|| clamped(largest, bounds)),
        }
    }

    /// True if both ends are equal, so that every number becomes 0.
    #[inline]
    #[must_use]
    pub fn is_flat(self) -> bool {
        self.lo == self.hi
    }

    /// What a clamped number becomes: the lower end 0, the upper end 1.
    #[inline]
    #[must_use]
    pub fn normalised(self, clamped: f64) -> f64 {
        if self.is_flat() {
            0.0
        } else {
            (clamped - self.lo) / (self.hi - self.lo)
        }
    }
}

/// Turns raw numbers into normalised ones, in place: clamps them, then maps the lower end of the
/// [`Scale`] to 0 and the upper end to 1 (`normalize`).
///
/// If both ends are equal all become 0. Two effects of Nova's that surprise: with `min = Some(0.0)`
/// hosts that are all equal get 1 and not 0 (unless they have nothing at all); and with
/// `max = Some(0.0)` over numbers that are not positive, a host at 0 gets 1 whatever the others
/// have.
///
/// Nova skips all weighing when there are fewer than two hosts; that is the caller's business.
pub fn normalise(raw: &mut [f64], bounds: Bounds) {
    clamp(raw, bounds);
    let Some(&first) = raw.first() else { return };
    let smallest = raw.iter().fold(first, |lo, &x| if x < lo { x } else { lo });
    let largest = raw.iter().fold(first, |hi, &x| if x > hi { x } else { hi });
    let scale = Scale::new(smallest, largest, bounds);
    raw.iter_mut().for_each(|x| *x = scale.normalised(*x));
}

/// Descending, NaN last whatever its sign, both zeros equal: the order of hosts by their totals.
/// Nova's order of NaN is whatever Python's sort makes of it.
#[inline]
#[must_use]
pub fn best_first(a: f64, b: f64) -> Ordering {
    a.is_nan()
        .cmp(&b.is_nan())
        .then_with(|| b.partial_cmp(&a).unwrap_or(Ordering::Equal))
}

/// How much a weigher counts on a host (`get_weight_multiplier`): the smallest of what the host's
/// aggregates say; the configured one if none says anything or one of them is no number. Where one
/// says NaN Nova's `min` depends on the order of a set; here NaN is larger than everything.
#[must_use]
pub fn multiplier<'a>(
    values: impl Iterator<Item = &'a str>,
    configured: Option<f64>,
) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for value in values {
        let Some(value) = number::float(value) else {
            return configured;
        };
        smallest = Some(match smallest {
            Some(known) if value.is_nan() || known <= value => known,
            _ => value,
        });
    }
    smallest.or(configured)
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

    #[test]
    fn the_smallest_value_counts_unless_one_is_no_number() {
        assert_eq!(multiplier([].into_iter(), Some(1.5)), Some(1.5));
        assert_eq!(
            multiplier(["3", " -2.0 ", "1_0"].into_iter(), Some(1.5)),
            Some(-2.0)
        );
        assert_eq!(multiplier(["3", "2,5"].into_iter(), Some(1.5)), Some(1.5));
        assert_eq!(multiplier(["nan", "3"].into_iter(), Some(1.5)), Some(3.0));
        assert_eq!(multiplier(["3", "nan"].into_iter(), Some(1.5)), Some(3.0));
        assert!(multiplier(["nan"].into_iter(), Some(1.5)).is_some_and(f64::is_nan));
        assert_eq!(multiplier(["x"].into_iter(), None), None);
    }

    #[test]
    fn nan_is_last_and_zeros_are_equal() {
        let totals = [f64::NAN, 1.0, -0.0, 0.0, f64::INFINITY, -f64::NAN];
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_by(|&a, &b| best_first(totals[a], totals[b]));
        assert_eq!(order, [4, 1, 2, 3, 0, 5]);
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
