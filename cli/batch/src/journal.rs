//! The record on disk: one file, only ever appended to, by one controller at a time.

use crate::storage;
use ebbtide_burst::{BurstError, BurstRecord, RecordEntry};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The name of the record in the state directory.
pub const FILE: &str = "record.jsonl";

/// The record that a controller writes.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
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
        std::fs::create_dir_all(dir).map_err(storage("make", dir))?;
        let path = dir.join(FILE);
        let options = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o600)
            .clone();
        let file = options.open(&path).map_err(storage("open", &path))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => BurstError::Storage {
                what: "lock",
                path: path.display().to_string(),
                problem: "another controller runs with this state_dir".to_owned(),
            },
            TryLockError::Error(error) => storage("lock", &path)(error),
        })?;
        let text = std::fs::read_to_string(&path).map_err(storage("read", &path))?;
        let record = BurstRecord::parse(&text)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A line that was cut off: it is left out, and the next one begins at a beginning.
            let whole = text.rfind('\n').map_or(0, |at| at + 1);
            file.set_len(whole as u64).map_err(storage("cut", &path))?;
        }
        Ok(Self { file, path, record })
    }

    /// Writes facts down that the account has taken in already.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn write(&mut self, facts: &[RecordEntry]) -> Result<(), BurstError> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for fact in facts {
            let line = serde_json::to_string(fact).map_err(std::io::Error::other);
            text.push_str(&line.map_err(storage("write", &self.path))?);
            text.push('\n');
        }
        self.file
            .write_all(text.as_bytes())
            .map_err(storage("write", &self.path))
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
