//! Money-like amounts as integers, so that sums are exact.
//!
//! Cost modules speak in floating point; two hosts may only be compared after the same numbers,
//! added in any order, give the same sum bit for bit. Hence every cost is rounded once, to a
//! millionth of a unit, and is an integer from then on.

use std::fmt;

use crate::error::SolverError;

/// What the loss of a victim, or of a set of victims, costs: an integer number of micro-units.
///
/// The unit is whatever the cost module counts in (seconds, instances, money); the solver only adds
/// and compares. Costs are never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EvictionCost(u64);

impl EvictionCost {
    /// Nothing is lost.
    pub const ZERO: EvictionCost = EvictionCost(0);

    /// Larger than the cost of any set. [`lower_bound`](crate::lower_bound) answers it for a host
    /// that can never give enough; it is not a legal cost of a candidate.
    pub const MAX: EvictionCost = EvictionCost(u64::MAX);

    /// The most that all candidates of one host may cost together: 2^60 micro-units, about 1.15 ×
    /// 10^12 units. The limit leaves room to pack cost, count and age into one 128-bit number and
    /// to scale that without overflow; [`solve`](crate::solve) refuses a problem above it.
    pub const TOTAL_LIMIT: EvictionCost = EvictionCost(1 << 60);

    /// Micro-units in one unit.
    pub const MICROS_PER_UNIT: u64 = 1_000_000;

    /// A cost of so many micro-units.
    pub const fn from_micros(micros: u64) -> EvictionCost {
        EvictionCost(micros)
    }

    /// A cost in units, rounded to the nearest micro-unit (halves away from zero).
    ///
    /// # Errors
    ///
    /// [`SolverError::CostNotRepresentable`] if `units` is NaN, negative, infinite, or above
    /// [`EvictionCost::TOTAL_LIMIT`]. Negative zero is zero.
    pub fn from_units(units: f64) -> Result<EvictionCost, SolverError> {
        let micros = (units * Self::MICROS_PER_UNIT as f64).round();
        if micros >= 0.0 && micros <= Self::TOTAL_LIMIT.0 as f64 {
            // In range by the comparison above, and already integral.
            Ok(EvictionCost(micros as u64))
        } else {
            Err(SolverError::CostNotRepresentable { units })
        }
    }

    /// The integer number of micro-units.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The cost in units, for display and for weighers; exact below about nine billion units.
    pub fn to_units(self) -> f64 {
        self.0 as f64 / Self::MICROS_PER_UNIT as f64
    }

    /// The sum, or `None` where it would not fit.
    pub fn checked_add(self, other: EvictionCost) -> Option<EvictionCost> {
        self.0.checked_add(other.0).map(EvictionCost)
    }
}

/// Units with the micro part cut of its trailing zeros: `12`, `0.5`, `3.000001`.
impl fmt::Display for EvictionCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.0 / Self::MICROS_PER_UNIT;
        let micros = self.0 % Self::MICROS_PER_UNIT;
        if micros == 0 {
            return write!(f, "{units}");
        }
        let digits = format!("{micros:06}");
        write!(f, "{units}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_rounded_to_the_nearest_micro_unit() {
        assert_eq!(
            EvictionCost::from_units(0.5),
            Ok(EvictionCost::from_micros(500_000))
        );
        assert_eq!(EvictionCost::from_units(-0.0), Ok(EvictionCost::ZERO));
        assert_eq!(EvictionCost::from_units(1e-7), Ok(EvictionCost::ZERO));
        assert_eq!(
            EvictionCost::from_units(0.000_000_6),
            Ok(EvictionCost::from_micros(1))
        );
    }

    #[test]
    fn what_is_not_a_cost_is_refused_by_its_code() {
        for units in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 2e12] {
            let error = EvictionCost::from_units(units).unwrap_err();
            assert_eq!(error.code(), "EB-SOLVER-001", "{units}");
        }
    }

    #[test]
    fn a_cost_is_shown_in_units() {
        assert_eq!(EvictionCost::from_micros(12_000_000).to_string(), "12");
        assert_eq!(EvictionCost::from_micros(500_000).to_string(), "0.5");
        assert_eq!(EvictionCost::from_micros(3_000_001).to_string(), "3.000001");
    }

    #[test]
    fn a_sum_that_does_not_fit_is_none() {
        assert_eq!(
            EvictionCost::MAX.checked_add(EvictionCost::from_micros(1)),
            None
        );
        assert_eq!(
            EvictionCost::ZERO.checked_add(EvictionCost::MAX),
            Some(EvictionCost::MAX)
        );
    }
}
