//! Where the programs are. The same places as in `devstack/lib/packages.sh`, which installs them.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// Where Debian keeps programs. Not the caller's PATH: servers of a test should not depend on it,
/// and an ordinary user's PATH lacks the sbin folders, where mariadbd is.
const FOLDERS: [&str; 6] = [
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
];

/// PATH for the servers' start scripts.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";

/// A program by name. `package` is for the message when it is missing.
pub(crate) fn find(program: &str, package: &'static str) -> Result<PathBuf> {
    FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| Error::ProgramMissing {
            program: program.to_owned(),
            searched: FOLDERS.join(", "),
            package,
        })
}

/// RabbitMQ's own start script. Debian's /usr/sbin/rabbitmq-server is a wrapper that refuses users
/// other than root and rabbitmq.
pub(crate) fn rabbitmq_scripts() -> Result<PathBuf> {
    let scripts = Path::new("/usr/lib/rabbitmq/bin");
    if scripts.join("rabbitmq-server").is_file() {
        return Ok(scripts.to_owned());
    }
    Err(Error::ProgramMissing {
        program: "rabbitmq-server".to_owned(),
        searched: scripts.display().to_string(),
        package: "rabbitmq",
    })
}

/// The folder of the newest installed PostgreSQL. The programs in /usr/bin are wrappers in Perl
/// that choose among versions.
pub(crate) fn postgresql() -> Result<PathBuf> {
    let base = Path::new("/usr/lib/postgresql");
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(base)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, bin)| {
            ["postgres", "initdb", "psql"]
                .iter()
                .all(|program| bin.join(program).is_file())
        })
        .collect();
    versions.sort();
    versions
        .pop()
        .map(|(_, bin)| bin)
        .ok_or_else(|| Error::ProgramMissing {
            program: "postgres".to_owned(),
            searched: "/usr/lib/postgresql/*/bin".to_owned(),
            package: "postgresql",
        })
}
