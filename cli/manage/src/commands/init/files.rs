//! The directory that `ebbtide-manage init` fills: whatever is there stays, and only its owner may
//! read what is new.

use crate::error::ManageError;
use ebbtide_shell::errors::CliError;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// One file of the directory, for the list that the command prints.
pub(super) struct CreatedFile {
    /// Below the directory.
    pub(super) name: String,
    /// What it is for. Empty for one that was there.
    pub(super) what: String,
    /// Whether this call wrote it.
    pub(super) new: bool,
}

/// The directory, and what was done in it.
pub(super) struct Directory {
    path: PathBuf,
    pub(super) made: Vec<CreatedFile>,
}

impl Directory {
    /// Makes it, if it is not there, for its owner only.
    ///
    /// # Errors
    /// [`ManageError::Init`].
    pub(super) fn take(path: &Path) -> Result<Self, CliError> {
        let failed = |error: io::Error| ManageError::Init {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        private().create(path).map_err(failed)?;
        Ok(Self {
            path: path.canonicalize().map_err(failed)?,
            made: Vec::new(),
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The text of a file, if it is there.
    ///
    /// # Errors
    /// [`ManageError::Init`] if it cannot be read.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, CliError> {
        match std::fs::read_to_string(self.path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.wrong(name, &error.to_string())),
        }
    }

    /// Writes a file, unless it is there. Whether it did.
    ///
    /// # Errors
    /// [`ManageError::Init`].
    pub(super) fn add(&mut self, name: &str, what: &str, text: &str) -> Result<bool, CliError> {
        if self.has(name) {
            self.kept(name);
            return Ok(false);
        }
        self.replace(name, what, text)?;
        Ok(true)
    }

    /// Writes a file, in the place of the one that may be there: whole or not at all.
    ///
    /// # Errors
    /// [`ManageError::Init`].
    pub(super) fn replace(&mut self, name: &str, what: &str, text: &str) -> Result<(), CliError> {
        let path = self.path(name);
        let unfinished = path.with_added_extension("new");
        let written = || {
            if let Some(parent) = path.parent() {
                private().create(parent)?;
            }
            // Left by a call that was killed.
            match std::fs::remove_file(&unfinished) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&unfinished, &path)
        };
        written().map_err(|error| self.wrong(name, &error.to_string()))?;
        self.made.push(CreatedFile {
            name: name.to_owned(),
            what: what.to_owned(),
            new: true,
        });
        Ok(())
    }

    /// Notes a file that was there and stays.
    pub(super) fn kept(&mut self, name: &str) {
        self.made.push(CreatedFile {
            name: name.to_owned(),
            what: String::new(),
            new: false,
        });
    }

    pub(super) fn wrong(&self, name: &str, problem: &str) -> CliError {
        ManageError::Init {
            path: self.path(name),
            problem: problem.to_owned(),
        }
        .into()
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}
