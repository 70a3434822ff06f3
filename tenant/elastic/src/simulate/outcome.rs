//! What came out of a simulation.

/// Times that were measured, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MeasuredTimes {
    sorted_us: Vec<u64>,
    sum_us: u128,
}

impl MeasuredTimes {
    /// Of these, microseconds, in any order.
    #[must_use]
    pub fn new(mut times_us: Vec<u64>) -> Self {
        times_us.sort_unstable();
        let sum_us = times_us.iter().map(|us| u128::from(*us)).sum();
        Self {
            sorted_us: times_us,
            sum_us,
        }
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted_us.len()
    }

    /// All of them together, microseconds.
    #[must_use]
    pub fn sum_us(&self) -> u128 {
        self.sum_us
    }

    /// Their mean, seconds; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.sorted_us.is_empty() {
            return 0.0;
        }
        self.sum_us as f64 / self.sorted_us.len() as f64 / 1e6
    }

    /// The longest, seconds; 0 of none.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.sorted_us.last().map_or(0.0, |us| *us as f64 / 1e6)
    }

    /// The least time, seconds, that a share `part` (0 to 1) of them does not exceed; 0 of none.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f64 {
        let count = self.sorted_us.len();
        let at = (part.clamp(0.0, 1.0) * count as f64).ceil() as usize;
        let us = self
            .sorted_us
            .get(at.saturating_sub(1).min(count.saturating_sub(1)));
        us.map_or(0.0, |us| *us as f64 / 1e6)
    }

    /// The empirical distribution function as steps: (seconds, share not above), at most about
    /// `points` of them, first and last among them.
    #[must_use]
    pub fn distribution(&self, points: usize) -> Vec<(f64, f64)> {
        let count = self.sorted_us.len();
        let step = count.div_ceil(points.max(1)).max(1);
        let mut ranks: Vec<usize> = (0..count).step_by(step).collect();
        if count > 0 && ranks.last() != Some(&(count - 1)) {
            ranks.push(count - 1);
        }
        let at = |rank: &usize| {
            let us = self.sorted_us.get(*rank).copied().unwrap_or(0);
            (us as f64 / 1e6, (rank + 1) as f64 / count as f64)
        };
        ranks.iter().map(at).collect()
    }
}

/// The preemptible servers of a simulation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transients {
    /// How many were asked for.
    pub launched: u64,
    /// How many the provider took.
    pub interrupted: u64,
    /// How long they were up.
    pub lives: MeasuredTimes,
    /// How many were up in the mean, from the first arrival to the last.
    pub mean_up: f64,
    /// The most that there were at a time, from the request to the end: what the budget limits.
    pub most: u32,
    /// What they were paid for, from the request to the end, hours.
    pub paid_hours: f64,
}

/// A simulation's outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationResult {
    /// From the arrival of its job until a task began (the last time, if it was lost), for each
    /// task of a short job.
    pub short: MeasuredTimes,
    /// The same for tasks of long jobs.
    pub long: MeasuredTimes,
    /// From the arrival of a short job until its last task was done.
    pub short_jobs: MeasuredTimes,
    /// The same for long jobs.
    pub long_jobs: MeasuredTimes,
    /// Tasks of short jobs that ran on transient servers to their end.
    pub on_transients: u64,
    /// Tasks that were lost with a server and began anew.
    pub lost: u64,
    /// Work that was lost with them, seconds.
    pub lost_seconds: f64,
    /// From the loss of a task until it began again, for each loss.
    pub again: MeasuredTimes,
    /// How often the task was lost that was lost most often.
    pub most_losses: u32,
    /// The mean long-load ratio from the first arrival to the last.
    pub mean_long_load: f64,
    /// The share of that time in which the ratio was above the threshold; 0 without a policy.
    pub above_threshold: f64,
    /// The preemptible servers; all zero for the static partition.
    pub transients: Transients,
    /// When everything was done, microseconds.
    pub end_us: u64,
}
