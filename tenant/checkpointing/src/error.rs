//! What can be wrong with a price history, and with a question about one.

use thiserror::Error;

/// Why a history cannot be used, or a question not be answered.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CheckpointingError {
    /// Nothing in it.
    #[error("the price history is empty")]
    Empty,
    /// One price says nothing about how long it held.
    #[error(
        "the price history{} has one row only: it says how high the price was, but not how long",
        of(series)
    )]
    OneRow {
        /// The series; empty if there is only one.
        series: String,
    },
    /// Times that go back.
    #[error("{place}: time {time} comes after {before}; the rows of a series have to be in order")]
    Unsorted {
        /// The series and the row.
        place: String,
        /// The time of the row, seconds.
        time: i64,
        /// The time of the row before it, seconds.
        before: i64,
    },
    /// Two prices at one time.
    #[error("{place}: time {time} stands there twice, with the prices {first} and {second}")]
    Duplicate {
        /// The series and the row.
        place: String,
        /// The time, seconds.
        time: i64,
        /// The price of the row before.
        first: String,
        /// The price of this row.
        second: String,
    },
    /// A silence too long to be a price that held.
    #[error(
        "{place}: {days:.1} days without a row before time {time}, more than the {allowed:.1} that are allowed: a price holds until the next row, or the record has a hole"
    )]
    Gap {
        /// The series and the row.
        place: String,
        /// The time after the gap, seconds.
        time: i64,
        /// Its length in days.
        days: f64,
        /// The longest that is allowed, in days.
        allowed: f64,
    },
    /// A row that cannot be read.
    #[error("line {line}: {problem}")]
    Row {
        /// The line of the file, counted from 1 with the header.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A header without the columns that are needed.
    #[error("no column {missing:?} in the header, which has: {found}")]
    Header {
        /// The column.
        missing: &'static str,
        /// What there is.
        found: String,
    },
    /// A question with an impossible number in it.
    #[error("{what} is {value}; it has to be {allowed}")]
    Question {
        /// What was given.
        what: &'static str,
        value: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// No bid that was asked about ever reaches a price.
    #[error(
        "never runs: the highest bid is {bid}, and the lowest price of the whole history {lowest}"
    )]
    NeverRuns {
        /// The highest bid.
        bid: String,
        /// The lowest price.
        lowest: String,
    },
    /// The history ends too early for the job.
    #[error(
        "no job of {job_seconds} s that begins within the history ends in it (it is {days:.1} days long): a longer history or higher bids are needed"
    )]
    NeverEnds {
        /// The job, seconds.
        job_seconds: i64,
        /// The history, days.
        days: f64,
    },
}

/// The series in quotes, after a space; nothing if there is only one.
fn of(series: &str) -> String {
    if series.is_empty() {
        String::new()
    } else {
        format!(" {series:?}")
    }
}

impl CheckpointingError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "EB-CKPT-001",
            Self::OneRow { .. } => "EB-CKPT-002",
            Self::Unsorted { .. } => "EB-CKPT-003",
            Self::Duplicate { .. } => "EB-CKPT-004",
            Self::Gap { .. } => "EB-CKPT-005",
            Self::Row { .. } => "EB-CKPT-006",
            Self::Header { .. } => "EB-CKPT-007",
            Self::Question { .. } => "EB-CKPT-008",
            Self::NeverRuns { .. } => "EB-CKPT-009",
            Self::NeverEnds { .. } => "EB-CKPT-010",
        }
    }
}
