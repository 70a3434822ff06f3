//! Everything that can go wrong, with its code, its next step and its exit code.

mod next_steps;

use ebbtide_bag::BagError;
use ebbtide_burst::BurstError;
use ebbtide_chart::ChartError;
use ebbtide_checkpointing::CheckpointingError;
use ebbtide_client::ClientError;
use ebbtide_elastic::ElasticError;
use ebbtide_files::FileError;
use ebbtide_lifetime::LifetimeError;
use ebbtide_os_cloud::OsCloudError;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Exit code: all went well.
pub const OK: u8 = 0;
/// Exit code: the region refused, the request failed, or there is no valid host.
pub const REFUSED: u8 = 1;
/// Exit code: the command line or the configuration is wrong.
pub const USAGE: u8 = 2;
/// Exit code: the region cannot be reached.
pub const UNREACHABLE: u8 = 3;
/// Exit code: what was asked for does not exist.
pub const NOT_FOUND: u8 = 4;
/// Exit code: all of it is done, after its deadline.
pub const LATE: u8 = 5;

/// An error that only one of the programs has, so that the others need not link where it comes
/// from.
pub trait ProgramError: std::error::Error + Send + Sync + 'static {
    /// The stable code.
    fn code(&self) -> &str;

    /// The exit code of the process.
    fn exit_code(&self) -> u8 {
        REFUSED
    }

    /// What the user can do about it, if anything is known.
    fn next_step(&self) -> Option<String> {
        None
    }
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// The command line is understood but makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The configuration file cannot be used.
    #[error("configuration file {}: {problem}", path.display())]
    Config {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, with the key.
        problem: String,
    },
    /// The region cannot be reached, refuses, or the credentials for it cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The OpenStack cannot be found, or does not let us in.
    #[error(transparent)]
    OsCloud(#[from] OsCloudError),
    /// A name that nothing has.
    #[error("no {what} named {name:?}{place}")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// The name as it was given.
        name: String,
        /// Where it was looked for, with a leading blank; may be empty.
        place: String,
        /// How to see what there is.
        next: &'static str,
    },
    /// A name that several have.
    #[error("{count} {what}s are named {name:?}: {ids}")]
    Ambiguous {
        /// The kind of thing.
        what: &'static str,
        /// The name as it was given.
        name: String,
        /// How many have it.
        count: usize,
        /// Their identifiers.
        ids: String,
    },
    /// The decision is that there is no place.
    #[error("no valid host: {reason}")]
    NoValidHost {
        /// In the region's words.
        reason: String,
        /// The decision, for `explain`; empty if nothing was kept.
        decision_id: String,
    },
    /// A server that was waited for did not become active.
    #[error("server {name} is {status}{why}")]
    NotActive {
        name: String,
        /// What became of it.
        status: String,
        /// Its fault, with a leading colon; may be empty.
        why: String,
    },
    /// Waiting took too long.
    #[error("server {name} is still {status} after {seconds} s")]
    WaitTimeout {
        name: String,
        /// Where it is now.
        status: String,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// Waiting for a reclaimed host took too long.
    #[error("host {host} is still {state} after {seconds} s")]
    NotFree {
        host: String,
        /// Where its reclaim is now.
        state: String,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// The region closed the watch stream although the command did not ask for it.
    #[error("the region closed the event stream{0}")]
    StreamEnded(String),
    /// A replay or a conformance test that ran to its end and did not agree.
    #[error("{0}")]
    Disagrees(String),
    /// Lifetimes, a model of them, or a plan.
    #[error("{place}{error}")]
    Lifetime {
        /// The file with a colon behind it; empty if no file is to blame.
        place: String,
        /// What is wrong.
        error: LifetimeError,
    },
    /// A chart cannot be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// A price history, a bid, or a checkpoint scheme.
    #[error("{place}{error}")]
    Checkpointing {
        /// The file with a colon behind it; empty if no file is to blame.
        place: String,
        /// What is wrong.
        error: CheckpointingError,
    },
    /// A bag of tasks that cannot be planned or simulated.
    #[error(transparent)]
    Bag(#[from] BagError),
    /// A file of a bag, of prices or of a chart.
    #[error("{}: {problem}", path.display())]
    BagFile {
        path: PathBuf,
        /// What is wrong with it, with the line.
        problem: String,
    },
    /// A trace of jobs, or an elastic partition for it.
    #[error("{place}{error}")]
    Elastic {
        /// The file with a colon behind it; empty if no file is to blame.
        place: String,
        /// What is wrong.
        error: ElasticError,
    },
    /// We refuse: what is there does not fit what was asked.
    #[error("{problem}")]
    Refused {
        /// What does not fit, in words.
        problem: String,
        /// What to do.
        next: String,
    },
    /// Stopped by Ctrl-C before the end.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// Slurm, preemptible nodes, or what is kept of them.
    #[error(transparent)]
    Burst(#[from] BurstError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An error that only one of the programs has.
    #[error("{0}")]
    Program(Box<dyn ProgramError>),
    /// The command of `run` ended with an exit code other than 0, which `ebbtide` returns. It
    /// prints no error.
    #[error("the command ended with exit code {code}")]
    Ended {
        /// Its exit code.
        code: u8,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] std::io::Error),
}

impl CliError {
    /// The stable code; the region's own where the region refused. `docs/reference/errors.md` has a
    /// paragraph for each.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Usage(_) => "EB-CLI-001",
            Self::Config { .. } => "EB-CLI-002",
            Self::NotFound { .. } => "EB-CLI-004",
            Self::Ambiguous { .. } => "EB-CLI-005",
            Self::Client(error) => error.code(),
            Self::OsCloud(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Program(error) => error.code(),
            Self::NoValidHost { .. } => "EB-CLI-006",
            Self::NotActive { .. } => "EB-CLI-007",
            Self::WaitTimeout { .. } => "EB-CLI-008",
            Self::NotFree { .. } => "EB-CLI-019",
            Self::StreamEnded(_) => "EB-CLI-009",
            Self::Disagrees(_) => "EB-CLI-010",
            Self::Refused { .. } => "EB-CLI-011",
            Self::Interrupted(_) => "EB-CLI-012",
            Self::Write(_) => "EB-CLI-013",
            Self::Lifetime { error, .. } => error.code(),
            Self::Chart(error) => error.code(),
            Self::Checkpointing { error, .. } => error.code(),
            Self::Elastic { error, .. } => error.code(),
            Self::Bag(error) => error.code(),
            Self::BagFile { .. } => "EB-BAG-011",
            Self::Burst(error) => error.code(),
            Self::Ended { .. } => "EB-RUN-011",
        }
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Config { .. } => USAGE,
            Self::Client(ClientError::Usage(_)) => USAGE,
            Self::OsCloud(error) if error.is_usage() => USAGE,
            Self::OsCloud(error) if error.is_unreachable() => UNREACHABLE,
            Self::Lifetime {
                error:
                    LifetimeError::Question { .. }
                    | LifetimeError::Parameter { .. }
                    | LifetimeError::Points { .. }
                    | LifetimeError::Description { .. },
                ..
            } => USAGE,
            Self::Checkpointing {
                error: CheckpointingError::Question { .. },
                ..
            } => USAGE,
            Self::Elastic {
                error: ElasticError::Setting { .. },
                ..
            } => USAGE,
            Self::Burst(BurstError::Setting { .. } | BurstError::NotOurs { .. }) => USAGE,
            Self::Program(error) => error.exit_code(),
            Self::Ended { code } => *code,
            Self::Client(ClientError::Unreachable { .. }) | Self::StreamEnded(_) => UNREACHABLE,
            Self::NotFound { .. } => NOT_FOUND,
            Self::Client(error) if error.is_not_found() => NOT_FOUND,
            _ => REFUSED,
        }
    }

    /// What the user can do about it, if anything is known.
    #[must_use]
    pub fn next_step(&self, endpoint: &str) -> Option<String> {
        match self {
            Self::Client(ClientError::Unreachable { .. }) => Some(format!(
                "tried {endpoint}; is the scheduler running there? --endpoint or EBBTIDE_ENDPOINT says where a region is"
            )),
            Self::OsCloud(error) => error.next_step(),
            Self::NotFound { next, .. } => Some((*next).to_owned()),
            Self::Ambiguous { .. } => Some("use one of the ids".to_owned()),
            Self::Client(ClientError::Region { next, .. }) => next.clone(),
            Self::NoValidHost { decision_id, .. } if !decision_id.is_empty() => {
                Some(format!("`ebbtide explain {decision_id}` says why"))
            }
            Self::NotActive { name, .. } => {
                Some(format!("`ebbtide explain {name}` says how it was placed"))
            }
            Self::WaitTimeout { name, .. } => Some(format!(
                "it goes on without you: `ebbtide server show {name}`, or `ebbtide server delete {name}` to give up"
            )),
            Self::NotFree { host, .. } => Some(format!(
                "the reclaim goes on: `ebbtide host reclaims {host}` names the servers that stay and why, \
                 `ebbtide host return {host}` gives it up"
            )),
            Self::StreamEnded(_) => {
                Some("`ebbtide status` says whether the region is up".to_owned())
            }
            Self::Refused { next, .. } => Some(next.clone()),
            Self::Config { .. } => {
                Some("correct the file, or name another one with EBBTIDE_CONFIG".to_owned())
            }
            Self::Bag(BagError::Infeasible { .. }) => Some(
                "give it more time (`--deadline smallest` takes the smallest that is enough), or a faster on-demand type"
                    .to_owned(),
            ),
            Self::BagFile { .. } => Some("docs/tenants/bags.md says what stands in it".to_owned()),
            Self::Lifetime { error, .. } => next_steps::lifetimes(error).map(str::to_owned),
            Self::Checkpointing { error, .. } => next_steps::checkpointing(error).map(str::to_owned),
            Self::Elastic { error, .. } => next_steps::elastic(error).map(str::to_owned),
            Self::Program(error) => error.next_step(),
            _ => None,
        }
    }

    /// What is wrong with this file of lifetimes or of models.
    #[must_use]
    pub fn lifetimes(file: &Path, error: LifetimeError) -> Self {
        Self::Lifetime {
            place: format!("{}: ", file.display()),
            error,
        }
    }

    /// The same, naming the file of lifetimes if the error is about lifetimes and names none yet.
    #[must_use]
    pub fn in_file_of_lifetimes(self, file: &Path) -> Self {
        match self {
            Self::Lifetime { place, error } if place.is_empty() => match error {
                LifetimeError::Question { .. } => Self::Lifetime { place, error },
                error => Self::lifetimes(file, error),
            },
            other => other,
        }
    }

    /// Says how to see what there is, where the region says only that it is not there.
    #[must_use]
    pub fn hint(self, hint: &str) -> Self {
        match self {
            Self::Client(error) => Self::Client(error.hint(hint)),
            other => other,
        }
    }

    /// True if the region may answer in a while: it cannot be reached, or says that something of it
    /// is away.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::StreamEnded(_) => true,
            Self::Client(error) => error.is_passing(),
            _ => false,
        }
    }

    /// True if the reader of our output has gone away (`ebbtide watch | head`): not an error.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// The error as people read it: code, message, next step.
    #[must_use]
    pub fn text(&self, endpoint: &str) -> String {
        self.text_with(self.next_step(endpoint))
    }

    /// The same with this next step.
    #[must_use]
    pub fn text_with(&self, next: Option<String>) -> String {
        let mut text = format!("{}: {self}", self.code());
        if let Some(next) = next {
            let _ = write!(text, "\n  next: {next}");
        }
        text
    }
}

impl<E: ProgramError> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::Program(Box::new(error))
    }
}

impl From<tonic::Status> for CliError {
    fn from(status: tonic::Status) -> Self {
        Self::Client(status.into())
    }
}

impl From<LifetimeError> for CliError {
    fn from(error: LifetimeError) -> Self {
        Self::Lifetime {
            place: String::new(),
            error,
        }
    }
}

impl From<ElasticError> for CliError {
    fn from(error: ElasticError) -> Self {
        Self::Elastic {
            place: String::new(),
            error,
        }
    }
}

impl From<CheckpointingError> for CliError {
    fn from(error: CheckpointingError) -> Self {
        Self::Checkpointing {
            place: String::new(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;
    use tonic_types::{ErrorDetails, StatusExt};

    #[test]
    fn the_code_of_the_region_is_kept_and_the_next_step_shown() {
        let details = ErrorDetails::with_error_info(
            "EB-API-007",
            "ebbtide",
            [(
                "next".to_owned(),
                "`ebbtide flavor list` shows what there is".to_owned(),
            )],
        );
        let status =
            tonic::Status::with_error_details(Code::NotFound, "no flavor named x", details);
        let error = CliError::from(status);
        assert_eq!(error.exit_code(), NOT_FOUND);
        assert_eq!(
            error.text("-"),
            "EB-API-007: no flavor named x\n  next: `ebbtide flavor list` shows what there is"
        );
    }

    #[test]
    fn a_hint_is_given_only_where_nothing_better_is_known() {
        let plain = CliError::from(tonic::Status::not_found("no flavor named x")).hint("look");
        assert_eq!(
            plain.text("-"),
            "EB-GRPC-5: no flavor named x\n  next: look"
        );
        let told = CliError::from(tonic::Status::not_found("no x; see `y`")).hint("look");
        assert_eq!(told.text("-"), "EB-GRPC-5: no x; see `y`");
    }

    #[test]
    fn a_region_that_says_unavailable_has_been_reached() {
        let details = ErrorDetails::with_error_info("EB-STORE-004", "ebbtide", []);
        let said =
            tonic::Status::with_error_details(Code::Unavailable, "database is gone", details);
        assert_eq!(CliError::from(said).exit_code(), REFUSED);
        let silent = tonic::Status::unavailable("tcp connect error");
        assert_eq!(CliError::from(silent).exit_code(), UNREACHABLE);
    }
}
