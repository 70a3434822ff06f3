//! The record on disk: what became of servers and of a cluster's jobs.

use crate::lines::LineFile;
use crate::storage;
use ebbtide_burst::{BurstError, BurstRecord, RecordEntry};
use std::path::Path;

/// The name of the record in the state directory.
pub const FILE: &str = "record.jsonl";

/// The record that a controller writes.
#[derive(Debug)]
pub struct RecordFile {
    lines: LineFile,
    /// The account of all that is written.
    pub record: BurstRecord,
}

impl RecordFile {
    /// Opens the record, and keeps others from writing it.
    ///
    /// # Errors
    /// [`BurstError::Storage`], also if another controller has it; [`BurstError::Record`] if it
    /// cannot be used.
    pub fn open(dir: &Path) -> Result<Self, BurstError> {
        let (lines, text) = LineFile::open(dir, FILE)?;
        let record = BurstRecord::parse(&text)?;
        Ok(Self { lines, record })
    }

    /// Writes facts down that the account has taken in already.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn write(&mut self, facts: &[RecordEntry]) -> Result<(), BurstError> {
        self.lines.append(facts)
    }

    /// Takes a fact in and writes it down.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn note(&mut self, fact: &RecordEntry) -> Result<(), BurstError> {
        self.record.apply(fact);
        self.write(std::slice::from_ref(fact))
    }
}

/// Reads the account so far, without write access.
///
/// # Errors
/// [`BurstError::Storage`], [`BurstError::Record`].
pub fn read(dir: &Path) -> Result<BurstRecord, BurstError> {
    let path = dir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => BurstRecord::parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BurstRecord::default()),
        Err(error) => Err(storage("read", &path)(error)),
    }
}
