//! What many measurements of the same thing come to.

use crate::timing::ElapsedTime;
use serde::Serialize;
use std::time::Duration;

/// Times in microseconds. Percentiles are measured values (nearest rank), nothing is interpolated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50_us: f64,
    /// Of a hundred, one took longer.
    pub p99_us: f64,
    pub mean_us: f64,
    /// The shortest.
    pub min_us: f64,
    /// The longest.
    pub max_us: f64,
    /// The median of the thread's processor time, if it was measured. Other threads and processes
    /// do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_p50_us: Option<f64>,
    /// Of a hundred, one took more processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_p99_us: Option<f64>,
}

impl Latency {
    /// Sums them up; all zero if there are none.
    #[must_use]
    pub fn of(times: &[Duration]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let total: Duration = sorted.iter().sum();
        Self {
            p50_us: micros(at_rank(&sorted, 50)),
            p99_us: micros(at_rank(&sorted, 99)),
            mean_us: if sorted.is_empty() {
                0.0
            } else {
                ratio(micros(total), sorted.len())
            },
            min_us: micros(sorted.first().copied().unwrap_or_default()),
            max_us: micros(sorted.last().copied().unwrap_or_default()),
            cpu_p50_us: None,
            cpu_p99_us: None,
        }
    }

    /// Sums both clocks up.
    #[must_use]
    pub fn of_both(took: &[ElapsedTime]) -> Self {
        let wall: Vec<Duration> = took.iter().map(|took| took.wall).collect();
        let mut cpu: Vec<Duration> = took.iter().map(|took| took.cpu).collect();
        cpu.sort_unstable();
        Self {
            cpu_p50_us: Some(micros(at_rank(&cpu, 50))),
            cpu_p99_us: Some(micros(at_rank(&cpu, 99))),
            ..Self::of(&wall)
        }
    }
}

/// The nearest rank: the smallest value that at least so many percent do not exceed.
fn at_rank(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// Microseconds, to the nanosecond.
#[must_use]
pub fn micros(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e6)
}

/// Three decimal places: more is noise, and makes JSON hard to read.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// A sum over a count; 0 if there is nothing to count.
#[must_use]
#[allow(clippy::cast_precision_loss)] // Counts are far below 2^52.
pub fn ratio(sum: f64, count: usize) -> f64 {
    if count == 0 {
        0.0
    } else {
        rounded(sum / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_micros).collect();
        let latency = Latency::of(&times);
        assert_eq!((latency.p50_us, latency.p99_us), (100.0, 198.0));
        assert_eq!(
            (latency.min_us, latency.max_us, latency.mean_us),
            (1.0, 200.0, 100.5)
        );
    }

    #[test]
    fn one_time_is_every_percentile_and_none_is_zero() {
        let one = Latency::of(&[Duration::from_nanos(1500)]);
        assert_eq!((one.p50_us, one.p99_us, one.mean_us), (1.5, 1.5, 1.5));
        assert_eq!(Latency::of(&[]), Latency::default());
    }
}
