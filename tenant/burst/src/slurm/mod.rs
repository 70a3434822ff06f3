//! What Slurm says: its JSON as of version 22.05 (plugin openapi/v0.0.38), and lists of hosts.
//!
//! Only what is needed is read, so that fields that come and go do not matter; a field that is
//! needed and is not there, or is something else, is an error and never a zero.

mod ageing;
mod hosts;
mod jobs;
mod nodes;

pub use ageing::Ageing;
pub use hosts::{MOST_HOSTS, hosts};
pub use jobs::{JobState, SlurmJob, jobs};
pub use nodes::{BaseState, Node, nodes};

use crate::error::BurstError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Slurm says so for "not set" in 64 and in 32 bits (slurm.h: NO_VAL64, NO_VAL) and for "for ever"
/// (INFINITE64, INFINITE).
const UNSET: [u64; 4] = [
    0xffff_ffff_ffff_fffe,
    0xffff_fffe,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff,
];

/// An error that Slurm reports inside of an answer.
#[derive(Debug, Deserialize)]
struct Complaint {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    error_number: Option<i64>,
}

/// What every answer has beside the rows.
#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(default)]
    errors: Vec<Complaint>,
}

/// Reads an answer, and refuses it if Slurm says in it that something went wrong: rows may be
/// missing then.
fn answer<T: DeserializeOwned>(program: &str, text: &str) -> Result<T, BurstError> {
    let wrong = |problem: String| BurstError::Answer {
        program: program.to_owned(),
        problem,
    };
    let refused = |error: serde_json::Error| wrong(error.to_string());
    let envelope: Envelope = serde_json::from_str(text).map_err(refused)?;
    if let Some(complaint) = envelope.errors.into_iter().next() {
        let words = complaint.error.or(complaint.description);
        let words = words.unwrap_or_else(|| "no words".to_owned());
        let number = complaint.error_number.unwrap_or(0);
        // So do squeue and sinfo when slurmctld does not answer, and end well.
        return Err(BurstError::Silent {
            program: program.to_owned(),
            problem: format!("Slurm reports error {number}: {words}"),
        });
    }
    serde_json::from_str(text).map_err(refused)
}

/// A number that Slurm may not have set.
fn set(value: Option<u64>) -> Option<u64> {
    value.filter(|value| !UNSET.contains(value))
}
