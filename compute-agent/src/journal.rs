//! The agent's own small durable file: evacuations under way, what is remembered, reports that may not have arrived.
//!
//! Format: a header line that names version and host, then one line for each record: the CRC-32 of its JSON in eight hex
//! digits, a blank, the JSON. Written by appending and fsync; [`Journal::append`] returns when the records are durable. When
//! much of it is outdated, it is replaced by what is still true (write, fsync, rename, fsync of the directory).
//!
//! A crash while appending leaves at most one torn line at the end; it was never acted upon, so it is dropped. Anything else
//! that cannot be read means that the disk or somebody else has changed the file: then the agent does not guess.

mod storage;

pub use storage::{FileStorage, Storage};

use crate::error::AgentError;
use crate::protocol::{Phase, Record};
use ebbtide_fail_points::{Point, is_armed, reach};
use ebbtide_model::{EvacuationId, ServerId, names};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of the format.
const VERSION: u32 = 1;
/// Up to this many lines, replacing the file is not worth an fsync of the directory.
const MIN_LINES: usize = 1_024;
/// The file is replaced when it has this many times more lines than true records: on average each record is written again
/// once for every three that are appended.
const GARBAGE_FACTOR: usize = 4;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    ebbtide_agent_journal: u32,
    host: String,
}

/// The journal of one agent.
#[derive(Debug)]
pub struct Journal {
    storage: Box<dyn Storage>,
    header: String,
    /// Lines in the file, header not counted.
    lines: usize,
    /// Bytes of the file that are known to be good.
    good_bytes: u64,
    /// The file may hold half a record behind the good bytes.
    dirty: bool,
}

impl Journal {
    /// Opens the journal of `host`, or begins a new one, and reads what is remembered.
    ///
    /// # Errors
    /// [`AgentError::JournalCorrupt`], [`AgentError::JournalForeign`], [`AgentError::Io`] if it cannot be read,
    /// [`AgentError::JournalWrite`] if it cannot be begun or mended.
    pub fn open(
        mut storage: Box<dyn Storage>,
        host: &str,
    ) -> Result<(Self, Vec<Record>), AgentError> {
        let path = storage.path();
        let bytes = storage.read().map_err(|source| AgentError::Io {
            what: "read the journal",
            path: path.clone(),
            source,
        })?;
        let header = Header {
            ebbtide_agent_journal: VERSION,
            host: host.to_owned(),
        };
        let header = line(&to_json(&path, &header)?);
        let found = read(&path, &bytes, host)?;
        if bytes.len() as u64 > found.good_bytes {
            tracing::warn!(
                path = %path.display(), bytes = bytes.len() as u64 - found.good_bytes,
                "dropping a torn line at the end of the journal: the agent or its host went down while writing it"
            );
        }
        let mut journal = Self {
            storage,
            header,
            lines: found.records.len(),
            good_bytes: found.good_bytes,
            dirty: bytes.len() as u64 != found.good_bytes,
        };
        let records = last_of_each(found.records);
        if journal.good_bytes == 0 || journal.is_mostly_garbage(records.len()) {
            journal.replace(&records)?;
        }
        Ok((journal, records))
    }

    /// Writes records; they are durable when it returns.
    ///
    /// # Errors
    /// [`AgentError::JournalWrite`]: then none of them counts as written. The next call mends the file first.
    pub fn append(&mut self, records: &[Record]) -> Result<(), AgentError> {
        let path = self.storage.path();
        let mut text = String::new();
        for record in records {
            text.push_str(&line(&to_json(&path, record)?));
        }
        let written = self.mend().and_then(|()| {
            self.dirty = true;
            if is_armed(Point::EndingHalfJournaled) && records.iter().any(is_ending) {
                self.storage.append(&text.as_bytes()[..text.len() / 2])?;
                reach(Point::EndingHalfJournaled);
            }
            self.storage.append(text.as_bytes())
        });
        written.map_err(|source| AgentError::JournalWrite { path, source })?;
        self.dirty = false;
        self.good_bytes += text.len() as u64;
        self.lines += records.len();
        Ok(())
    }

    /// Cuts off what a failed write may have left, so that it does not end up in the middle.
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
    pub fn replace(&mut self, records: &[Record]) -> Result<(), AgentError> {
        let path = self.storage.path();
        let mut text = self.header.clone();
        for record in records {
            text.push_str(&line(&to_json(&path, record)?));
        }
        let replaced = self.storage.replace(text.as_bytes());
        replaced.map_err(|source| AgentError::JournalWrite { path, source })?;
        self.dirty = false;
        self.good_bytes = text.len() as u64;
        self.lines = records.len();
        Ok(())
    }
}

struct Found {
    records: Vec<Record>,
    good_bytes: u64,
}

fn read(path: &std::path::Path, bytes: &[u8], host: &str) -> Result<Found, AgentError> {
    let mut found = Found {
        records: Vec::new(),
        good_bytes: 0,
    };
    let mut rest = bytes;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let Some(end) = rest.iter().position(|b| *b == b'\n') else {
            if number == 1 {
                // The header is never appended, so it is never torn.
                return Err(corrupt(path, 1, "it is no header".to_owned()));
            }
            // Torn: the newline is written last.
            break;
        };
        let (this, behind) = (&rest[..end], &rest[end + 1..]);
        let json = match checked(this) {
            Ok(json) => json,
            // Blocks of one write may reach the disk in any order, so the end can be torn and have its newline.
            Err(_) if behind.is_empty() && number > 1 => break,
            Err(problem) => return Err(corrupt(path, number, problem)),
        };
        if number == 1 {
            check_header(path, json, host)?;
        } else {
            let record = serde_json::from_str(json).map_err(|error| {
                corrupt(
                    path,
                    number,
                    format!("it is no record: {}", names::brief(error)),
                )
            })?;
            found.records.push(record);
        }
        found.good_bytes += end as u64 + 1;
        rest = behind;
    }
    Ok(found)
}

fn corrupt(path: &std::path::Path, line: usize, problem: String) -> AgentError {
    AgentError::JournalCorrupt {
        path: path.to_owned(),
        line,
        problem,
    }
}

fn check_header(path: &std::path::Path, json: &str, host: &str) -> Result<(), AgentError> {
    let header: Header = serde_json::from_str(json)
        .map_err(|error| corrupt(path, 1, format!("it is no header: {}", names::brief(error))))?;
    let foreign = |found: String, expected: String| {
        let path = path.to_owned();
        Err(AgentError::JournalForeign {
            path,
            found,
            expected,
        })
    };
    if header.ebbtide_agent_journal != VERSION {
        let found = format!("format version {}", header.ebbtide_agent_journal);
        return foreign(found, format!("an agent for format version {VERSION}"));
    }
    if header.host != host {
        let found = format!("host {:?}", names::shorten(&header.host));
        return foreign(found, format!("the agent of host {host:?}"));
    }
    Ok(())
}

/// The JSON of a line whose checksum is right.
fn checked(line: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let (sum, json) = text
        .split_once(' ')
        .ok_or_else(|| "it has no checksum".to_owned())?;
    let expected = format!("{:08x}", crc32(json.as_bytes()));
    if sum == expected {
        Ok(json)
    } else {
        Err(format!(
            "its checksum is {expected}, it says {:?}",
            names::shorten(sum)
        ))
    }
}

fn line(json: &str) -> String {
    format!("{:08x} {json}\n", crc32(json.as_bytes()))
}

fn to_json<T: Serialize>(path: &std::path::Path, value: &T) -> Result<String, AgentError> {
    serde_json::to_string(value).map_err(|error| AgentError::JournalWrite {
        path: path.to_owned(),
        source: std::io::Error::other(error),
    })
}

/// CRC-32 as in zlib and Ethernet (IEEE 802.3, reflected, polynomial 0xEDB88320). Records are short: no table.
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

/// True for the point of no return.
fn is_ending(record: &Record) -> bool {
    matches!(record, Record::Evacuation(e) if matches!(e.phase, Phase::Acting { .. }))
}

/// The last record about each key is the truth.
fn last_of_each(records: Vec<Record>) -> Vec<Record> {
    let mut evacuations: BTreeMap<EvacuationId, Record> = BTreeMap::new();
    let mut servers: BTreeMap<ServerId, Record> = BTreeMap::new();
    for record in records {
        match &record {
            Record::Evacuation(r) => drop(evacuations.insert(r.evacuation_id, record)),
            Record::ForgetEvacuation { evacuation_id } => drop(evacuations.remove(evacuation_id)),
            Record::Server(r) => drop(servers.insert(r.server_id, record)),
            Record::ForgetServer { server_id } => drop(servers.remove(server_id)),
        }
    }
    evacuations
        .into_values()
        .chain(servers.into_values())
        .collect()
}

/// Where the journal of a state directory is.
#[must_use]
pub fn path_in(state_dir: &std::path::Path) -> PathBuf {
    state_dir.join("journal")
}

#[cfg(test)]
mod tests;
