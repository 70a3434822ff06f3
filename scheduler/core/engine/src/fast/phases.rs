//! Sorting the used parts of the billing period of eight hosts' instances side by side.

use super::bounds::NEVER;
use crate::Engine;
use crate::plugins::FailedPlugins;
use crate::state::DecisionState;
use crate::table::{PHASES, WIDE};
use ebbtide_cost_api::{CostForm, SetCost};
use ebbtide_solver::EvictionCost;

/// Ages below 2^32 seconds, 136 years, are represented in floating point so closely that the cost
/// module's remainder is exact to the millionth of a second.
const OLDEST_MS: i64 = (1 << 32) * 1000;

/// How many of the smallest values are kept one by one. Each further victim costs at least as much
/// as the last of these.
const KEPT: usize = 8;

/// The present, as phases are compared with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) now_ms: i64,
    pub(super) phase: u16,
    period_ms: u64,
    micros_per_unit: f64,
}

impl Clock {
    /// `None` if the costs of this engine are not parts of the billing period that the table keeps
    /// phases of.
    pub(super) fn new(
        engine: &Engine,
        broken: &FailedPlugins,
        state: &DecisionState<'_>,
    ) -> Option<Self> {
        let CostForm::UsedOfPeriod { period_seconds } = engine.cost_module.form() else {
            return None;
        };
        let phase_table = state.table.phase_table();
        let period_ms = i64::from(period_seconds) * 1000;
        let now_ms = state.now.as_millis();
        let usable = period_ms == phase_table.period_ms()
            && !broken.has_cost_module()
            && engine.cost_module.set_cost() == SetCost::Sum
            && !phase_table.has_ancient()
            && (0..OLDEST_MS).contains(&now_ms);
        usable.then(|| Self {
            now_ms,
            phase: phase_table.phase_of(now_ms),
            period_ms: u64::from(period_seconds) * 1000,
            micros_per_unit: period_ms as f64 * 1000.0 / PHASES as f64,
        })
    }

    /// The billing period.
    pub(super) fn period_ms(&self) -> u64 {
        self.period_ms
    }

    /// What costs so many units at least: the reverse of [`Clock::units`], which rounds up and adds
    /// one, and one unit less for the rounding of the product.
    pub(super) fn at_least(&self, units: u32) -> EvictionCost {
        let micros = f64::from(units.saturating_sub(3)) * self.micros_per_unit;
        EvictionCost::from_micros(micros as u64)
    }

    /// A cost in units, never less than it is.
    pub(super) fn units(&self, cost: EvictionCost) -> u32 {
        let units = cost.micros() as f64 / self.micros_per_unit;
        // Rounded up, and one more: a bound is compared with it, and must not skip what is equal.
        if units < f64::from(NEVER - 3) {
            units as u32 + 2
        } else {
            NEVER - 1
        }
    }
}

/// For each of eight hosts: what its `victims` cheapest instances have used of the period, in
/// units; at most `victims` too much.
pub(super) fn smallest_sums(
    rows: &[[u16; WIDE]],
    counts: &[u32; WIDE],
    victims: &[u32; WIDE],
    now: u16,
) -> [u32; WIDE] {
    let most = victims.iter().copied().max().unwrap_or(0);
    match most {
        0 | 1 => keep::<1>(rows, counts, victims, now),
        2 => keep::<2>(rows, counts, victims, now),
        3 | 4 => keep::<4>(rows, counts, victims, now),
        _ => keep::<KEPT>(rows, counts, victims, now),
    }
}

fn keep<const KEEP: usize>(
    rows: &[[u16; WIDE]],
    counts: &[u32; WIDE],
    victims: &[u32; WIDE],
    now: u16,
) -> [u32; WIDE] {
    let counts = counts.map(|count| u16::try_from(count).unwrap_or(u16::MAX));
    let mut smallest = [[u16::MAX; WIDE]; KEEP];
    for (row, phases) in rows.iter().enumerate() {
        let row = u16::try_from(row).unwrap_or(u16::MAX - 1);
        let mut used = [0; WIDE];
        for lane in 0..WIDE {
            let absent = if row < counts[lane] { 0 } else { u16::MAX };
            used[lane] = now.wrapping_sub(phases[lane]) | absent;
        }
        for kept in &mut smallest {
            for lane in 0..WIDE {
                let (a, b) = (kept[lane], used[lane]);
                kept[lane] = a.min(b);
                used[lane] = a.max(b);
            }
        }
    }
    let mut sums = [0; WIDE];
    for (nth, kept) in smallest.iter().enumerate() {
        let nth = u32::try_from(nth).unwrap_or(u32::MAX);
        for lane in 0..WIDE {
            sums[lane] += if nth < victims[lane] {
                u32::from(kept[lane])
            } else {
                0
            };
        }
    }
    let keep = u32::try_from(KEEP).unwrap_or(u32::MAX);
    if victims.iter().any(|n| *n > keep) {
        for lane in 0..WIDE {
            let beyond = victims[lane].saturating_sub(keep);
            let last = u32::from(smallest[KEEP - 1][lane]);
            sums[lane] = sums[lane].saturating_add(last.saturating_mul(beyond));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sums_are_those_of_the_smallest(
            rows in prop::collection::vec(prop::array::uniform8(0..=u16::MAX), 1..20),
            now in 0..=u16::MAX,
            victims in prop::array::uniform8(1..12_u32),
            missing in prop::array::uniform8(0..20_u32),
        ) {
            let depth = u32::try_from(rows.len()).unwrap();
            let counts = missing.map(|n| depth.saturating_sub(n));
            let sums = smallest_sums(&rows, &counts, &victims, now);
            for lane in 0..WIDE {
                let mut used: Vec<u32> = rows[..counts[lane] as usize]
                    .iter()
                    .map(|row| u32::from(now.wrapping_sub(row[lane])))
                    .collect();
                used.resize(20, u32::from(u16::MAX));
                used.sort_unstable();
                let exact: u32 = used[..victims[lane] as usize].iter().sum();
                prop_assert!(sums[lane] <= exact);
                if victims[lane] as usize <= KEPT {
                    prop_assert_eq!(sums[lane], exact);
                }
            }
        }
    }
}
