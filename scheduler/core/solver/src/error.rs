//! What can be wrong with a problem. All of it is a mistake of the caller; a host that cannot give
//! enough is not an error but an [`CoverResult`](crate::CoverResult).

use thiserror::Error;

use crate::cost::EvictionCost;
use crate::joint::MAX_JOINT;
use crate::problem::{MAX_CANDIDATES, TOTAL_AGE_LIMIT_MS};

/// A malformed problem. Indices are positions in the caller's columns.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum SolverError {
    /// A floating-point cost that is NaN, negative or too large.
    #[error(
        "{units} is not a cost: give a finite number from 0 to {limit} units",
        limit = EvictionCost::TOTAL_LIMIT
    )]
    CostNotRepresentable {
        /// What was given.
        units: f64,
    },

    /// A column has another length than the candidates need.
    #[error(
        "column `{column}` has {found} entries, {expected} are needed: pass one entry a \
         candidate (one a candidate and resource class for `resources`)"
    )]
    ColumnLength {
        /// The field of the problem.
        column: &'static str,
        /// Entries needed.
        expected: usize,
        /// Entries found.
        found: usize,
    },

    /// A candidate gives less than nothing.
    #[error(
        "candidate {candidate} has {amount} of resource class {class}: amounts must not be \
         negative"
    )]
    NegativeResource {
        /// Position of the candidate.
        candidate: usize,
        /// Position of the resource class.
        class: usize,
        /// The amount found.
        amount: i64,
    },

    /// The costs of all candidates add up to more than the arithmetic is proven for.
    #[error(
        "the candidates cost {micros} micro-units together, more than {limit}: scale the \
         cost module down",
        limit = EvictionCost::TOTAL_LIMIT.micros()
    )]
    CostOverflow {
        /// The sum, in micro-units.
        micros: u128,
    },

    /// The ages of all candidates add up to more than the arithmetic is proven for.
    #[error(
        "the candidates are {millis} ms old together, more than {TOTAL_AGE_LIMIT_MS}: check \
         the creation times"
    )]
    AgeOverflow {
        /// The sum, in milliseconds.
        millis: u128,
    },

    /// More candidates than one host can have.
    #[error("{found} candidates on one host, at most {MAX_CANDIDATES} are supported")]
    TooManyCandidates {
        /// Number of candidates.
        found: usize,
    },

    /// A candidate names a budget that is not in the list of limits.
    #[error(
        "candidate {candidate} belongs to budget {budget}, but there are only {budgets} \
         limits: use NO_BUDGET for an empty place"
    )]
    UnknownBudget {
        /// Position of the candidate.
        candidate: usize,
        /// The budget's position that was named.
        budget: u32,
        /// Number of limits.
        budgets: usize,
    },

    /// A surcharge by group whose steps fall.
    #[error(
        "victim number {step} of a group is charged less than the one before it: give steps that \
         never fall"
    )]
    FallingStep {
        /// Which victim, from 1.
        step: usize,
    },

    /// A joint problem of no or too many instances.
    #[error("{count} instances cannot be placed together: 1 to {MAX_JOINT} can")]
    JointCount { count: u32 },
}

impl SolverError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            SolverError::CostNotRepresentable { .. } => "EB-SOLVER-001",
            SolverError::ColumnLength { .. } => "EB-SOLVER-002",
            SolverError::NegativeResource { .. } => "EB-SOLVER-003",
            SolverError::CostOverflow { .. } => "EB-SOLVER-004",
            SolverError::AgeOverflow { .. } => "EB-SOLVER-005",
            SolverError::TooManyCandidates { .. } => "EB-SOLVER-006",
            SolverError::UnknownBudget { .. } => "EB-SOLVER-007",
            SolverError::FallingStep { .. } => "EB-SOLVER-008",
            SolverError::JointCount { .. } => "EB-SOLVER-009",
        }
    }
}
