//! What can go wrong between Slurm, the region and the controller.

use thiserror::Error;

/// Why a burst cannot be managed, or a part of it was not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BurstError {
    /// An answer of Slurm that is not what its program promises.
    #[error("the answer of {program} is not understood: {problem}")]
    Answer {
        /// The command line.
        program: String,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// A program of Slurm failed, or did not answer in time.
    #[error("{program} did not work: {problem}")]
    Silent {
        /// The command line.
        program: String,
        /// What it said, or how it ended.
        problem: String,
    },
    /// A list of hosts that cannot be read.
    #[error("the list of hosts {text:?} cannot be read: {problem}")]
    Hosts {
        /// As it was given, shortened.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A setting that makes no sense.
    #[error("{key}: {problem}")]
    Setting {
        /// Which one.
        key: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// A line of a record that cannot be used.
    #[error("line {line} of the record: {problem}")]
    Record {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A node that is none of those that may be preemptible instances.
    #[error("node {node} is none of slurm.nodes ({nodes})")]
    NotOurs {
        /// The node.
        node: String,
        /// Those that are.
        nodes: String,
    },
    /// The budget is used up: nothing more is asked for.
    #[error("the budget is used up: {spent} of {budget} in the last {hours} h")]
    Budget {
        /// What was spent.
        spent: String,
        /// What may be spent.
        budget: String,
        /// In how long.
        hours: String,
    },
    /// The region did not give an instance.
    #[error("no instance for node {node}: {problem}")]
    NoInstance {
        /// For which node.
        node: String,
        /// In the region's words.
        problem: String,
    },
    /// An instance whose node did not come up in time.
    #[error("node {node} never came up on instance {instance}")]
    NeverUp {
        /// Which node.
        node: String,
        /// Its instance.
        instance: String,
    },
    /// A file or directory that cannot be used.
    #[error("cannot {what} {path}: {problem}")]
    Storage {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: String,
        /// What the system said.
        problem: String,
    },
    /// A bag that cannot be submitted as it is.
    #[error("the bag cannot be submitted: {problem}")]
    Lanes {
        /// Why.
        problem: String,
    },
    /// Slurm's configuration lacks what the controller needs.
    #[error("slurm.conf: {problem}")]
    Cluster {
        /// What is wrong, and the line that is needed.
        problem: String,
    },
}

impl BurstError {
    /// The stable code of this error; `docs/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Answer { .. } => "EB-BURST-001",
            Self::Silent { .. } => "EB-BURST-002",
            Self::Hosts { .. } => "EB-BURST-003",
            Self::Setting { .. } => "EB-BURST-004",
            Self::Record { .. } => "EB-BURST-005",
            Self::NotOurs { .. } => "EB-BURST-006",
            Self::Budget { .. } => "EB-BURST-007",
            Self::NoInstance { .. } => "EB-BURST-008",
            Self::NeverUp { .. } => "EB-BURST-009",
            Self::Storage { .. } => "EB-BURST-010",
            Self::Lanes { .. } => "EB-BURST-011",
            Self::Cluster { .. } => "EB-BURST-012",
        }
    }

    pub(crate) fn setting(key: &str, problem: impl Into<String>) -> Self {
        Self::Setting {
            key: key.to_owned(),
            problem: problem.into(),
        }
    }
}
