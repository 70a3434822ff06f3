//! Why a benchmark cannot be run, or why its answer is not to be used.

use ebbtide_engine::EngineError;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no figure.
#[derive(Debug, Error)]
pub enum BenchError {
    /// An option that makes no sense.
    #[error("{0}")]
    Option(String),
    /// The engine refused a request of the workload.
    #[error("the engine refused: {0}")]
    Engine(#[from] EngineError),
    /// The system does not tell what is needed to measure.
    #[error("cannot measure: {0}")]
    System(String),
    /// A file could not be read, or is not what it should be.
    #[error("cannot use {}: {problem}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Nova would refuse a request, a host or an option of the input.
    #[error("Nova would refuse the input: {0}")]
    Nova(String),
    /// The program that measures the service could not be run, or failed.
    #[error("cannot measure the service: {0}")]
    Service(String),
    /// A file could not be written.
    #[error("cannot write {}: {problem}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

impl BenchError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Option(_) => "EB-BENCH-001",
            Self::Engine(error) => error.code(),
            Self::System(_) => "EB-BENCH-004",
            Self::Service(_) => "EB-BENCH-005",
            Self::Read { .. } => "EB-BENCH-006",
            Self::Nova(_) => "EB-BENCH-007",
            Self::Write { .. } => "EB-BENCH-003",
        }
    }

    /// What helps, if anything is known to.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        match self {
            Self::Option(_) => Some("`ebbtide-lab bench --help` has the ranges".to_owned()),
            Self::Write { .. } => {
                Some("name a file in a directory that exists and can be written to".to_owned())
            }
            Self::System(_) => Some("measure on Linux with /proc mounted".to_owned()),
            Self::Service(_) => Some(
                "build all that it needs: `cargo build --release -p ebbtide-lab -p ebbtide-bench-service -p ebbtide-scheduler`"
                    .to_owned(),
            ),
            Self::Read { .. } => Some(
                "inputs and answers lie in integration/nova/bench; bench_nova.py in integration/nova/oracle makes them".to_owned(),
            ),
            Self::Nova(_) | Self::Engine(_) => None,
        }
    }
}
