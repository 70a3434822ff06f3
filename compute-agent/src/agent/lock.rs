//! One agent for one state directory: two would end each other's victims.

use crate::error::AgentError;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Held as long as the agent runs; the system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct StateLock {
    _file: File,
}

impl StateLock {
    /// Makes the directory if need be, and takes it.
    pub(super) fn take(state_dir: &Path) -> Result<Self, AgentError> {
        let refused = |what, path: &Path| {
            let path = path.to_owned();
            move |source| AgentError::Io { what, path, source }
        };
        fs::create_dir_all(state_dir).map_err(refused("make the state directory", state_dir))?;
        let lock = state_dir.join("agent.lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock)
            .map_err(refused("open the lock file", &lock))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(AgentError::AlreadyRunning {
                state_dir: state_dir.to_owned(),
                lock,
            }),
            Err(TryLockError::Error(source)) => Err(refused("lock", &lock)(source)),
        }
    }
}
