//! What can be wrong with a bag, with a question about it, or with what is said to its executor.

use thiserror::Error;

/// Why a bag cannot be planned or carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BagError {
    /// A number that no task, type or rule can have.
    #[error("{what} is {value}; it has to be {allowed}")]
    Value {
        /// Whose number, and which.
        what: String,
        /// As it was given.
        value: String,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// Two tasks or two instance types of one name.
    #[error("two {what}s are named {name:?}")]
    Duplicate {
        /// The kind of thing.
        what: &'static str,
        name: String,
    },
    /// A bag without tasks, or no instance types to run it on.
    #[error("there are no {0}s")]
    Nothing(&'static str),
    /// More than can be planned.
    #[error("there are {found} {what}s; at most {most} can be planned")]
    TooMany {
        /// The kind of thing.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// An instance type without any price, or no type with an on-demand price.
    #[error("{0}")]
    Price(String),
    /// A task that needs more memory than any instance type with an on-demand price has.
    #[error(
        "task {task:?} needs {memory_mb} MB of memory; the largest on-demand type, {largest}, has {largest_mb} MB"
    )]
    TooLarge {
        task: String,
        /// What it needs, MB.
        memory_mb: u64,
        /// The type that comes nearest.
        largest: String,
        /// What that has, MB.
        largest_mb: u64,
    },
    /// The proof that the deadline cannot be met, however many instances there are.
    #[error(
        "the deadline of {deadline} s cannot be met: task {task:?} alone takes {seconds} s on {fastest}, the fastest type that it \
         fits on, of which {boot} s are for booting and {margin} s are the margin; {seconds} s is the smallest deadline that can"
    )]
    Infeasible {
        /// The deadline, seconds.
        deadline: u64,
        /// The task that takes longest even on the fastest instance for it.
        task: String,
        /// That instance type.
        fastest: String,
        /// What it takes there with boot and margin, seconds: the smallest deadline that can be
        /// met.
        seconds: u64,
        /// Boot time, seconds.
        boot: u64,
        /// The margin, seconds.
        margin: u64,
    },
    /// Given instances that are not enough, or too many.
    #[error("these instances cannot run the bag: {0}")]
    Fleet(String),
    /// Text that is no bag, or no prices: with the line and what was expected.
    #[error("{0}")]
    File(String),
    /// An event that cannot be: time runs backwards, or an instance or task that the plan does not
    /// have.
    #[error("event at {at} s: {problem}")]
    Event {
        /// When, in seconds since the begin.
        at: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A price trace that cannot be used.
    #[error("prices of {of}: {problem}")]
    Trace {
        /// The instance type.
        of: String,
        /// What is wrong.
        problem: String,
    },
}

impl BagError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Value { .. } => "EB-BAG-001",
            Self::Duplicate { .. } => "EB-BAG-002",
            Self::Nothing(_) => "EB-BAG-003",
            Self::TooMany { .. } => "EB-BAG-004",
            Self::Price(_) => "EB-BAG-005",
            Self::TooLarge { .. } => "EB-BAG-006",
            Self::Infeasible { .. } => "EB-BAG-007",
            Self::Event { .. } => "EB-BAG-008",
            Self::Trace { .. } => "EB-BAG-009",
            Self::Fleet(_) => "EB-BAG-010",
            Self::File(_) => "EB-BAG-011",
        }
    }
}
