//! What came of a replay: counts, latencies, both states over time. Written as JSON and as a chart.

use crate::{Comparison, Irregularities, LatencySummary, LifeTotals, SimError};
use ebbtide_files::FileError;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Default number of samples of a replay. A chart has not many more pixels.
const DEFAULT_SAMPLES: f64 = 400.0;

/// When to look at the region, in trace time.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    every: f64,
    next: f64,
}

impl Sampling {
    /// Every so many seconds of trace time; by default so that there are some hundred samples.
    ///
    /// # Errors
    /// [`SimError::Option`] for a step that is not above zero.
    pub fn new(span: (f64, f64), every: Option<f64>) -> Result<Self, SimError> {
        let every = every.unwrap_or_else(|| ((span.1 - span.0) / DEFAULT_SAMPLES).max(1.0));
        if every.is_finite() && every > 0.0 {
            Ok(Self {
                every,
                next: span.0,
            })
        } else {
            Err(SimError::Option(format!(
                "a sample every {every} s makes no sense: use more than 0"
            )))
        }
    }

    /// True if a sample is due before the event at this time; the next one is then a step later.
    pub fn due(&mut self, at: f64) -> bool {
        let due = at >= self.next;
        if due {
            // Time without events has no samples: nothing changes there.
            let steps = ((at - self.next) / self.every).floor() + 1.0;
            self.next += steps * self.every;
        }
        due
    }
}

/// Both states at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Trace time, in seconds.
    pub at_seconds: f64,
    pub classes: Vec<ClassSample>,
}

/// One resource class of the whole region, in the unit that the class names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassSample {
    pub resource_class: String,
    /// What may be used in all.
    pub capacity: u64,
    /// Used in h_n: by normal instances, or promised to them.
    pub normal: u64,
    /// Used by preemptible instances that may stay.
    pub preemptible: u64,
    /// Used by preemptible instances that are being evacuated.
    pub leaving: u64,
}

impl ClassSample {
    /// Used in h_f: by everybody.
    #[must_use]
    pub fn full(&self) -> u64 {
        self.normal + self.preemptible + self.leaving
    }
}

/// What came of a replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReplayReport {
    /// File of the trace.
    pub trace: String,
    /// Where it was replayed: the endpoint of a region, or `offline`.
    pub against: String,
    /// The ranking policy.
    pub policy: String,
    pub cost_module: String,
    /// The share of VMs that were preemptible.
    pub preemptible_share: f64,
    /// The seed of their choice.
    pub seed: u64,
    /// Events of the trace that were replayed.
    pub events: u64,
    /// Events of the trace in all.
    pub events_in_trace: u64,
    /// True if it was stopped before the end.
    pub interrupted: bool,
    /// What a lenient reader skipped or mended.
    pub irregularities: Irregularities,
    /// Trace time from the first event to the last replayed one, in seconds.
    pub trace_seconds: f64,
    /// How long it took, in seconds.
    pub wall_seconds: f64,
    /// Creates that were asked for.
    pub creates: u64,
    /// Creates that got a place.
    pub placed: u64,
    /// Placed ones that had to wait for others to leave.
    pub waited: u64,
    /// Creates without a valid host.
    pub refused: u64,
    /// Creates that failed in another way.
    pub failed: u64,
    /// Deletes that were done.
    pub deletes: u64,
    /// Deletes of VMs that were not there any more: refused, preempted or failed before.
    pub deletes_without_server: u64,
    /// Preemptible VMs that were evacuated.
    pub preempted: u64,
    /// What became of the preemptible ones; only of a replay without a region, which knows when
    /// each would have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lives: Option<LifeTotals>,
    /// Time from the question to the answer of each create.
    pub decision_latency: LatencySummary,
    /// The comparison with recorded placements, if there was one.
    pub placements: Option<Comparison>,
    /// Both states over time.
    pub samples: Vec<Sample>,
}

impl ReplayReport {
    /// Writes `report.json`, `utilisation.svg` (the chart of the samples) and, if lives are known,
    /// `lifetimes.csv` into a directory, which is made if it is not there. Answers with the files.
    ///
    /// # Errors
    /// [`FileError::Write`].
    pub fn write(&self, directory: &Path, chart: String) -> Result<Vec<PathBuf>, SimError> {
        ebbtide_files::create_directory(directory)?;
        let json = serde_json::to_string_pretty(self).map_err(|error| FileError::Write {
            path: directory.to_owned(),
            problem: error.to_string(),
        })?;
        let mut files = Vec::new();
        let mut texts = vec![("report.json", json + "\n"), ("utilisation.svg", chart)];
        texts.extend(
            self.lives
                .iter()
                .map(|lives| ("lifetimes.csv", lives.csv())),
        );
        for (name, text) in texts {
            let path = directory.join(name);
            ebbtide_files::write(&path, text)?;
            files.push(path);
        }
        Ok(files)
    }

    /// The result in one line.
    #[must_use]
    pub fn title(&self) -> String {
        let file = Path::new(&self.trace)
            .file_name()
            .map(std::ffi::OsStr::to_string_lossy);
        format!(
            "{}: {} of {} creates placed, {} refused, {} preempted ({})",
            file.as_deref().unwrap_or("trace"),
            self.placed,
            self.creates,
            self.refused,
            self.preempted,
            self.policy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_at_steps_of_trace_time_and_never_twice() {
        let mut sampling = Sampling::new((10.0, 100.0), Some(10.0)).unwrap();
        let due: Vec<bool> = [10.0, 10.0, 19.0, 20.0, 55.0, 59.0, 60.0]
            .into_iter()
            .map(|at| sampling.due(at))
            .collect();
        assert_eq!(due, [true, false, false, true, true, false, true]);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                Sampling::new((0.0, 1.0), Some(bad)).is_err(),
                "{bad} was taken"
            );
        }
        assert!(Sampling::new((5.0, 5.0), None).unwrap().due(5.0));
    }

    #[test]
    fn a_report_is_two_files_that_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let report = ReplayReport {
            trace: "a/<b>&.csv".into(),
            creates: 3,
            ..ReplayReport::default()
        };
        let chart = report.title();
        let files = report.write(&directory.path().join("new"), chart).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&files[0]).unwrap()).unwrap();
        assert_eq!(json["creates"], 3);
        assert_eq!(json["decision_latency"]["p99_ms"], 0.0);
        assert!(files[1].ends_with("new/utilisation.svg"));
        let title = std::fs::read_to_string(&files[1]).unwrap();
        assert_eq!(
            title,
            "<b>&.csv: 0 of 3 creates placed, 0 refused, 0 preempted ()"
        );
    }
}
