//! Everything that can go wrong when a server or a process is started, with stable codes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The harness's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server or a process could not be had. The display text says what, where and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program is not installed.
    #[error(
        "EB-HARNESS-001: the program `{program}` is missing (looked in {searched}); \
         run as root: bash devstack/lib/packages.sh {package}"
    )]
    ProgramMissing {
        /// Its name.
        program: String,
        /// The folders that were searched.
        searched: String,
        /// What `packages.sh` calls the service that it belongs to.
        package: &'static str,
    },
    /// A file operation failed.
    #[error("EB-HARNESS-002: could not {action} {}: {source}", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A process could not be created.
    #[error("EB-HARNESS-003: could not start {name}: {source}")]
    Spawn {
        /// The process's name for people.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// A process ended while something was still expected of it.
    #[error(
        "EB-HARNESS-004: {name} ended ({status}) while {wanted} was expected; its log ends with:\n{tail}"
    )]
    Exited {
        /// The process's name for people.
        name: String,
        /// How it ended.
        status: String,
        /// What was expected.
        wanted: String,
        /// The end of its log.
        tail: String,
    },
    /// A deadline passed.
    #[error(
        "EB-HARNESS-005: {name}: {wanted} did not come within {deadline:?}; its log ends with:\n{tail}"
    )]
    TooSlow {
        /// The process's name for people.
        name: String,
        /// What was expected.
        wanted: String,
        /// The time that was granted.
        deadline: Duration,
        /// The end of its log.
        tail: String,
    },
    /// Another process was quicker to take the port, several times.
    #[error(
        "EB-HARNESS-006: {name} found its port taken {attempts} times, last {ports:?}; its log ends with:\n{tail}"
    )]
    PortsTaken {
        /// The server.
        name: String,
        /// How often it was tried.
        attempts: u32,
        /// The ports of the last attempt.
        ports: Vec<u16>,
        /// The end of its log.
        tail: String,
    },
    /// The server says that it is ready but does not talk as it should.
    #[error("EB-HARNESS-007: {name} does not answer as it should: {reason}")]
    BadAnswer {
        /// The server.
        name: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A client program or a set-up program failed.
    #[error("EB-HARNESS-008: `{program}` failed ({status}): {output}")]
    Failed {
        program: String,
        /// How it ended.
        status: String,
        /// What it said.
        output: String,
    },
    /// Not a usable database name.
    #[error(
        "EB-HARNESS-009: `{0}` is no database name; use 1 to 60 of a-z, 0-9 and _, beginning with a letter"
    )]
    BadName(String),
    /// Another harness uses the directory.
    #[error(
        "EB-HARNESS-010: {} is in use by another running harness; stop that one or choose another directory",
        .0.display()
    )]
    DirectoryBusy(PathBuf),
    /// The unprivileged user cannot reach the directory.
    #[error(
        "EB-HARNESS-011: servers started by root run as an unprivileged user, who may not enter {}; \
         choose a directory below one that all users may enter (for example /var/tmp), or do not run as root", .0.display()
    )]
    Unreachable(PathBuf),
    /// A signal for a process that has ended.
    #[error("EB-HARNESS-012: {name} is not running (ended: {status})")]
    NotRunning {
        /// The process's name for people.
        name: String,
        /// How it ended.
        status: String,
    },
    /// A URL that the harness cannot use.
    #[error(
        "EB-HARNESS-013: `{url}` is not a usable URL: {reason}; \
         it should look like {example}"
    )]
    BadUrl {
        /// The URL, without its password.
        url: String,
        /// What is wrong.
        reason: &'static str,
        /// How it should look.
        example: &'static str,
    },
    /// A test program that was asked for one test by name has run none.
    #[error(
        "EB-HARNESS-014: {program} ran no test of the name `{test}`; \
         the name that is given to `in_private_network` must be the test's own, with its modules"
    )]
    NoSuchTest {
        /// The name.
        test: String,
        program: String,
    },
}

impl Error {
    /// The stable code, as listed in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ProgramMissing { .. } => "EB-HARNESS-001",
            Self::Io { .. } => "EB-HARNESS-002",
            Self::Spawn { .. } => "EB-HARNESS-003",
            Self::Exited { .. } => "EB-HARNESS-004",
            Self::TooSlow { .. } => "EB-HARNESS-005",
            Self::PortsTaken { .. } => "EB-HARNESS-006",
            Self::BadAnswer { .. } => "EB-HARNESS-007",
            Self::Failed { .. } => "EB-HARNESS-008",
            Self::BadName(_) => "EB-HARNESS-009",
            Self::DirectoryBusy(_) => "EB-HARNESS-010",
            Self::Unreachable(_) => "EB-HARNESS-011",
            Self::NotRunning { .. } => "EB-HARNESS-012",
            Self::BadUrl { .. } => "EB-HARNESS-013",
            Self::NoSuchTest { .. } => "EB-HARNESS-014",
        }
    }

    /// For `map_err`: an I/O error with the place where it happened.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
