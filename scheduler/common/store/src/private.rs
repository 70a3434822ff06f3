//! The files of an SQLite database are their owner's, whatever the umask is: they hold every
//! tenant's servers. The group may read, so that backups need not run as the scheduler.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What others never have: everything but reading by the group.
const TOO_MUCH: u32 = 0o137;

/// Makes the database file if there is none, and takes the rights of others from what is there.
///
/// # Errors
/// The system's, when the file is made.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    if !path.exists() {
        // SQLite gives its log and its index the mode of the database.
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match made {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => drop(other?),
        }
    }
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        narrow(&PathBuf::from(name));
    }
    Ok(())
}

fn narrow(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    let mode = metadata.permissions().mode();
    if metadata.is_file() && mode & TOO_MUCH != 0 {
        let kept = Permissions::from_mode(mode & 0o7777 & !TOO_MUCH);
        if let Err(error) = fs::set_permissions(path, kept) {
            tracing::warn!(
                "{} has mode {:o} and that cannot be changed: {error}",
                path.display(),
                mode & 0o777
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_its_owners_and_an_old_one_loses_what_others_had() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("region.db");
        make_private(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        let log = dir.path().join("region.db-wal");
        fs::write(&log, "").unwrap();
        for (path, before, after) in [(&path, 0o644, 0o640), (&log, 0o666, 0o640)] {
            fs::set_permissions(path, Permissions::from_mode(before)).unwrap();
            make_private(&dir.path().join("region.db")).unwrap();
            assert_eq!(mode(path), after);
        }
    }
}
