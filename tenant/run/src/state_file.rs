//! The form of a run's state file: a line with version and checksum, then JSON with the record and
//! what the shell keeps beside it.

use crate::error::RunError;
use crate::record::RunRecord;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The first word of a state file, with its version.
const HEAD: &str = "ebbtide-run/1";

/// The name of the state file in a run's state directory.
pub const STATE_FILE: &str = "state";

/// The part of the contents that every reader understands.
#[derive(Deserialize)]
struct RecordPart {
    record: RunRecord,
}

/// The text of a state file. Its contents have the [`RunRecord`] in the field `record`.
#[must_use]
pub fn write_state(contents: &impl Serialize) -> String {
    // Serialization cannot fail: all keys are texts and numbers.
    let json = serde_json::to_string(contents).unwrap_or_default();
    format!("{HEAD} {}\n{json}\n", digest(&json))
}

/// Reads a state file with all of its contents.
///
/// # Errors
/// [`RunError::Record`] for a file that was changed or cut off, and for another version's.
pub fn read_state<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RunError> {
    let json = checked(bytes)?;
    let contents = serde_json::from_str(json).map_err(|error| problem(error.to_string()))?;
    record_of(json)?;
    Ok(contents)
}

/// Reads the record of a state file.
///
/// # Errors
/// As [`read_state`].
pub fn read_record(bytes: &[u8]) -> Result<RunRecord, RunError> {
    record_of(checked(bytes)?)
}

fn record_of(json: &str) -> Result<RunRecord, RunError> {
    let part: RecordPart =
        serde_json::from_str(json).map_err(|error| problem(error.to_string()))?;
    part.record.checked()
}

/// The JSON of a file, whose first line fits it.
fn checked(bytes: &[u8]) -> Result<&str, RunError> {
    let text = std::str::from_utf8(bytes).map_err(|_| problem("it is no text"))?;
    let (head, json) = text
        .split_once('\n')
        .ok_or_else(|| problem("it has been cut off"))?;
    let json = json.trim_end();
    match head.split_once(' ') {
        Some((HEAD, sum)) if sum == digest(json) => Ok(json),
        Some((HEAD, _)) => Err(problem("its checksum is wrong: it was changed or cut off")),
        _ => {
            let head: String = head.chars().take(40).collect();
            let begins = format!("it begins with {head:?}, not with {HEAD}: another version's?");
            Err(problem(begins))
        }
    }
}

fn problem(problem: impl Into<String>) -> RunError {
    RunError::Record {
        problem: problem.into(),
    }
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
