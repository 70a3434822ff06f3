//! The storage of the journal: a file, or in tests a memory that can run full.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A sequence of bytes that grows durably.
pub trait Storage: Send + Debug {
    /// Its name for messages.
    fn path(&self) -> PathBuf;

    /// Reads everything; empty if it does not exist yet.
    ///
    /// # Errors
    /// Those of the system.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Appends bytes; they are durable when it returns.
    ///
    /// # Errors
    /// Those of the system. Then any part of the bytes may have been added.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Truncates it, durably.
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Replaces all of it, durably and atomically.
    ///
    /// # Errors
    /// Those of the system. Then it is as it was.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    /// Open for appending, once something has been appended.
    file: Option<File>,
}

impl FileStorage {
    /// The file at this path, whose directory must exist. It is made when something is written.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
        }
    }

    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        }
        self.file
            .as_mut()
            .ok_or_else(|| io::Error::other("the file is not open"))
    }
}

impl Storage for FileStorage {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = self.open()?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let file = self.open()?;
        file.set_len(length)?;
        file.sync_data()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            // Independent of the umask: the file says what tenants run here.
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
        if let Err(error) = written {
            // Removes the incomplete file, which would only take space on a full disk.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        fs::rename(&temporary, &self.path)?;
        // The open handle belongs to the old file.
        self.file = None;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}
