//! How many servers a trace could use over time: figure 1 of the paper.

use crate::error::ElasticError;
use crate::trace::Trace;

/// More windows than a table or a chart can show.
const MOST_WINDOWS: u64 = 1_000_000;

/// The tasks that run at one time if each begins when its job arrives, as on a cluster without end
/// and with a scheduler that needs no time.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The length of a window, microseconds.
    pub window_us: u64,
    /// The mean number of running tasks in each window from the first arrival on. Windows that
    /// reach beyond the last arrival are left out: nothing arrives in a part of them.
    pub windows: Vec<f64>,
}

impl Demand {
    /// Of a trace, in windows.
    ///
    /// # Errors
    /// [`ElasticError::Setting`] for a window that is zero, longer than the trace, or so short that
    /// there are more than a million.
    pub fn of(trace: &Trace, window_us: u64) -> Result<Self, ElasticError> {
        let span = trace.span_us();
        let count = span.checked_div(window_us).unwrap_or(0);
        if !(1..=MOST_WINDOWS).contains(&count) {
            return Err(ElasticError::setting(
                "the window of the demand",
                format!("{} s", window_us as f64 / 1e6),
                "above zero, at most the time from the first arrival to the last, and at least a millionth of it",
            ));
        }
        let begin = trace.jobs().first().map_or(0, |job| job.arrival_us);
        let mut busy = vec![0_u64; count as usize];
        for job in trace.jobs() {
            let from = job.arrival_us - begin;
            for task in &job.tasks_us {
                let until = from + task;
                let first = (from / window_us) as usize;
                for (at, busy) in busy.iter_mut().enumerate().skip(first) {
                    let opens = at as u64 * window_us;
                    if opens >= until {
                        break;
                    }
                    *busy += until.min(opens + window_us) - from.max(opens);
                }
            }
        }
        let mean = |busy: u64| busy as f64 / window_us as f64;
        Ok(Self {
            window_us,
            windows: busy.into_iter().map(mean).collect(),
        })
    }

    /// The mean over all windows.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.windows.iter().sum::<f64>() / self.windows.len().max(1) as f64
    }

    /// The standard deviation of the windows.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = self.windows.iter().map(|tasks| (tasks - mean).powi(2));
        (squares.sum::<f64>() / self.windows.len().max(1) as f64).sqrt()
    }

    /// The window with the fewest tasks.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.windows.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The window with the most tasks.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.windows.iter().copied().fold(0.0, f64::max)
    }
}
