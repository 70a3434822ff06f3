//! The private directory of one server, and the janitor, which removes it after the owner has died.
//!
//! What holds:
//! - A temporary directory is gone when its [`DataDirectory`] is dropped, and also when the owner's
//!   process was killed: the janitor is a small shell process that waits on a pipe for the owner's
//!   end and then cleans up.
//! - A kept directory is used by one harness at a time.

use crate::error::{Error, Result};
use crate::programs;
use crate::user::RunAs;
use ebbtide_runtime::ids;
use std::fs::{File, Permissions, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The janitor waits until its standard input reaches the end: the kernel closes the writing end
/// when the owner ends in any way. Then the janitor removes PostgreSQL's System V memory segment if
/// the server could not do so itself (its id is in the seventh line of postmaster.pid), and the
/// directory unless it is to be kept. The kernel kills the servers at the same time, and they may
/// still write for a moment, so the janitor repeats the removal: 200 times 50 ms are enough on a
/// busy machine.
const JANITOR: &str = r#"
trap '' HUP INT QUIT TERM
while read -r _; do :; done
segment=$(sed -n '7s/.* //p' "$2/data/postmaster.pid" 2>/dev/null)
[ -z "$segment" ] || ipcrm -m "$segment"
[ "$1" = remove ] || exit 0
tries=0
while [ -e "$2" ] && [ $tries -lt 200 ]; do
    rm -rf -- "$2" || sleep 0.05
    tries=$((tries + 1))
done
"#;

/// The right to use a directory, held by one process at a time and for as long as this value lives.
/// The kernel gives it back when the process ends, in whatever way.
#[derive(Debug)]
pub struct DirectoryLock(#[allow(dead_code, reason = "held, not used")] File);

impl DirectoryLock {
    /// Takes the right, without waiting for it.
    ///
    /// # Errors
    ///
    /// [`Error::DirectoryBusy`] when another process (or another value of this one) has it;
    /// [`Error::Io`].
    pub fn acquire(directory: &Path) -> Result<Self> {
        let path = directory.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(Error::DirectoryBusy(directory.to_owned())),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &path)(error)),
        }
    }
}

/// A directory with an owner.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    temporary: bool,
    run_as: RunAs,
    janitor: Child,
    /// Held, not read: the lock of a kept directory.
    _lock: Option<DirectoryLock>,
}

impl DataDirectory {
    /// A new directory that will be removed.
    pub(crate) fn temporary(slug: &str) -> Result<Self> {
        let run_as = RunAs::current();
        let base = run_as.temporary_base()?;
        // A name that was not there before, without a race. 0700: it holds sockets and a cookie.
        let directory = tempfile::Builder::new()
            .prefix(&format!("ebbtide-{slug}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&base)
            .map_err(Error::io("make a directory in", &base))?;
        let janitor = janitor(directory.path(), "remove")?;
        let path = directory.keep();
        let home = Self {
            path,
            temporary: true,
            run_as,
            janitor,
            _lock: None,
        };
        run_as.give_all(&home.path)?;
        Ok(home)
    }

    /// A directory that is created if it is missing, and stays. `root_will_do`: root may run the
    /// server if the unprivileged account cannot reach the directory, for example below /root.
    pub(crate) fn persistent(path: &Path, root_will_do: bool) -> Result<Self> {
        let mut run_as = RunAs::current();
        std::fs::create_dir_all(path).map_err(Error::io("make the directory", path))?;
        let path = std::fs::canonicalize(path).map_err(Error::io("resolve", path))?;
        match run_as.check_reach(&path) {
            Err(Error::Unreachable(_)) if root_will_do => run_as = RunAs::Root,
            other => other?,
        }
        let lock = DirectoryLock::acquire(&path)?;
        // It holds passwords and sockets.
        std::fs::set_permissions(&path, Permissions::from_mode(0o700))
            .map_err(Error::io("set the mode of", &path))?;
        run_as.give_all(&path)?;
        Ok(Self {
            janitor: janitor(&path, "keep")?,
            path,
            temporary: false,
            run_as,
            _lock: Some(lock),
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// As whom the server in it runs.
    pub(crate) fn run_as(&self) -> RunAs {
        self.run_as
    }

    /// A name that belongs to this directory: the same after a restart, another one for another
    /// directory.
    pub(crate) fn name(&self) -> Result<String> {
        let file = self.path.join("name");
        match std::fs::read_to_string(&file) {
            Ok(name) if !name.is_empty() => Ok(name),
            _ => {
                let name = ids::short();
                self.write("name", &name)?;
                Ok(name)
            }
        }
    }

    /// Writes a small file that the server may read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        std::fs::write(&path, text).map_err(Error::io("write", &path))?;
        // The caller's umask may be strict; the directory is private anyway.
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))
            .map_err(Error::io("set the mode of", &path))?;
        Ok(path)
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        // Ends by itself, see JANITOR.
        let finished = self.janitor.wait().is_ok_and(|status| status.success());
        if self.temporary && (!finished || self.path.exists()) {
            // The janitor did not finish: it was killed or failed.
            if let Err(error) = std::fs::remove_dir_all(&self.path) {
                tracing::warn!(path = %self.path.display(), %error, "could not remove");
            }
        }
    }
}

/// Starts the janitor of `path`.
fn janitor(path: &Path, task: &str) -> Result<Child> {
    Command::new(programs::find("sh", "rabbitmq")?)
        .args(["-c", JANITOR, "ebbtide-janitor", task])
        .arg(path)
        .env_clear()
        .env("PATH", programs::PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        // Not inherited: a reader of the caller's output must see its end when the caller ends.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Out of reach of Ctrl-C and of test runners that kill the group of a test.
        .process_group(0)
        .spawn()
        .map_err(|source| Error::Spawn {
            name: "the janitor".to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_home_is_removed_with_all_that_is_in_it() {
        let home = DataDirectory::temporary("test").unwrap();
        let path = home.path().to_owned();
        std::fs::create_dir(path.join("sub")).unwrap();
        home.write("sub/file", "text").unwrap();
        assert!(path.is_dir());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(home);
        assert!(!path.exists());
    }

    #[test]
    fn a_kept_home_stays_and_keeps_its_name() {
        let base = DataDirectory::temporary("test").unwrap();
        let path = base.path().join("kept");
        let name = DataDirectory::persistent(&path, false)
            .unwrap()
            .name()
            .unwrap();
        let again = DataDirectory::persistent(&path, false).unwrap();
        assert_eq!(again.name().unwrap(), name);
        assert_ne!(base.name().unwrap(), name);
    }

    #[test]
    fn a_kept_home_has_one_user_at_a_time() {
        let base = DataDirectory::temporary("test").unwrap();
        let path = base.path().join("kept");
        let first = DataDirectory::persistent(&path, false).unwrap();
        let second = DataDirectory::persistent(&path, false);
        assert_eq!(second.unwrap_err().code(), "EB-HARNESS-010");
        drop(first);
        DataDirectory::persistent(&path, false).unwrap();
    }
}
