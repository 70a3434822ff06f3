//! What can be wrong with a model, with observations, or with a question about them.

use thiserror::Error;

/// Why a lifetime model cannot be made, fitted or asked.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LifetimeError {
    /// A parameter outside of what its distribution allows.
    #[error("the parameter {name} of the model {model} is {value}; it has to be {allowed}")]
    Parameter {
        /// The distribution.
        model: &'static str,
        /// The parameter, as in its paper.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// Points of a curve or phases that are not in order.
    #[error("the {model} model's points are not usable: {problem}")]
    Points {
        /// The distribution.
        model: &'static str,
        /// What is wrong, with the place.
        problem: String,
    },
    /// An observation that no lifetime can be.
    #[error("lifetime {number} is {hours} h; {problem}")]
    Observation {
        /// Which one, counted from 1.
        number: usize,
        /// Its value in hours.
        hours: f64,
        /// What is allowed.
        problem: String,
    },
    /// Not enough ended lifetimes to fit the model.
    #[error(
        "{needed} different ended lifetimes are needed to fit this model, there are {found} ({censored} were stopped by their users)"
    )]
    TooFew {
        /// The least number.
        needed: usize,
        /// How many there are.
        found: usize,
        /// How many observations are censored.
        censored: usize,
    },
    /// The search for parameters ended nowhere.
    #[error("no {model} model fits these lifetimes: {problem}")]
    NoFit {
        /// The distribution.
        model: &'static str,
        problem: String,
    },
    /// A question with an impossible number in it.
    #[error("{what} is {value}; it has to be {allowed}")]
    Question {
        /// What was given.
        what: &'static str,
        value: f64,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A row of a table that cannot be understood.
    #[error("line {line}: {problem}")]
    Row {
        /// Which line, counted from 1, the header included.
        line: u64,
        /// What is wrong and what is accepted.
        problem: String,
    },
    /// A table whose columns are not those of lifetimes, or that lacks what is asked for.
    #[error("{problem}")]
    Columns {
        /// What is missing, and what there is.
        problem: String,
    },
    /// The description of a model cannot be understood.
    #[error("no model: {problem}")]
    Description {
        /// What is wrong and what is accepted.
        problem: String,
    },
    /// The job cannot make progress: no instance lives long enough for one step and its checkpoint.
    #[error(
        "no instance lives long enough for one step of {step_hours} h and a checkpoint of {checkpoint_hours} h: the job would never end"
    )]
    NeverEnds {
        /// The step, hours.
        step_hours: f64,
        /// A checkpoint, hours.
        checkpoint_hours: f64,
    },
}

impl LifetimeError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Parameter { .. } => "EB-LIFETIME-001",
            Self::Points { .. } => "EB-LIFETIME-002",
            Self::Observation { .. } => "EB-LIFETIME-003",
            Self::TooFew { .. } => "EB-LIFETIME-004",
            Self::NoFit { .. } => "EB-LIFETIME-005",
            Self::Question { .. } => "EB-LIFETIME-006",
            Self::NeverEnds { .. } => "EB-LIFETIME-007",
            Self::Row { .. } => "EB-LIFETIME-008",
            Self::Columns { .. } => "EB-LIFETIME-009",
            Self::Description { .. } => "EB-LIFETIME-010",
        }
    }
}

/// `value` if it is a finite number above zero.
///
/// # Errors
/// [`LifetimeError::Parameter`] if not.
pub(crate) fn positive(
    model: &'static str,
    name: &'static str,
    value: f64,
) -> Result<f64, LifetimeError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(LifetimeError::Parameter {
        model,
        name,
        value,
        allowed: "a finite number above zero",
    })
}

/// A maximum lifetime: above zero, or infinite for none.
///
/// # Errors
/// [`LifetimeError::Parameter`] if it is neither.
pub(crate) fn maximum_of(model: &'static str, value: f64) -> Result<f64, LifetimeError> {
    if value > 0.0 {
        return Ok(value);
    }
    Err(LifetimeError::Parameter {
        model,
        name: "maximum",
        value,
        allowed: "above zero, or infinite for none",
    })
}
