//! What can be wrong with a job, and with a record of availability.

use ebbtide_model::Money;
use thiserror::Error;

/// Why a job, a record or a question is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeadlineError {
    /// A time that must not be zero.
    #[error("the {what} is zero; give a time above zero")]
    Zero {
        /// Which time.
        what: &'static str,
    },
    /// A time that is too long for exact sums.
    #[error("the {what} is {seconds} s; give at most ten years")]
    TooLong {
        /// Which time.
        what: &'static str,
        /// The time.
        seconds: u64,
    },
    /// Prices that make no sense.
    #[error(
        "prices of {spot} preemptible and {on_demand} on demand an hour: give an on-demand price above zero, at most a million, and a preemptible price that is not above it"
    )]
    Prices {
        /// The preemptible price.
        spot: Money,
        /// The on-demand price.
        on_demand: Money,
    },
    /// No policy can meet this deadline.
    #[error(
        "{work} s of work and a changeover of {changeover} s do not fit before the deadline after {deadline} s: give a later deadline"
    )]
    Infeasible {
        /// Seconds of work.
        work: u64,
        /// Seconds until a server makes progress.
        changeover: u64,
        /// Seconds until the deadline.
        deadline: u64,
    },
    /// A row that cannot be read.
    #[error("line {line}: {problem}")]
    Row {
        /// The line of the file, counted from 1 with the header.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A record without a tick.
    #[error("the record of availability is empty; give a file with at least one run")]
    Empty,
    /// A record that ends before the deadline.
    #[error(
        "the record {series} has {seconds} s from the start of the job, its deadline is after {deadline} s; give a shorter job or a longer record"
    )]
    TooShort {
        /// The record.
        series: String,
        /// Seconds of it that are left.
        seconds: u64,
        /// Seconds until the deadline.
        deadline: u64,
    },
    /// The optimum's table would be too large.
    #[error(
        "the optimum of this job needs a table of {cells} cells, more than {allowed}: give times that are multiples of a minute, or a shorter job"
    )]
    TooLarge {
        /// Cells of the table.
        cells: u64,
        /// The most that is allowed.
        allowed: u64,
    },
    /// A number of slices that no time can be divided by.
    #[error("the number of time slices is {slices}; give 1 to {most}")]
    Slices {
        /// The number.
        slices: u32,
        /// The most that is allowed.
        most: u32,
    },
}

impl DeadlineError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Zero { .. }
            | Self::TooLong { .. }
            | Self::Prices { .. }
            | Self::Slices { .. } => "EB-DEADLINE-001",
            Self::Infeasible { .. } => "EB-DEADLINE-002",
            Self::Row { .. } => "EB-DEADLINE-003",
            Self::Empty => "EB-DEADLINE-004",
            Self::TooShort { .. } => "EB-DEADLINE-005",
            Self::TooLarge { .. } => "EB-DEADLINE-006",
        }
    }

    /// A setting is to blame, not a record.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(self.code(), "EB-DEADLINE-001" | "EB-DEADLINE-002")
    }
}
