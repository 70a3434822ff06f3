//! Lifetimes as a table of comma-separated values: our own plain format, and the paper's public
//! data as they are.
//!
//! The plain format has the columns `lifetime_hours` and `ended` (`preempted` or `stopped`), if
//! wanted `launched` (RFC 3339), and any others to group by. The public data of the paper
//! (github.com/kadupitiya/goog-preemption-data) are known by their columns `time_in_sec` and
//! `end_event`; rows whose `preemptible` is not `true` are left out, `machine_type` is the label
//! `flavor`, `insert_start` the launch. Their `day_of_week` and `hr_of_day` are those of the end.

use crate::error::LifetimeError;
use crate::labelled_life::LabelledLife;
use crate::observation::Observation;
use csv::StringRecord;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// More rows than this are refused: a file of another kind, or of another century.
const LARGEST: usize = 10_000_000;

/// What a file of lifetimes says.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its rows, in their order.
    pub rows: Vec<LabelledLife>,
    /// How many rows are about instances that are not preemptible.
    pub left_out: usize,
}

/// Where each thing stands in one of the formats.
struct Columns {
    hours: usize,
    /// Hours of one unit of that column.
    unit: f64,
    ended: usize,
    /// What that column says where the user ended the instance.
    stopped: &'static str,
    launched: Option<usize>,
    preemptible: Option<usize>,
    labels: Vec<(usize, String)>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// [`LifetimeError::Columns`] for a header of no known format; [`LifetimeError::Row`] for a row
    /// that cannot be understood. Whether lifetimes are possible is the question of
    /// [`crate::labelled_life::check`].
    pub fn parse(bytes: &[u8]) -> Result<Self, LifetimeError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(bytes);
        let header = reader
            .headers()
            .map_err(|error| LifetimeError::Columns {
                problem: error.to_string(),
            })?
            .clone();
        let columns = Columns::of(&header)?;
        let mut table = Self {
            rows: Vec::new(),
            left_out: 0,
        };
        for record in reader.records() {
            let record = record.map_err(|error| LifetimeError::Row {
                line: line_of(bytes, error.position()),
                problem: error.to_string(),
            })?;
            match columns.row(&record, line_of(bytes, record.position()))? {
                Some(row) => table.rows.push(row),
                None => table.left_out += 1,
            }
            if table.rows.len() > LARGEST {
                return Err(LifetimeError::Columns {
                    problem: format!("there are more than {LARGEST} rows"),
                });
            }
        }
        Ok(table)
    }
}

/// The line of a record, from 1. Where lines end in CR and LF the reader takes a record to begin at
/// the LF of the line before.
fn line_of(bytes: &[u8], position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else { return 0 };
    let byte = usize::try_from(position.byte()).ok();
    let at_end = byte.and_then(|at| bytes.get(at)) == Some(&b'\n');
    position.line() + u64::from(at_end)
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, LifetimeError> {
        let refuse = |problem: String| Err(LifetimeError::Columns { problem });
        if header.is_empty() || header.iter().all(str::is_empty) {
            return refuse("the file is empty".to_owned());
        }
        for (at, name) in header.iter().enumerate() {
            if header.iter().take(at).any(|other| other == name) {
                return refuse(format!("there are two columns {name:?}"));
            }
        }
        let place = |name: &str| header.iter().position(|own| own == name);
        let names: Vec<&str> = header.iter().collect();
        let (mut columns, taken) = match (place("lifetime_hours"), place("time_in_sec")) {
            (Some(hours), _) => {
                let Some(ended) = place("ended") else {
                    return refuse(format!(
                        "there is no column ended (preempted or stopped); there are {}",
                        names.join(", ")
                    ));
                };
                let columns = Self {
                    hours,
                    unit: 1.0,
                    ended,
                    stopped: "stopped",
                    launched: place("launched"),
                    preemptible: None,
                    labels: Vec::new(),
                };
                (columns, vec!["lifetime_hours", "ended", "launched"])
            }
            (None, Some(seconds)) => {
                let Some(ended) = place("end_event") else {
                    return refuse(format!(
                        "there is no column end_event (preempted or stop); there are {}",
                        names.join(", ")
                    ));
                };
                let columns = Self {
                    hours: seconds,
                    unit: 1.0 / 3600.0,
                    ended,
                    stopped: "stop",
                    launched: place("insert_start"),
                    preemptible: place("preemptible"),
                    labels: Vec::new(),
                };
                let taken = ["time_in_sec", "end_event", "insert_start", "insert_end"];
                (
                    columns,
                    [&taken[..], &["end_time", "preemptible", "name"]].concat(),
                )
            }
            (None, None) => {
                if let [only] = names[..]
                    && let Some(separator) = only.chars().find(|c| ";\t|".contains(*c))
                {
                    return refuse(format!(
                        "columns are separated by commas, and here they seem to be by {separator:?}"
                    ));
                }
                let other = names
                    .iter()
                    .find(|name| name.to_lowercase().starts_with("lifetime"));
                return refuse(match other {
                    Some(other) => format!(
                        "there is a column {other:?}, but lifetimes are hours, in a column lifetime_hours: convert them"
                    ),
                    None => format!(
                        "there is no column lifetime_hours (nor time_in_sec, as in the public data); there are {}",
                        names.join(", ")
                    ),
                });
            }
        };
        let others = names.iter().enumerate();
        columns.labels = others
            .filter(|(_, name)| !taken.contains(name) && !name.is_empty())
            .map(|(at, name)| {
                // The paper's machine types are what we call flavors.
                let flavor = columns.stopped == "stop" && *name == "machine_type";
                (at, if flavor { "flavor" } else { name }.to_owned())
            })
            .collect();
        Ok(columns)
    }

    /// One row; `None` for an instance that is not preemptible.
    fn row(&self, record: &StringRecord, line: u64) -> Result<Option<LabelledLife>, LifetimeError> {
        let refuse = |problem: String| Err(LifetimeError::Row { line, problem });
        let cell = |at: usize| record.get(at).unwrap_or_default();
        if self.preemptible.is_some_and(|at| cell(at) != "true") {
            return Ok(None);
        }
        let written = cell(self.hours);
        let Ok(value) = written.parse::<f64>() else {
            return refuse(format!("the lifetime {written:?} is no number"));
        };
        let ended = match cell(self.ended) {
            "preempted" => true,
            other if other == self.stopped => false,
            other => {
                return refuse(format!(
                    "it ended by {other:?}; that can be preempted or {}",
                    self.stopped
                ));
            }
        };
        let launched = match self.launched.map(cell).filter(|text| !text.is_empty()) {
            Some(text) => match OffsetDateTime::parse(text, &Rfc3339) {
                Ok(at) => Some(at),
                Err(_) => {
                    return refuse(format!(
                        "it was launched at {text:?}; a time looks like 2026-05-04T10:00:00Z"
                    ));
                }
            },
            None => None,
        };
        let labels: BTreeMap<String, String> = self
            .labels
            .iter()
            .map(|(at, name)| (name.clone(), cell(*at).to_owned()))
            .collect();
        Ok(Some(LabelledLife {
            observation: Observation {
                hours: value * self.unit,
                ended,
            },
            launched,
            labels,
            line,
        }))
    }
}
