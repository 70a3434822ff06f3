//! How long decisions took.

use serde::Serialize;
use std::time::Duration;

/// Durations as they come in.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Vec<Duration>);

/// What is said about them, in milliseconds. Percentiles by the nearest rank, so each is a duration
/// that was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    pub count: u64,
    /// The average.
    pub mean_ms: f64,
    /// Half were not slower.
    pub p50_ms: f64,
    /// Nine of ten were not slower.
    pub p90_ms: f64,
    /// 99 of a hundred were not slower.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

impl Latencies {
    /// Takes note of one.
    pub fn add(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    /// The summary; all zero if there is nothing to sum up.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Counts are far below 2^53.
    pub fn summary(&self) -> LatencySummary {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let Some(max) = sorted.last() else {
            return LatencySummary::default();
        };
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let rank = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().map_or(0.0, ms)
        };
        let total: Duration = sorted.iter().sum();
        LatencySummary {
            count: sorted.len() as u64,
            mean_ms: ms(total) / sorted.len() as f64,
            p50_ms: rank(50),
            p90_ms: rank(90),
            p99_ms: rank(99),
            max_ms: ms(*max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_durations_that_were_seen() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), LatencySummary::default());
        for ms in (1..=100).rev() {
            latencies.add(Duration::from_millis(ms));
        }
        let s = latencies.summary();
        assert_eq!(
            (s.count, s.p50_ms, s.p90_ms, s.p99_ms, s.max_ms),
            (100, 50.0, 90.0, 99.0, 100.0)
        );
        assert!((s.mean_ms - 50.5).abs() < 1e-9, "{}", s.mean_ms);
        let mut one = Latencies::default();
        one.add(Duration::from_millis(3));
        let s = one.summary();
        assert_eq!((s.p50_ms, s.p99_ms, s.max_ms), (3.0, 3.0, 3.0));
    }
}
