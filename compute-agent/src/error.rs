//! Errors that keep the agent from working.

use crate::driver::DriverError;
use ebbtide_bus::BusError;
use ebbtide_model::names;
use ebbtide_model::settings::OutOfRange;
use ebbtide_service_manager::health::HealthError;
use std::path::PathBuf;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum AgentError {
    /// A setting that is missing or makes no sense.
    #[error("configuration: {key}: {problem}")]
    Config {
        /// The key with its table, for example `agent.heartbeat_seconds`.
        key: String,
        /// What is wrong with it and what is possible.
        problem: String,
    },
    /// A configuration file that is not TOML.
    #[error("configuration file {path}: {problem}")]
    ConfigFile {
        path: PathBuf,
        /// Where and what.
        problem: String,
    },
    /// Another agent works on the same state.
    #[error(
        "state directory {state_dir} is in use by another agent (its lock file {lock} is held); each agent needs a \
         directory of its own: stop the other one, or set state_dir"
    )]
    AlreadyRunning {
        state_dir: PathBuf,
        /// The file that is locked.
        lock: PathBuf,
    },
    /// A file or directory that cannot be used.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The action that was tried.
        what: &'static str,
        path: PathBuf,
        /// The system's error text.
        source: std::io::Error,
    },
    /// The journal could not be written: the disk is full, or worse. Nothing is lost: what was not
    /// written was not done.
    #[error(
        "cannot write the journal {path}: {source}; no command is followed until it can be written again: \
         free space on that file system, or look at the disk"
    )]
    JournalWrite {
        path: PathBuf,
        /// The system's error text.
        source: std::io::Error,
    },
    /// The journal contains data in its middle that the agent did not write.
    #[error(
        "journal {path} is corrupt in line {line}: {problem}; the evacuations under way cannot be known. Look at the disk; \
         to begin anew, move the file away (the scheduler repeats what matters; a victim may get its notice a second time)"
    )]
    JournalCorrupt {
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The journal belongs to another agent.
    #[error(
        "journal {path} belongs to {found}, this agent is {expected}; set host and state_dir so that they fit together"
    )]
    JournalForeign {
        path: PathBuf,
        /// The host, or the version, that it names.
        found: String,
        /// What this agent can use.
        expected: String,
    },
    /// The agent that was asked is not ready.
    #[error(transparent)]
    Health(#[from] HealthError),
    /// The bus cannot be used, and waiting does not help.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The hypervisor did not execute an operator's command.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl AgentError {
    /// The stable code of this error, listed in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "EB-AGENT-001",
            Self::ConfigFile { .. } => "EB-AGENT-002",
            Self::AlreadyRunning { .. } => "EB-AGENT-003",
            Self::Io { .. } => "EB-AGENT-004",
            Self::JournalWrite { .. } => "EB-AGENT-005",
            Self::JournalCorrupt { .. } => "EB-AGENT-006",
            Self::JournalForeign { .. } => "EB-AGENT-007",
            Self::Health(error) => error.code(),
            Self::Bus(error) => error.code(),
            Self::Driver(error) => error.code(),
        }
    }

    /// What the process exits with: 2 for what a change of the configuration heals, 3 if another
    /// agent runs, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config { .. } | Self::ConfigFile { .. } | Self::JournalForeign { .. } => 2,
            Self::AlreadyRunning { .. } | Self::Bus(BusError::InUse { .. }) => 3,
            _ => 1,
        }
    }

    /// An [`AgentError::Config`] of a number of this table.
    pub(crate) fn out_of_range(table: &str, range: OutOfRange) -> Self {
        let problem = range.problem();
        Self::config(range.within(table).key, problem)
    }

    /// An [`AgentError::Config`].
    pub(crate) fn config(key: impl Into<String>, problem: impl Into<String>) -> Self {
        // The error quotes the refused value, which may be the URL of a broker.
        Self::Config {
            key: names::hide_logins(&key.into()),
            problem: names::hide_logins(&problem.into()),
        }
    }
}
