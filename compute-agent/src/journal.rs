//! The agent's own small durable file: evacuations under way, what is remembered, reports that may
//! not have arrived.
//!
//! Format (version 2): a header line that names version, host and the bytes that were written
//! together with it; then one line for each record: a CRC-32 in eight hex digits, a blank, the
//! position in the file at which the append of this record began, a blank, the JSON. The checksum
//! covers all that follows it. Written by appending and fsync; [`Journal::append`] returns when the
//! records are durable. When much of it is outdated, it is replaced by what is still true (write,
//! fsync, rename, fsync of the directory).
//!
//! What may be dropped (`read.rs`): only the last append. It may contain several records, and after
//! a power loss any of its blocks may be missing while later ones are there. As long as no later
//! append follows, [`Journal::append`] may not have returned for it, so the agent has not acted
//! upon it. Every line contains the position where its append began. A damaged line before the
//! beginning of a later append, or in what was written with the header, was durable once. Then the
//! disk or another program has changed the file, and the agent refuses it.
//!
//! Version 1 had no positions. The agent reads it and replaces it by version 2 at once; only its
//! last line may be dropped.

mod read;
mod storage;

pub use storage::{FileStorage, Storage};

use crate::error::AgentError;
use crate::protocol::{EvacuationPhase, JournalRecord};
use ebbtide_fail_points::{FailPoint, is_armed, reach};
use ebbtide_model::{EvacuationId, ServerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The format version that the agent writes.
const VERSION: u32 = 2;
/// Up to this many lines, replacing the file is not worth an fsync of the directory.
const MIN_LINES: usize = 1_024;
/// The file is replaced when it has this many times more lines than true records: on average each
/// record is written again once for every three that are appended.
const GARBAGE_FACTOR: usize = 4;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    ebbtide_agent_journal: u32,
    host: String,
    /// Number of bytes behind the header that were written together with it, all or nothing.
    /// Version 1 did not store it.
    #[serde(default)]
    whole_bytes: u64,
}

/// The journal of one agent.
#[derive(Debug)]
pub struct Journal {
    storage: Box<dyn Storage>,
    host: String,
    /// Lines in the file, header not counted.
    lines: usize,
    /// Number of bytes of the file that are known to be valid.
    good_bytes: u64,
    /// The file may contain an incomplete record behind the valid bytes.
    dirty: bool,
}

impl Journal {
    /// Opens the journal of `host`, or begins a new one, and reads what is remembered.
    ///
    /// # Errors
    /// [`AgentError::JournalCorrupt`], [`AgentError::JournalForeign`], [`AgentError::Io`] if it
    /// cannot be read, [`AgentError::JournalWrite`] if it cannot be begun or mended.
    pub fn open(
        mut storage: Box<dyn Storage>,
        host: &str,
    ) -> Result<(Self, Vec<JournalRecord>), AgentError> {
        let path = storage.path();
        let bytes = storage.read().map_err(|source| AgentError::Io {
            what: "read the journal",
            path: path.clone(),
            source,
        })?;
        let found = read::read(&path, &bytes, host)?;
        if bytes.len() as u64 > found.good_bytes {
            tracing::warn!(
                path = %path.display(), bytes = bytes.len() as u64 - found.good_bytes,
                "dropping a torn write at the end of the journal: the agent or its host went down while writing it"
            );
        }
        let mut journal = Self {
            storage,
            host: host.to_owned(),
            lines: found.records.len(),
            good_bytes: found.good_bytes,
            dirty: bytes.len() as u64 != found.good_bytes,
        };
        let records = last_of_each(found.records);
        if found.outdated || journal.is_mostly_garbage(records.len()) {
            journal.replace(&records)?;
        }
        Ok((journal, records))
    }

    /// Writes records; they are durable when it returns.
    ///
    /// # Errors
    /// [`AgentError::JournalWrite`]: then none of them counts as written. The next call mends the
    /// file first.
    pub fn append(&mut self, records: &[JournalRecord]) -> Result<(), AgentError> {
        let path = self.storage.path();
        let mut text = String::new();
        for record in records {
            text.push_str(&line(self.good_bytes, &to_json(&path, record)?));
        }
        let written = self.mend().and_then(|()| {
            self.dirty = true;
            if is_armed(FailPoint::EndingHalfJournaled) && records.iter().any(is_ending) {
                self.storage.append(&text.as_bytes()[..text.len() / 2])?;
                reach(FailPoint::EndingHalfJournaled);
            }
            self.storage.append(text.as_bytes())
        });
        written.map_err(|source| AgentError::JournalWrite { path, source })?;
        self.dirty = false;
        self.good_bytes += text.len() as u64;
        self.lines += records.len();
        Ok(())
    }

    /// Removes what a failed write may have left, so that the next append does not follow it.
    fn mend(&mut self) -> std::io::Result<()> {
        if self.dirty {
            self.storage.truncate(self.good_bytes)?;
            self.dirty = false;
        }
        Ok(())
    }

    /// True if the file should be replaced by `live` records.
    #[must_use]
    pub fn is_mostly_garbage(&self, live: usize) -> bool {
        self.lines > MIN_LINES && self.lines > live.saturating_mul(GARBAGE_FACTOR)
    }

    /// Replaces the file by these records, atomically.
    ///
    /// # Errors
    /// [`AgentError::JournalWrite`]: then the file is as it was.
    pub fn replace(&mut self, records: &[JournalRecord]) -> Result<(), AgentError> {
        let path = self.storage.path();
        let mut lines = String::new();
        for record in records {
            lines.push_str(&line(0, &to_json(&path, record)?));
        }
        let header = Header {
            ebbtide_agent_journal: VERSION,
            host: self.host.clone(),
            whole_bytes: lines.len() as u64,
        };
        let text = summed(&to_json(&path, &header)?) + &lines;
        let replaced = self.storage.replace(text.as_bytes());
        replaced.map_err(|source| AgentError::JournalWrite { path, source })?;
        self.dirty = false;
        self.good_bytes = text.len() as u64;
        self.lines = records.len();
        Ok(())
    }
}

/// A record's line; `begins` is where its append began.
fn line(begins: u64, json: &str) -> String {
    summed(&format!("{begins} {json}"))
}

/// Text with its checksum in front.
fn summed(text: &str) -> String {
    format!("{:08x} {text}\n", crc32(text.as_bytes()))
}

fn to_json<T: Serialize>(path: &std::path::Path, value: &T) -> Result<String, AgentError> {
    serde_json::to_string(value).map_err(|error| AgentError::JournalWrite {
        path: path.to_owned(),
        source: std::io::Error::other(error),
    })
}

/// CRC-32 as in zlib and Ethernet (IEEE 802.3, reflected, polynomial 0xEDB88320). Records are
/// short: no table.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let mask = 0u32.wrapping_sub(crc & 1);
            crc = (crc >> 1) ^ (0xEDB8_8320 & mask);
        }
    }
    !crc
}

/// True for a record of the point of no return.
fn is_ending(record: &JournalRecord) -> bool {
    matches!(record, JournalRecord::Evacuation(e) if matches!(e.phase, EvacuationPhase::Acting { .. }))
}

/// Keeps the last record of each key.
fn last_of_each(records: Vec<JournalRecord>) -> Vec<JournalRecord> {
    let mut evacuations: BTreeMap<EvacuationId, JournalRecord> = BTreeMap::new();
    let mut servers: BTreeMap<ServerId, JournalRecord> = BTreeMap::new();
    for record in records {
        match &record {
            JournalRecord::Evacuation(r) => drop(evacuations.insert(r.evacuation_id, record)),
            JournalRecord::ForgetEvacuation { evacuation_id } => {
                drop(evacuations.remove(evacuation_id))
            }
            JournalRecord::Server(r) => drop(servers.insert(r.server_id, record)),
            JournalRecord::ForgetServer { server_id } => drop(servers.remove(server_id)),
        }
    }
    evacuations
        .into_values()
        .chain(servers.into_values())
        .collect()
}

/// Path of the journal in a state directory.
#[must_use]
pub fn path_in(state_dir: &std::path::Path) -> PathBuf {
    state_dir.join("journal")
}

#[cfg(test)]
mod tests;
