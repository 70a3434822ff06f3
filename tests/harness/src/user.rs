//! As whom the servers run.

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The user of the servers: the caller, or the unprivileged system account if the caller is root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunAs {
    /// The caller, who is an ordinary user (for programs other than servers: any user).
    Caller,
    /// Root: the unprivileged account cannot reach the given directory, and the server accepts
    /// root.
    Root,
    /// The caller is root. Numeric user and group of the unprivileged account.
    Unprivileged { uid: u32, gid: u32 },
}

impl RunAs {
    /// What the present user calls for.
    pub(crate) fn current() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::Caller;
        }
        // Debian's fixed numbers, unless the system says otherwise.
        let (uid, gid) = std::fs::read_to_string("/etc/passwd")
            .ok()
            .and_then(|passwd| {
                let line = passwd.lines().find(|line| line.starts_with("nobody:"))?;
                let mut fields = line.split(':').skip(2);
                Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
            })
            .unwrap_or((65534, 65534));
        Self::Unprivileged { uid, gid }
    }

    /// Arguments for `setpriv` that make the change.
    pub(crate) fn setpriv_arguments(self) -> Vec<OsString> {
        match self {
            Self::Caller | Self::Root => Vec::new(),
            Self::Unprivileged { uid, gid } => vec![
                format!("--reuid={uid}").into(),
                format!("--regid={gid}").into(),
                "--clear-groups".into(),
            ],
        }
    }

    /// Gives `path` and all that is in it to the user, if it is not theirs already: a kept
    /// directory may have been used by another one.
    pub(crate) fn give_all(self, path: &Path) -> Result<()> {
        let (uid, gid) = match self {
            Self::Unprivileged { uid, gid } => (uid, gid),
            Self::Root => (0, 0),
            Self::Caller => return Ok(()),
        };
        let metadata = path
            .symlink_metadata()
            .map_err(Error::io("look at", path))?;
        if metadata.uid() == uid {
            return Ok(());
        }
        if metadata.is_dir() {
            for entry in path.read_dir().map_err(Error::io("read", path))? {
                self.give_all(&entry.map_err(Error::io("read", path))?.path())?;
            }
        }
        // Last, so that an interrupted run is done again. Not through symbolic links.
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))
            .map_err(Error::io("change the owner of", path))
    }

    /// Checks that the user can reach `directory`, whose parents exist: every one of them must let
    /// others in.
    pub(crate) fn check_reach(self, directory: &Path) -> Result<()> {
        let Self::Unprivileged { uid, .. } = self else {
            return Ok(());
        };
        for ancestor in directory.ancestors().skip(1) {
            let metadata = ancestor
                .metadata()
                .map_err(Error::io("look at", ancestor))?;
            let open_to_others = metadata.mode() & 0o001 != 0;
            if !open_to_others && metadata.uid() != uid {
                return Err(Error::Unreachable(ancestor.to_owned()));
            }
        }
        Ok(())
    }

    /// A folder for temporary directories that the user can reach: the system's, or /tmp when root
    /// has a private one.
    pub(crate) fn temporary_base(self) -> Result<PathBuf> {
        let own = std::env::temp_dir();
        // check_reach looks at the parents of its argument only, so it gets an imaginary child.
        match self.check_reach(&own.join("x")) {
            Err(Error::Unreachable(_)) => {
                let common = PathBuf::from("/tmp");
                self.check_reach(&common.join("x"))?;
                Ok(common)
            }
            other => other.map(|()| own),
        }
    }
}
