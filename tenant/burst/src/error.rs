//! What can go wrong between Slurm, the region and the controller.

use thiserror::Error;

/// An error of the service beside slurmctld and its programs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BurstError {
    /// An answer of Slurm that does not have the expected form.
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
        /// Its error output, or how it ended.
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
    /// An invalid setting.
    #[error("{key}: {problem}")]
    Setting {
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
    /// A node that is not among the preemptible nodes.
    #[error("node {node} is none of the configuration file ({nodes})")]
    NotOurs {
        node: String,
        /// The preemptible nodes.
        nodes: String,
    },
    /// The budget is used up: the controller requests no more instances.
    #[error("the budget is used up: {spent} of {budget} in the last {hours} h")]
    Budget {
        /// Amount spent.
        spent: String,
        budget: String,
        /// Length of the budget's window.
        hours: String,
    },
    /// The region did not give an instance.
    #[error("no instance for node {node}: {problem}")]
    NoInstance {
        node: String,
        /// The reason that the region gives.
        problem: String,
    },
    /// An instance whose node did not come up in time.
    #[error("node {node} never came up on instance {instance}")]
    NeverUp { node: String, instance: String },
    /// A file or directory that cannot be used.
    #[error("cannot {what} {path}: {problem}")]
    Storage {
        /// The failed operation.
        what: &'static str,
        /// The file or directory.
        path: String,
        /// The error of the operating system.
        problem: String,
    },
    /// Slurm's configuration lacks what the controller needs.
    #[error("slurm.conf: {problem}")]
    Cluster {
        /// What is wrong, and the line that is needed.
        problem: String,
    },
    /// A job that Slurm holds, because its launch failed again and again.
    #[error(
        "job {job} is held: its launch failed {times} times; the log of slurmd says why. Then `scontrol release {job}`"
    )]
    Held {
        /// Slurm's number.
        job: u32,
        /// How often its launch failed.
        times: u32,
    },
}

impl BurstError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
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
            Self::Cluster { .. } => "EB-BURST-012",
            Self::Held { .. } => "EB-BURST-013",
        }
    }

    pub(crate) fn setting(key: &str, problem: impl Into<String>) -> Self {
        Self::Setting {
            key: key.to_owned(),
            problem: problem.into(),
        }
    }
}
