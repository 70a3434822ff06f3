//! What the service manager (systemd, `Type=notify`) is told: that the service is ready, that it
//! stops, and that it is alive; and the credentials that it gives to the service. Without a service
//! manager these do nothing. [`health`] answers the health check of a container, [`reload`] renews
//! the logins on SIGHUP.

pub mod health;
pub mod reload;

use ebbtide_runtime::task::{self, Task};
use sd_notify::NotifyState;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A credential whose name begins so is a key of the configuration.
const CREDENTIAL_PREFIX: &str = "ebbtide_";
/// systemd's variable with the directory of the credentials.
const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
/// The units' variable with the directory of the credentials that `systemctl reload` has copied
/// again; it exists from the first reload on.
const RELOADED_CREDENTIALS: &str = "EBBTIDE_RELOADED_CREDENTIALS";

/// The service answers requests from now on. `status` is one line for `systemctl status`.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The service has begun to end.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Tells the service manager at a third of `WatchdogSec` that the service is alive, as long as
/// `is_alive` says so. If it does not answer or says no, the service manager hears nothing, and
/// restarts the service after `WatchdogSec`. `None` if there is no watchdog. Dropping the task ends
/// it: keep it until the process ends.
#[must_use]
pub fn watch<F, Alive>(mut is_alive: F) -> Option<Task>
where
    F: FnMut() -> Alive + Send + 'static,
    Alive: Future<Output = bool> + Send,
{
    let every = sd_notify::watchdog_enabled()? / 3;
    Some(task::spawn("watchdog", async move {
        loop {
            // A probe that hangs is a service that hangs.
            match tokio::time::timeout(every, is_alive()).await {
                Ok(true) => tell(&[NotifyState::Watchdog]),
                Ok(false) => tracing::error!("not alive: the service manager is not told"),
                Err(_) => tracing::error!("no sign of life: the service manager is not told"),
            }
            tokio::time::sleep(every.max(Duration::from_millis(10))).await;
        }
    }))
}

/// Keys of the configuration that come as credentials, with their values:
/// `LoadCredential=ebbtide_KEY:FILE`, or `LoadCredential=ebbtide:DIRECTORY` for files that are
/// called as their keys. The last line break of a file is no part of its value. Empty without
/// credentials.
///
/// systemd copies them once, at the start of a service. The units therefore copy them again at
/// `systemctl reload` (`packaging/systemd/reload-credentials`). From then on these copies count.
///
/// # Errors
/// A credential cannot be read; the error names its file.
pub fn credentials() -> io::Result<Vec<(String, String)>> {
    let reloaded = std::env::var_os(RELOADED_CREDENTIALS).map(PathBuf::from);
    if let Some(directory) = reloaded.filter(|directory| directory.is_dir()) {
        return credentials_in(&directory);
    }
    match std::env::var_os(CREDENTIALS_DIRECTORY) {
        Some(directory) => credentials_in(Path::new(&directory)),
        None => Ok(Vec::new()),
    }
}

/// The credential of a key whose value is a file with a secret: its own file. `None` if there is
/// none.
#[must_use]
pub fn credential_file(key: &str) -> Option<PathBuf> {
    let directory = std::env::var_os(CREDENTIALS_DIRECTORY)?;
    file_in(Path::new(&directory), key)
}

fn file_in(directory: &Path, key: &str) -> Option<PathBuf> {
    let file = directory.join(format!("{CREDENTIAL_PREFIX}{key}"));
    file.exists().then_some(file)
}

fn credentials_in(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let mut credentials = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        let Some(key) = name.and_then(|name| name.strip_prefix(CREDENTIAL_PREFIX)) else {
            continue;
        };
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(named)?;
        let value = text.strip_suffix('\n').unwrap_or(&text);
        credentials.push((key.to_owned(), value.to_owned()));
    }
    credentials.sort();
    Ok(credentials)
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_with_our_prefix_are_keys_and_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        write("ebbtide_database.url", b"postgres://a:b@host/name\n");
        write("ebbtide_bus.urls", b"[\"amqps://a\", \"amqps://b\"]");
        write("tls.key", b"\xff");
        let expected = [
            ("bus.urls", "[\"amqps://a\", \"amqps://b\"]"),
            ("database.url", "postgres://a:b@host/name"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(credentials_in(directory.path()).unwrap(), expected);
        let file = file_in(directory.path(), "bus.urls").unwrap();
        assert_eq!(file, directory.path().join("ebbtide_bus.urls"));
        assert_eq!(file_in(directory.path(), "token_file"), None);
        write("ebbtide_log.filter", b"\xff");
        let error = credentials_in(directory.path()).unwrap_err().to_string();
        assert!(error.contains("ebbtide_log.filter"), "{error}");
    }
}
