//! The file of a simulated hypervisor: read, changed and replaced under a lock.
//!
//! The lock is a file of its own, because the state file is replaced at each change. A crash at any
//! moment leaves the old or the new content, never half of it.

use super::state::SimulatedState;
use crate::error::AgentError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Where a simulated hypervisor keeps its state.
#[derive(Debug, Clone)]
pub struct SimulatedStore {
    dir: PathBuf,
}

impl SimulatedStore {
    /// The state in this directory, which must exist. A directory without a state file is a
    /// hypervisor without servers.
    ///
    /// # Errors
    /// [`AgentError::Io`] if the directory or the file in it cannot be used.
    pub fn open(dir: &Path) -> Result<Self, AgentError> {
        let store = Self {
            dir: dir.to_owned(),
        };
        let refused = |source| AgentError::Io {
            what: "use the state of the simulated hypervisor in",
            path: dir.to_owned(),
            source,
        };
        store.change(|_| ()).map_err(refused)?;
        Ok(store)
    }

    /// The state file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join("hypervisor.json")
    }

    /// Reads the state and, if `change` changes it, replaces it durably before it returns.
    ///
    /// # Errors
    /// If the file cannot be locked, read, understood or written; then nothing has changed.
    pub fn change<T>(&self, change: impl FnOnce(&mut SimulatedState) -> T) -> io::Result<T> {
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.dir.join("hypervisor.lock"))?;
        // Released when the file is closed, also by a crash.
        lock.lock()?;
        let path = self.path();
        let mut state: SimulatedState = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let problem = format!("{} is not a hypervisor's state: {error}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, problem)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => SimulatedState::default(),
            Err(error) => return Err(error),
        };
        let before = state.clone();
        let result = change(&mut state);
        if state != before {
            self.replace(&path, &state)?;
        }
        Ok(result)
    }

    fn replace(&self, path: &Path, state: &SimulatedState) -> io::Result<()> {
        let temporary = path.with_extension("json.new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            // Whatever the umask is: it holds what tenants run here.
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(state)?)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(&self.dir)?.sync_all()
    }
}
