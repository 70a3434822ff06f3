//! Storage that several hosts mount. It keeps the data of stopped and hibernated servers, and each
//! of these hosts can resume them.
//!
//! **One token for each server decides which host may run it.** The token is a file with the data
//! about the server. It is in `taken/`, under the name `SERVER.HOST`, while that host runs the
//! server or is about to. It is in `kept/` while no host does, with the name of the host that
//! released it. It moves by `rename(2)`, of which only one concurrent call succeeds, over NFS too.
//! A host that does not hold the token starts nothing, even if it was the last one to run the
//! server. Before a host releases the token, it removes everything else that it has of the server.
//!
//! `docs/operate/evacuation.md` says why a server then runs at most once; `ebbtide-lab simulate
//! evacuation` searches for counterexamples.

use super::DriverError;
use crate::error::AgentError;
use ebbtide_model::{ServerId, names};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Maximum number of searches for a token that moves during the search.
const LOOKS: usize = 8;
/// Length of a server's identifier in the name of a token.
const ID: usize = 36;

ebbtide_model::settings! {
    /// The table `driver.KIND.storage`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct StorageSettings {
        /// The name of the storage that the host shares with others, where preemptible servers are
        /// kept; the same on every host that mounts it.
        pub name: String => key("nfs-1");
        /// Where it is mounted; an absolute path, the same on every host.
        pub dir: PathBuf => key("/mnt/nfs-1");
    }
}

impl StorageSettings {
    /// Checks the settings without looking at the directory.
    ///
    /// # Errors
    /// [`AgentError::Config`] that names the key below `driver`.
    pub fn check(&self, driver: &str) -> Result<(), AgentError> {
        let refused = |key: &str, problem: String| {
            AgentError::config(format!("driver.{driver}.storage.{key}"), problem)
        };
        names::check_name("storage", &self.name)
            .map_err(|error| refused("name", error.to_string()))?;
        if !self.dir.is_absolute() {
            let problem = "it must be an absolute path, the same on every host".to_owned();
            return Err(refused("dir", problem));
        }
        Ok(())
    }
}

/// Place of a server's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenPlace {
    /// No host holds it; this host has released it.
    Kept(String),
    /// This host holds it.
    Taken(String),
}

/// Result of an attempt to take a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenClaim {
    /// This host holds it.
    Ours,
    /// Another host holds it.
    Theirs(String),
    /// The server has no token.
    Unclaimed,
}

/// One host's access to a storage. Calls block; one host never makes two concurrent calls about one
/// server.
#[derive(Debug)]
pub struct SharedStorage {
    settings: StorageSettings,
    host: String,
}

impl SharedStorage {
    /// Opens the storage, and creates missing directories.
    ///
    /// # Errors
    /// [`AgentError::Io`].
    pub fn open(settings: StorageSettings, host: &str) -> Result<Self, AgentError> {
        for part in ["kept", "taken", "new", "servers"] {
            let path = settings.dir.join(part);
            fs::create_dir_all(&path).map_err(|source| AgentError::Io {
                what: "make the directory",
                path,
                source,
            })?;
        }
        Ok(Self {
            settings,
            host: host.to_owned(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Whether a start names this storage.
    #[must_use]
    pub fn is_named(&self, name: Option<&str>) -> bool {
        name == Some(self.name())
    }

    /// The directory for a server that begins on this host. Another host may be about to begin the
    /// same server after an attempt here was given up, so the directories of two hosts differ. A
    /// server keeps its directory wherever it is resumed.
    #[must_use]
    pub fn dir_of(&self, id: ServerId) -> PathBuf {
        let name = token(id, &self.host);
        self.settings.dir.join("servers").join(name)
    }

    fn saved_path(&self, id: ServerId, host: &str) -> PathBuf {
        self.settings.dir.join("kept").join(token(id, host))
    }

    fn taken(&self, id: ServerId) -> PathBuf {
        self.settings.dir.join("taken").join(token(id, &self.host))
    }

    /// Writes the data of a server into the token, which this host then holds. Only for a server
    /// that begins here, or whose token this host already holds.
    ///
    /// # Errors
    /// The data cannot be written; then nothing has changed.
    pub fn write<T: Serialize>(&self, id: ServerId, known: &T) -> io::Result<()> {
        let new = self.settings.dir.join("new").join(token(id, &self.host));
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec_pretty(known)?)?;
        file.sync_all()?;
        self.rename(&new, &self.taken(id))
    }

    /// The data of a server whose token this host holds; `None` if it does not.
    ///
    /// # Errors
    /// The data cannot be read or parsed.
    pub fn held<T: DeserializeOwned>(&self, id: ServerId) -> io::Result<Option<T>> {
        read(&self.taken(id))
    }

    /// The data of a server whose token this host holds or was the last to release.
    ///
    /// # Errors
    /// As [`Self::held`].
    pub fn known<T: DeserializeOwned>(&self, id: ServerId) -> io::Result<Option<T>> {
        match read(&self.saved_path(id, &self.host))? {
            Some(known) => Ok(Some(known)),
            None => self.held(id),
        }
    }

    /// Takes the token, if no host holds it.
    ///
    /// # Errors
    /// The storage does not answer.
    pub fn take(&self, id: ServerId) -> io::Result<TokenClaim> {
        for _ in 0..LOOKS {
            match self.find(id)? {
                Some(TokenPlace::Taken(host)) if host == self.host => return Ok(TokenClaim::Ours),
                Some(TokenPlace::Taken(host)) => return Ok(TokenClaim::Theirs(host)),
                None => return Ok(TokenClaim::Unclaimed),
                Some(TokenPlace::Kept(host)) => {
                    match self.rename(&self.saved_path(id, &host), &self.taken(id)) {
                        // Another host was faster, or an answer of the file server was lost: the
                        // next look decides.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                        Ok(()) => return Ok(TokenClaim::Ours),
                    }
                }
            }
        }
        let problem = format!("the token of server {id} changes hands all the time");
        Err(io::Error::other(problem))
    }

    /// Takes the token if this host was the last to release it; true if it holds it then. For
    /// deletions that do not name a storage: the scheduler sent them before the server was kept, or
    /// they are about an attempt that was given up. They do not apply to what another host has
    /// kept.
    ///
    /// # Errors
    /// The storage does not answer.
    pub fn take_own(&self, id: ServerId) -> io::Result<bool> {
        match self.rename(&self.saved_path(id, &self.host), &self.taken(id)) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.taken(id).try_exists(),
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    /// Releases the token, so that any host can take it. Does nothing if this host does not hold
    /// it.
    ///
    /// # Errors
    /// The storage does not answer, or another host has released another token of the same server.
    pub fn release_token(&self, id: ServerId) -> io::Result<()> {
        if !self.taken(id).try_exists()? {
            return Ok(());
        }
        if let Some(host) = self.look_in("kept", id)? {
            let problem = format!("host {host} has put down a token of the same server");
            return Err(io::Error::other(problem));
        }
        match self.rename(&self.taken(id), &self.saved_path(id, &self.host)) {
            // The answer to an earlier rename by the file system was lost.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Deletes the token that this host holds. The caller does this last, after it has deleted
    /// everything else of the server.
    ///
    /// # Errors
    /// The storage does not answer.
    pub fn delete_token(&self, id: ServerId) -> io::Result<()> {
        match fs::remove_file(self.taken(id)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Finds the token of a server. A token that this host holds takes precedence over one that
    /// another host has under the same name.
    ///
    /// # Errors
    /// The storage does not answer.
    pub fn find(&self, id: ServerId) -> io::Result<Option<TokenPlace>> {
        if self.taken(id).try_exists()? {
            return Ok(Some(TokenPlace::Taken(self.host.clone())));
        }
        if let Some(host) = self.look_in("kept", id)? {
            return Ok(Some(TokenPlace::Kept(host)));
        }
        Ok(self.look_in("taken", id)?.map(TokenPlace::Taken))
    }

    /// Servers whose tokens this host holds or was the last to release.
    ///
    /// # Errors
    /// The storage does not answer.
    pub fn ours(&self) -> io::Result<Vec<ServerId>> {
        let mut ours = Vec::new();
        // In the order in which this host moves tokens: a token that it releases meanwhile is found
        // at least once.
        for part in ["taken", "kept"] {
            for (id, host) in self.tokens(part)? {
                if host == self.host && !ours.contains(&id) {
                    ours.push(id);
                }
            }
        }
        Ok(ours)
    }

    fn look_in(&self, part: &str, id: ServerId) -> io::Result<Option<String>> {
        let mut tokens = self.tokens(part)?.into_iter();
        Ok(tokens.find(|(there, _)| *there == id).map(|(_, host)| host))
    }

    fn tokens(&self, part: &str) -> io::Result<Vec<(ServerId, String)>> {
        let mut tokens = Vec::new();
        for entry in fs::read_dir(self.settings.dir.join(part))? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let Some((id, host)) = name.split_at_checked(ID) else {
                continue;
            };
            if let (Ok(id), Some(host)) = (id.parse(), host.strip_prefix('.')) {
                tokens.push((ServerId(id), host.to_owned()));
            }
        }
        Ok(tokens)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        for path in [from, to] {
            if let Some(dir) = path.parent() {
                File::open(dir)?.sync_all()?;
            }
        }
        Ok(())
    }
}

fn token(id: ServerId, host: &str) -> String {
    format!("{id}.{host}")
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        let problem = format!("{} is not a server's token: {error}", path.display());
        io::Error::new(ErrorKind::InvalidData, problem)
    })
}

/// The error of a driver whose storage does not answer.
pub(super) fn unusable(what: &'static str, error: &io::Error) -> DriverError {
    DriverError::Failed {
        what,
        detail: format!("the shared storage cannot be used: {error}"),
    }
}

#[cfg(test)]
mod tests;
