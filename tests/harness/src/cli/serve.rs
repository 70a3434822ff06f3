//! `ebbtide-harness serve`: servers for the devstack, in the foreground.

use super::{EndSignals, Servers, print_line};
use crate::ServerSelection;
use ebbtide_harness::{DirectoryLock, PrivateServer, ServerKind};
use serde::Serialize;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is in services.json.
#[derive(Debug, Serialize)]
struct Services {
    /// The process to send SIGTERM to.
    harness_pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rabbitmq: Option<Service>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mariadb: Option<Service>,
    #[serde(skip_serializing_if = "Option::is_none")]
    postgresql: Option<Service>,
}

/// One server.
#[derive(Debug, Serialize)]
struct Service {
    /// With user and password.
    url: String,
    /// On 127.0.0.1.
    port: u16,
    pid: Option<u32>,
    directory: PathBuf,
    log: PathBuf,
}

impl Service {
    fn of<K: ServerKind>(server: &PrivateServer<K>) -> Self {
        Self {
            url: server.url(),
            port: server.port(),
            pid: server.pid(),
            directory: server.directory().to_owned(),
            log: server.log_path(),
        }
    }
}

/// Starts the servers, says where they are, and stops them when it is told to.
pub(crate) async fn serve(wanted: ServerSelection, directory: &Path) -> ExitCode {
    match serve_until_signal(wanted, directory).await {
        Ok(code) => code,
        Err(message) => {
            print_line(&message);
            ExitCode::FAILURE
        }
    }
}

async fn serve_until_signal(wanted: ServerSelection, directory: &Path) -> Result<ExitCode, String> {
    let mut signals =
        EndSignals::catch().map_err(|error| format!("cannot catch signals: {error}"))?;
    let text = |error: ebbtide_harness::Error| error.to_string();
    make(directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    let _lock = DirectoryLock::acquire(directory).map_err(text)?;
    let file = directory.join("services.json");
    // Removes the file of an earlier harness that was killed. Other processes wait for this file,
    // and the old one would mislead them.
    remove(&file)?;

    let servers = tokio::select! {
        started = Servers::start(wanted, Some(directory)) => started.map_err(text)?,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    write(&file, &servers).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let failed = tokio::select! {
        name = servers.one_ended() => Some(name),
        _ = signals.next() => None,
    };
    remove(&file)?;
    servers.stop().await;
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some(name) => Err(format!(
            "{name} has ended by itself; see its log in {}. The others are stopped",
            directory.display()
        )),
    }
}

/// A directory that we make is one that the servers' user may enter, whatever the umask says.
fn make(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, Permissions::from_mode(0o755))
}

/// All or nothing: a reader finds the whole file or none.
fn write(file: &Path, servers: &Servers) -> io::Result<()> {
    let services = Services {
        harness_pid: std::process::id(),
        rabbitmq: servers.rabbitmq.as_ref().map(Service::of),
        mariadb: servers.mariadb.as_ref().map(Service::of),
        postgresql: servers.postgresql.as_ref().map(Service::of),
    };
    let unfinished = file.with_extension("json.new");
    let mut text = serde_json::to_string_pretty(&services)?;
    text.push('\n');
    std::fs::write(&unfinished, text)?;
    std::fs::rename(&unfinished, file)
}

fn remove(file: &Path) -> Result<(), String> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", file.display()))
        }
        _ => Ok(()),
    }
}
