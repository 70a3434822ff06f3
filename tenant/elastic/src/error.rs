//! What can be wrong with a trace, with a setting, or with what is said to the controller.

use thiserror::Error;

/// Why a partition cannot be managed, or a trace not be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElasticError {
    /// A setting that makes no sense.
    #[error("{what} is {value}; it has to be {allowed}")]
    Setting {
        what: &'static str,
        /// As it was given.
        value: String,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// A line of a trace that cannot be understood.
    #[error("line {line}: {problem}")]
    Line {
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it, and what is wanted.
        problem: String,
    },
    /// A trace without jobs.
    #[error("the trace has no jobs")]
    Empty,
    /// A job that comes before the one above it.
    #[error("line {line}: this job arrives at {at} s, the one before it at {before} s")]
    Unsorted {
        /// Which line, from 1.
        line: u64,
        /// Its arrival, seconds.
        at: String,
        /// The arrival of the job before it, seconds.
        before: String,
    },
    /// More than can be simulated.
    #[error("the trace has more than {most} {what}")]
    TooMany {
        /// Jobs or tasks.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// Long jobs, and all servers are for short ones.
    #[error(
        "{jobs} jobs are long, and all {servers} servers are reserved for short ones: no server can run them"
    )]
    NoRoom {
        /// Long jobs of the trace.
        jobs: usize,
        /// Servers of the cluster.
        servers: u32,
    },
    /// Something that cannot have happened: time runs backwards, or there is no such server.
    #[error("at {at_us} µs: {problem}")]
    Event {
        /// When, microseconds.
        at_us: u64,
        /// What is wrong with it.
        problem: String,
    },
}

impl ElasticError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Setting { .. } => "EB-ELASTIC-001",
            Self::Line { .. } => "EB-ELASTIC-002",
            Self::Empty => "EB-ELASTIC-003",
            Self::Unsorted { .. } => "EB-ELASTIC-004",
            Self::TooMany { .. } => "EB-ELASTIC-005",
            Self::NoRoom { .. } => "EB-ELASTIC-006",
            Self::Event { .. } => "EB-ELASTIC-007",
        }
    }

    pub(crate) fn setting(what: &'static str, value: impl ToString, allowed: &'static str) -> Self {
        Self::Setting {
            what,
            value: value.to_string(),
            allowed,
        }
    }
}
