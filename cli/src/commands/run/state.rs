//! The state directory, which outlives the machine.
//!
//! - `state`: the [`StateContents`] in the form of [`ebbtide_run::write_state`]. Replaced
//!   atomically: written to a temporary file, synced, renamed.
//! - `checkpoints/ID`: a checkpoint; complete if `state` lists it. Others were interrupted.
//! - `stdout`, `stderr`: the output of the command on all instances.
//! - `lock`: held by the run that uses the directory; the kernel releases it when that run ends.

use super::fault::{RunFault, storage};
use crate::process::ProcessIdentity;
use ebbtide_run::{RunError, RunRecord, STATE_FILE, read_state, write_state};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Makes opening fail if the path itself is a symbolic link.
const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Contents of the state file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateContents {
    pub(super) command: Vec<String>,
    /// The method of saving: `command` or `criu`.
    pub(super) method: String,
    /// The account.
    pub(super) record: RunRecord,
    /// Lengths of the command's output and errors at each checkpoint, bytes; only for methods whose
    /// restored process expects these lengths.
    pub(super) outputs: BTreeMap<u64, [u64; 2]>,
    pub(super) running: Option<ProcessIdentity>,
    /// The server that was created for the job.
    pub(super) server: Option<String>,
}

/// A state directory that this process owns.
#[derive(Debug)]
pub(super) struct StateDir {
    dir: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Creates the directory if necessary, and locks it.
    pub(super) fn take(dir: &Path) -> Result<Self, RunFault> {
        let checkpoints = dir.join("checkpoints");
        // Only the owner may read a new directory: a checkpoint contains the memory of the job.
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&checkpoints);
        made.map_err(storage("make", &checkpoints))?;
        let dir = fs::canonicalize(dir).map_err(storage("find", dir))?;
        let checkpoints = dir.join("checkpoints");
        for folder in [&dir, &checkpoints] {
            own(folder)?;
        }
        let lock = dir.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(NO_LINKS)
            .open(&lock)
            .map_err(storage("open", &lock))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { dir, _lock: file }),
            Err(TryLockError::WouldBlock) => Err(RunFault::Locked { dir }),
            Err(TryLockError::Error(source)) => Err(storage("lock", &lock)(source)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    /// Path of a file or folder in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(super) fn checkpoint(&self, id: u64) -> PathBuf {
        self.dir.join("checkpoints").join(format!("{id:06}"))
    }

    /// Reads the state; `None` in a new directory.
    pub(super) fn read(&self) -> Result<Option<StateContents>, RunFault> {
        let file = self.file(STATE_FILE);
        match read(&file) {
            Ok(bytes) => {
                let damaged = |error| {
                    let problem = match error {
                        RunError::Record { problem } => problem,
                        other => other.to_string(),
                    };
                    RunFault::Damaged { file, problem }
                };
                read_state(&bytes).map(Some).map_err(damaged)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(storage("read", &file)(error)),
        }
    }

    /// Stores the state atomically: after a crash the file contains either the new or the previous
    /// state.
    pub(super) fn write(&self, stored: &StateContents) -> Result<(), RunFault> {
        let (file, new) = (self.file(STATE_FILE), self.file("state.new"));
        let text = write_state(stored);
        let opened = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .custom_flags(NO_LINKS)
            .open(&new);
        let written = opened.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(storage("write", &new))?;
        fs::rename(&new, &file).map_err(storage("replace", &file))?;
        sync(&self.dir)
    }

    /// Creates an empty folder for a checkpoint.
    pub(super) fn begin(&self, id: u64) -> Result<PathBuf, RunFault> {
        let dir = self.checkpoint(id);
        self.remove(id)?;
        fs::create_dir(&dir).map_err(storage("make", &dir))?;
        Ok(dir)
    }

    /// Syncs a checkpoint, so that it survives a crash of the machine.
    pub(super) fn sync_checkpoint(&self, id: u64) -> Result<(), RunFault> {
        let mut folders = vec![self.checkpoint(id)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(storage("read", &folder))? {
                let path = entry.map_err(storage("read", &folder))?.path();
                let kind = fs::symlink_metadata(&path).map_err(storage("read", &path))?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    sync(&path)?;
                }
            }
            sync(&folder)?;
        }
        sync(&self.dir.join("checkpoints"))
    }

    /// Removes a checkpoint, complete or not.
    pub(super) fn remove(&self, id: u64) -> Result<(), RunFault> {
        let dir = self.checkpoint(id);
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(storage("remove", &dir)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes interrupted checkpoints, which the record does not contain. Returns their number.
    pub(super) fn sweep(&self, record: &RunRecord) -> Result<usize, RunFault> {
        let all = self.dir.join("checkpoints");
        let mut swept = 0;
        for entry in fs::read_dir(&all).map_err(storage("read", &all))? {
            let entry = entry.map_err(storage("read", &all))?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.parse::<u64>().ok());
            if let Some(id) = id.filter(|id| record.checkpoints.iter().all(|c| c.id != *id)) {
                self.remove(id)?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Opens the command's output and errors for appending.
    pub(super) fn outputs(&self) -> Result<(File, File), RunFault> {
        Ok((self.append("stdout")?, self.append("stderr")?))
    }

    fn append(&self, name: &str) -> Result<File, RunFault> {
        let path = self.file(name);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(NO_LINKS)
            .open(&path);
        file.map_err(storage("open", &path))
    }

    /// Lengths of output and errors.
    pub(super) fn lengths(&self) -> [u64; 2] {
        ["stdout", "stderr"].map(|name| fs::metadata(self.file(name)).map_or(0, |meta| meta.len()))
    }

    /// Truncates output and errors to earlier lengths: the restored process writes the rest again.
    pub(super) fn rewind(&self, lengths: [u64; 2]) -> Result<(), RunFault> {
        for (name, length) in ["stdout", "stderr"].into_iter().zip(lengths) {
            let path = self.file(name);
            let cut = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .custom_flags(NO_LINKS)
                .open(&path)
                .and_then(|file| file.set_len(length));
            cut.map_err(storage("cut", &path))?;
        }
        Ok(())
    }
}

/// Refuses a folder that another user has prepared: links in it could lead anywhere.
fn own(folder: &Path) -> Result<(), RunFault> {
    let metadata = fs::symlink_metadata(folder).map_err(storage("look at", folder))?;
    let problem = if !metadata.is_dir() {
        "it is a link, not a folder".to_owned()
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        format!("it belongs to another user (uid {})", metadata.uid())
    } else if metadata.mode() & 0o002 != 0 {
        let mode = metadata.mode() & 0o777;
        format!("everybody may write to it (mode {mode:o}); chmod o-w it")
    } else {
        return Ok(());
    };
    Err(RunFault::Foreign {
        dir: folder.to_owned(),
        problem,
    })
}

/// Reads a file that is not a link.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(NO_LINKS)
        .open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn sync(path: &Path) -> Result<(), RunFault> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(storage("sync", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_shell::errors::ProgramError;

    #[test]
    fn what_is_written_is_read_and_what_was_changed_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::take(&home.path().join("a/b")).unwrap();
        assert_eq!(dir.read().unwrap(), None);
        let stored = StateContents {
            command: vec!["job".to_owned(), "--x".to_owned()],
            ..StateContents::default()
        };
        dir.write(&stored).unwrap();
        assert_eq!(dir.read().unwrap(), Some(stored));
        let file = dir.file("state");
        let good = fs::read_to_string(&file).unwrap();
        for bad in [
            good.replace("--x", "--y"),
            good.replace("run/1", "run/2"),
            good[..good.len() / 2].to_owned(),
            String::new(),
        ] {
            fs::write(&file, bad).unwrap();
            assert_eq!(dir.read().unwrap_err().code(), "EB-RUN-006");
        }
    }

    #[test]
    fn what_is_made_is_its_owners_alone_and_what_was_there_stays_as_it_was() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let home = tempfile::tempdir().unwrap();
        let shared = home.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        let (new, old) = (shared.join("new"), StateDir::take(&shared).unwrap());
        StateDir::take(&new).unwrap();
        assert_eq!((mode(&shared), mode(&new)), (0o755, 0o700));
        assert_eq!(mode(&old.file("checkpoints")), 0o700);
    }

    #[test]
    fn a_directory_that_another_prepared_is_refused_and_no_link_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        for name in ["lock", "state.new", "stdout", "state"] {
            let folder = home.path().join(format!("with-{name}"));
            fs::create_dir(&folder).unwrap();
            symlink(&victim, folder.join(name)).unwrap();
            let used = StateDir::take(&folder).and_then(|dir| {
                dir.write(&StateContents::default())?;
                dir.outputs().map(drop)?;
                dir.read()
            });
            // The code replaces a link in the place of `state`, and never writes to its target.
            assert_eq!(used.is_ok(), name == "state", "{name}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        }
        let elsewhere = home.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let linked = home.path().join("linked");
        fs::create_dir(&linked).unwrap();
        symlink(&elsewhere, linked.join("checkpoints")).unwrap();
        assert_eq!(StateDir::take(&linked).unwrap_err().code(), "EB-RUN-012");
        let open = home.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(StateDir::take(&open).unwrap_err().code(), "EB-RUN-012");
        // Only root can change the owner of a folder; other users find a folder of root's.
        let foreign = home.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        let given = std::os::unix::fs::chown(&foreign, Some(12_345), None).is_ok();
        let foreign = if given { foreign } else { "/".into() };
        assert!(own(&foreign).is_err_and(|fault| fault.code() == "EB-RUN-012"));
    }

    #[test]
    fn one_run_at_a_time_has_a_state_directory() {
        let home = tempfile::tempdir().unwrap();
        let first = StateDir::take(home.path()).unwrap();
        assert_eq!(
            StateDir::take(home.path()).unwrap_err().code(),
            "EB-RUN-004"
        );
        drop(first);
        StateDir::take(home.path()).unwrap();
    }

    #[test]
    fn checkpoints_that_were_cut_off_are_swept_away_and_others_stay() {
        let home = tempfile::tempdir().unwrap();
        let dir = StateDir::take(home.path()).unwrap();
        for id in [1, 2] {
            fs::write(dir.begin(id).unwrap().join("data"), "x").unwrap();
            dir.sync_checkpoint(id).unwrap();
        }
        let mut record = RunRecord::default();
        record.checkpoints.push(ebbtide_run::Checkpoint {
            id: 1,
            work: ebbtide_run::Span(5),
        });
        assert_eq!(dir.sweep(&record).unwrap(), 1);
        assert!(dir.checkpoint(1).join("data").exists());
        assert!(!dir.checkpoint(2).exists());
    }
}
