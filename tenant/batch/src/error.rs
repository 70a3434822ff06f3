//! What can go wrong with batch work.

use thiserror::Error;

/// An error of the batch service.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// A setting of the operator's file that cannot be used.
    #[error("{key}: {problem}")]
    Setting {
        key: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// Work that is not understood or cannot be done.
    #[error("the work cannot be taken: {key}: {problem}")]
    Work {
        /// Which key of the document.
        key: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// No type of server has room for a member of the work.
    #[error("stage {stage} needs {cpus} processors and {memory_mb} MB: no type of server has them")]
    NoType {
        stage: String,
        /// Processors of one member.
        cpus: u32,
        /// Memory of one member.
        memory_mb: u64,
    },
    /// Work that the service does not know.
    #[error("there is no work {id}")]
    Unknown {
        /// As it was given.
        id: String,
    },
    /// The service has no elastic partition.
    #[error("there is no elastic partition: the service's file has no table [elastic]")]
    NoElastic,
    /// The work is over: nothing about it can be changed.
    #[error("work {id} is {state}")]
    Over {
        id: String,
        /// What became of it.
        state: &'static str,
    },
    /// The budget of the work is used up.
    #[error("the budget of work {id} is used up: {spent} of {budget}")]
    Budget {
        id: String,
        /// What was spent.
        spent: String,
        /// What may be spent.
        budget: String,
    },
    /// A line of the book that cannot be used.
    #[error("line {line} of the book: {problem}")]
    Book {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A member that was started and did not begin.
    #[error("member {member} did not begin on node {node}: {problem}")]
    NotStarted {
        member: String,
        node: String,
        /// In Slurm's words, or ours.
        problem: String,
    },
    /// A member that failed as often as it may.
    #[error("member {member} of work {id} failed with exit code {exit}, {attempts} attempts")]
    Failed {
        /// The work.
        id: String,
        member: String,
        /// The exit code of the last attempt.
        exit: i32,
        /// How often it was tried.
        attempts: u32,
    },
    /// A bag by maps is not done by its deadline, or was done later.
    #[error(
        "work {id} missed its deadline: {done} of {tasks} tasks done, {took} s of {deadline} s"
    )]
    Missed {
        id: String,
        /// Tasks that are done.
        done: usize,
        /// All of them.
        tasks: usize,
        /// When the last one was done, or the time until now, seconds since the begin.
        took: i64,
        /// The deadline, seconds since the begin.
        deadline: i64,
    },
}

impl BatchError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Setting { .. } => "EB-BATCH-001",
            Self::Work { .. } => "EB-BATCH-002",
            Self::NoType { .. } => "EB-BATCH-003",
            Self::Unknown { .. } | Self::NoElastic => "EB-BATCH-004",
            Self::Over { .. } => "EB-BATCH-005",
            Self::Budget { .. } => "EB-BATCH-006",
            Self::Book { .. } => "EB-BATCH-007",
            Self::NotStarted { .. } => "EB-BATCH-008",
            Self::Failed { .. } => "EB-BATCH-009",
            Self::Missed { .. } => "EB-BATCH-016",
        }
    }

    pub(crate) fn setting(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Setting {
            key: key.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn work(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Work {
            key: key.into(),
            problem: problem.into(),
        }
    }
}

impl From<ebbtide_burst::BurstError> for BatchError {
    fn from(error: ebbtide_burst::BurstError) -> Self {
        use ebbtide_burst::BurstError;
        match error {
            BurstError::Setting { key, problem } => Self::Setting { key, problem },
            other => Self::setting("the file", other.to_string()),
        }
    }
}
