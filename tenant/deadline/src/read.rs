//! The run-length form of the traces of `skypilot-org/spot-traces`.

use crate::{DeadlineError, Series};
use std::collections::BTreeMap;

/// The most ticks of all series together: four months of seconds.
const MOST_TICKS: u64 = 10_000_000;

/// Which series were recorded how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// A server was requested at each tick and let go at once.
    Availability,
    /// Servers were kept as long as they lived.
    Preemption,
}

/// A series and how it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSeries {
    pub kind: SeriesKind,
    /// The most servers at any tick: the size of the cluster that was recorded. At a tick with
    /// fewer the series says that there is none, since a job needs them all.
    pub servers: u32,
    pub series: Series,
}

/// Reads CSV with the columns kind, file, `gap_s`, `start_tick`, ticks and value: each row a run of
/// ticks with the same number of servers. The runs of a file follow each other.
///
/// # Errors
/// [`DeadlineError::Row`] for the first row that cannot be read, [`DeadlineError::Empty`] without
/// any.
pub fn read_runs(text: &str) -> Result<Vec<RecordedSeries>, DeadlineError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader
        .headers()
        .map_err(|error| row(1, error.to_string()))?;
    let column = |name: &str| {
        let place = headers.iter().position(|header| header == name);
        place.ok_or_else(|| row(1, format!("the column {name} is missing")))
    };
    let names = ["kind", "file", "gap_s", "start_tick", "ticks", "value"];
    let mut places = [0; 6];
    for (place, name) in places.iter_mut().zip(names) {
        *place = column(name)?;
    }
    let mut runs: BTreeMap<String, Runs> = BTreeMap::new();
    let mut total = 0u64;
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            row(line, error.to_string())
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let field = |at: usize| record.get(places[at]).unwrap_or("");
        let number = |at: usize| -> Result<u64, DeadlineError> {
            let text = field(at);
            text.parse().map_err(|_| {
                row(
                    line,
                    format!("{} is {text:?}, which is no whole number", names[at]),
                )
            })
        };
        let kind = match field(0) {
            "availability" => SeriesKind::Availability,
            "preemption" => SeriesKind::Preemption,
            other => {
                let problem = format!("kind is {other:?}; it is availability or preemption");
                return Err(row(line, problem));
            }
        };
        let run = Run {
            kind,
            gap: number(2)?,
            start: number(3)?,
            ticks: number(4)?,
            servers: u32::try_from(number(5)?)
                .map_err(|_| row(line, "value is too large".to_owned()))?,
        };
        total = total.saturating_add(run.ticks);
        if total > MOST_TICKS {
            return Err(row(line, format!("more than {MOST_TICKS} ticks")));
        }
        let file = runs.entry(field(1).to_owned()).or_default();
        file.add(run).map_err(|problem| row(line, problem))?;
    }
    if runs.is_empty() {
        return Err(DeadlineError::Empty);
    }
    runs.into_iter()
        .map(|(name, runs)| runs.recorded(&name))
        .collect()
}

fn row(line: u64, problem: String) -> DeadlineError {
    DeadlineError::Row { line, problem }
}

struct Run {
    kind: SeriesKind,
    gap: u64,
    start: u64,
    ticks: u64,
    servers: u32,
}

#[derive(Default)]
struct Runs {
    first: Option<(SeriesKind, u64)>,
    servers: Vec<u32>,
}

impl Runs {
    fn add(&mut self, run: Run) -> Result<(), String> {
        let (kind, gap) = *self.first.get_or_insert((run.kind, run.gap));
        if (kind, gap) != (run.kind, run.gap) || gap == 0 {
            return Err(
                "kind and gap_s are the same in all rows of a file, gap_s above zero".into(),
            );
        }
        if run.start != self.servers.len() as u64 {
            return Err(format!(
                "start_tick is {}, the runs before end at {}",
                run.start,
                self.servers.len()
            ));
        }
        let ticks = usize::try_from(run.ticks).map_err(|_| "ticks is too large".to_owned())?;
        self.servers.extend(std::iter::repeat_n(run.servers, ticks));
        Ok(())
    }

    fn recorded(self, name: &str) -> Result<RecordedSeries, DeadlineError> {
        let (kind, gap) = self.first.ok_or(DeadlineError::Empty)?;
        let most = self.servers.iter().copied().max().unwrap_or(0).max(1);
        let available = self
            .servers
            .iter()
            .map(|&servers| servers >= most)
            .collect();
        Ok(RecordedSeries {
            kind,
            servers: most,
            series: Series::new(name, gap, available)?,
        })
    }
}
