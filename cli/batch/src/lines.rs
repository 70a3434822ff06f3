//! A file of lines of JSON that one process appends to, and that is read again after a crash.

use crate::storage;
use ebbtide_burst::BurstError;
use serde::Serialize;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    /// The length of all whole lines.
    length: u64,
}

impl LineFile {
    /// Opens the file, and keeps others from writing it; what it has, without a line that was cut
    /// off at the end.
    ///
    /// # Errors
    /// [`BurstError::Storage`], also if another process has it.
    pub fn open(dir: &Path, name: &str) -> Result<(Self, String), BurstError> {
        std::fs::create_dir_all(dir).map_err(storage("make", dir))?;
        let path = dir.join(name);
        let options = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            // slurmctld starts programs as another user, who reads what was spent.
            .mode(0o640)
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
        let mut text = std::fs::read_to_string(&path).map_err(storage("read", &path))?;
        // A line that was cut off is left out, and the next one begins at a beginning.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(storage("cut", &path))?;
            text.truncate(whole);
        }
        let length = whole as u64;
        Ok((Self { file, path, length }, text))
    }

    /// Appends lines: all of them or none.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn append<T: Serialize>(&mut self, lines: &[T]) -> Result<(), BurstError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for line in lines {
            let line = serde_json::to_string(line).map_err(std::io::Error::other);
            text.push_str(&line.map_err(storage("write", &self.path))?);
            text.push('\n');
        }
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // A full disk may have taken a part: the next line must not be joined to it.
            let _ = self.file.set_len(self.length);
            return Err(storage("write", &self.path)(error));
        }
        self.length += text.len() as u64;
        Ok(())
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn sync(&self) -> Result<(), BurstError> {
        self.file.sync_data().map_err(storage("sync", &self.path))
    }
}
