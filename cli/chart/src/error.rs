//! Why a figure cannot be drawn.

use thiserror::Error;

/// Why there is no chart.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ChartError {
    /// A figure without panels.
    #[error("the figure {title:?} has no panels")]
    Empty { title: String },
    /// A range that no axis can have.
    #[error("the axis {label:?} cannot go from {low} to {high}: {problem}")]
    Range {
        /// The axis' label.
        label: String,
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The drawing library gave up.
    #[error("the chart cannot be drawn: {0}")]
    Drawing(String),
}

impl ChartError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "EB-CHART-001",
            Self::Range { .. } => "EB-CHART-002",
            Self::Drawing(_) => "EB-CHART-003",
        }
    }
}
