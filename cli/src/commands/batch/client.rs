//! Calls of the batch service.

use crate::http::{Address, HttpCall, ask};
use ebbtide_shell::errors::{CliError, LATE, NOT_FOUND, ProgramError, REFUSED, UNREACHABLE, USAGE};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The service answers between two looks at Slurm and the cloud, which may be slow.
const LIMIT: Duration = Duration::from_secs(60);
/// Ten thousand members with their attempts.
const LARGEST: usize = 64 * 1024 * 1024;

/// Why a command about batch work failed.
#[derive(Debug, Error)]
pub(super) enum BatchFault {
    /// The service cannot be reached.
    #[error("the batch service at {address} does not answer: {problem}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// The network error.
        problem: String,
    },
    /// The service refused.
    #[error("{detail}")]
    Refused {
        code: String,
        /// The status of HTTP.
        status: u16,
        /// In its words.
        detail: String,
    },
    /// What answered is no batch service.
    #[error("the answer of {address} is not understood: {problem}")]
    Answer {
        address: String,
        /// What is wrong.
        problem: String,
    },
    /// A file that cannot be read.
    #[error("{path}: {problem}")]
    File {
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A work that was waited for is not done.
    #[error("work {id} is {state}")]
    NotDone {
        id: u64,
        /// What became of it.
        state: String,
    },
    /// A work that was waited for is done, after its deadline.
    #[error("work {id} is done, and missed its deadline")]
    Late {
        /// Which.
        id: u64,
    },
}

impl ProgramError for BatchFault {
    fn code(&self) -> &str {
        match self {
            Self::Unreachable { .. } => "EB-BATCH-012",
            Self::Refused { code, .. } => code,
            Self::Answer { .. } => "EB-BATCH-013",
            Self::File { .. } => "EB-BATCH-014",
            Self::NotDone { .. } => "EB-BATCH-015",
            Self::Late { .. } => "EB-BATCH-018",
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable { .. } | Self::Answer { .. } => UNREACHABLE,
            Self::Refused { status: 404, .. } => NOT_FOUND,
            Self::File { .. } => USAGE,
            Self::Late { .. } => LATE,
            Self::Refused { .. } | Self::NotDone { .. } => REFUSED,
        }
    }

    fn next_step(&self) -> Option<String> {
        match self {
            Self::Unreachable { .. } => Some(
                "is `ebbtide-batch run` running? --service or EBBTIDE_BATCH says where it listens"
                    .to_owned(),
            ),
            Self::Refused { status: 401, .. } => {
                Some("--service-token-file names the file with the token".to_owned())
            }
            Self::Refused { status: 404, .. } => Some(
                "`ebbtide batch list` has all work, `ebbtide batch status` the rest".to_owned(),
            ),
            Self::NotDone { id, .. } => Some(format!(
                "`ebbtide batch show {id}` says which members failed"
            )),
            Self::Late { id } => Some(format!(
                "`ebbtide batch report {id}` says how long it took; EB-BATCH-002 and EB-BATCH-016 in the service's log say why"
            )),
            Self::File { .. } => Some("`ebbtide batch submit --help` has an example".to_owned()),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

/// The service.
#[derive(Debug)]
pub(super) struct BatchClient {
    address: Address,
    headers: Vec<(&'static str, String)>,
}

impl BatchClient {
    pub(super) fn new(address: Address, token_file: Option<&Path>) -> Result<Self, CliError> {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        if let Some(path) = token_file {
            let token = std::fs::read_to_string(path).map_err(|error| BatchFault::File {
                path: path.display().to_string(),
                problem: error.to_string(),
            })?;
            headers.push(("authorization", format!("Bearer {}", token.trim())));
        }
        Ok(Self { address, headers })
    }

    /// Calls; the answer's body.
    pub(super) async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, BatchFault> {
        let address = self.address.to_string();
        let body = body.map(Value::to_string).unwrap_or_default();
        let call = HttpCall {
            method,
            path,
            headers: &self.headers,
            body: &body,
            limit: LIMIT,
            largest: LARGEST,
        };
        let answer = ask(&self.address, &call).await;
        let answer = answer.map_err(|problem| BatchFault::Unreachable {
            address: address.clone(),
            problem,
        })?;
        if (200..300).contains(&answer.status) {
            return serde_json::from_str(&answer.body).map_err(|error| BatchFault::Answer {
                address,
                problem: error.to_string(),
            });
        }
        match serde_json::from_str::<Problem>(&answer.body) {
            Ok(problem) => Err(BatchFault::Refused {
                code: problem.code,
                status: answer.status,
                detail: problem.detail,
            }),
            Err(_) => Err(BatchFault::Answer {
                address,
                problem: format!("status {}", answer.status),
            }),
        }
    }
}

/// A body as what it is.
pub(super) fn parse<T: DeserializeOwned>(body: &Value) -> Result<T, BatchFault> {
    T::deserialize(body).map_err(|error| BatchFault::Answer {
        address: "the batch service".to_owned(),
        problem: error.to_string(),
    })
}

/// The summary in the body of a work's details.
pub(super) fn without_members(mut body: Value) -> Value {
    if let Some(object) = body.as_object_mut() {
        object.remove("list");
        object.remove("maps");
        object.remove("dir");
    }
    body
}
