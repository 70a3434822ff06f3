//! Storage that several hosts mount: what is kept of a server that was stopped or hibernated lies there, and any of them can let it go on.
//!
//! **One token for each server decides who may run it.** It is a file that holds what is to be known of the server. It is in `taken/`, under the name
//! `SERVER.HOST`, while that host runs the server or is about to, and in `kept/` while nobody does, with the name of the host that put it
//! down. It moves by `rename(2)`, which has one winner, over NFS too. Whoever does not hold it starts nothing, its own host included; and
//! before it is put down the host has dropped all that it had of the server beside it.
//!
//! `docs/evacuation.md` says why a server then runs at most once; `ebbtide simulate evacuation` tries to show the contrary.

use super::DriverError;
use crate::error::AgentError;
use ebbtide_model::{ServerId, names};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A token that is moved while it is looked for is looked for again so often.
const LOOKS: usize = 8;
/// A server's identifier in the name of a token.
const ID: usize = 36;

/// The table `driver.KIND.storage`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageSettings {
    /// Its name, the same on every host that mounts it.
    pub name: String,
    /// Where it is mounted.
    pub dir: PathBuf,
}

impl StorageSettings {
    /// Checks what can be checked without looking at the directory.
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

/// Where the token of a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nobody has it; this host has put it down.
    Kept(String),
    /// This host has it.
    Taken(String),
}

/// What came of trying to take a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grip {
    /// It is taken by this host.
    Ours,
    /// Another host has it.
    Theirs(String),
    /// There is none.
    Nobodys,
}

/// One host's end of a storage. Calls block; one host never makes two about one server at a time.
#[derive(Debug)]
pub struct SharedStorage {
    settings: StorageSettings,
    host: String,
}

impl SharedStorage {
    /// Opens it, and makes the directories that are not there yet.
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

    /// Whether a start means this storage.
    #[must_use]
    pub fn is_named(&self, name: Option<&str>) -> bool {
        name == Some(self.name())
    }

    /// Where a server that begins on this host has its files. Another host may be about to begin the same one, which was given up here, so the
    /// directories of two hosts differ; a server keeps its directory wherever it goes on.
    #[must_use]
    pub fn dir_of(&self, id: ServerId) -> PathBuf {
        let name = token(id, &self.host);
        self.settings.dir.join("servers").join(name)
    }

    fn kept(&self, id: ServerId, host: &str) -> PathBuf {
        self.settings.dir.join("kept").join(token(id, host))
    }

    fn taken(&self, id: ServerId) -> PathBuf {
        self.settings.dir.join("taken").join(token(id, &self.host))
    }

    /// Writes what is to be known of a server under the token that this host holds from now on. Only for a server that begins here, or whose
    /// token is taken here already.
    ///
    /// # Errors
    /// If it cannot be written; then nothing has changed.
    pub fn write<T: Serialize>(&self, id: ServerId, known: &T) -> io::Result<()> {
        let new = self.settings.dir.join("new").join(token(id, &self.host));
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec_pretty(known)?)?;
        file.sync_all()?;
        self.rename(&new, &self.taken(id))
    }

    /// What is known of a server whose token is taken here; `None` if it is not.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn held<T: DeserializeOwned>(&self, id: ServerId) -> io::Result<Option<T>> {
        read(&self.taken(id))
    }

    /// What is known of a server that this host has put down last, or whose token it holds.
    ///
    /// # Errors
    /// As [`Self::held`].
    pub fn known<T: DeserializeOwned>(&self, id: ServerId) -> io::Result<Option<T>> {
        match read(&self.kept(id, &self.host))? {
            Some(known) => Ok(Some(known)),
            None => self.held(id),
        }
    }

    /// Takes the token, if nobody has it.
    ///
    /// # Errors
    /// If the storage does not answer.
    pub fn take(&self, id: ServerId) -> io::Result<Grip> {
        for _ in 0..LOOKS {
            match self.find(id)? {
                Some(Place::Taken(host)) if host == self.host => return Ok(Grip::Ours),
                Some(Place::Taken(host)) => return Ok(Grip::Theirs(host)),
                None => return Ok(Grip::Nobodys),
                Some(Place::Kept(host)) => {
                    match self.rename(&self.kept(id, &host), &self.taken(id)) {
                        // Somebody else was faster, or an answer of the file server was lost: the next look tells.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                        Ok(()) => return Ok(Grip::Ours),
                    }
                }
            }
        }
        let problem = format!("the token of server {id} changes hands all the time");
        Err(io::Error::other(problem))
    }

    /// Takes the token if this host has put it down last; true if it holds it then. For deletions that do not say where the server is kept: they were
    /// sent before it was, or are about an attempt that was given up, and what another host has kept is not meant.
    ///
    /// # Errors
    /// If the storage does not answer.
    pub fn take_own(&self, id: ServerId) -> io::Result<bool> {
        match self.rename(&self.kept(id, &self.host), &self.taken(id)) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.taken(id).try_exists(),
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    /// Puts the token down, so that anybody can take it. Nothing happens if it is not taken here.
    ///
    /// # Errors
    /// If the storage does not answer, or somebody has put down another one of the same server.
    pub fn put_down(&self, id: ServerId) -> io::Result<()> {
        if !self.taken(id).try_exists()? {
            return Ok(());
        }
        if let Some(host) = self.look_in("kept", id)? {
            let problem = format!("host {host} has put down a token of the same server");
            return Err(io::Error::other(problem));
        }
        match self.rename(&self.taken(id), &self.kept(id, &self.host)) {
            // The answer to an earlier try of the file system's was lost.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Throws away the token that this host holds. Last, after all that belongs to the server.
    ///
    /// # Errors
    /// If the storage does not answer.
    pub fn throw_away(&self, id: ServerId) -> io::Result<()> {
        match fs::remove_file(self.taken(id)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Where the token of a server is. One that this host holds comes first: what another one may have begun under the same name is not meant then.
    ///
    /// # Errors
    /// If the storage does not answer.
    pub fn find(&self, id: ServerId) -> io::Result<Option<Place>> {
        if self.taken(id).try_exists()? {
            return Ok(Some(Place::Taken(self.host.clone())));
        }
        if let Some(host) = self.look_in("kept", id)? {
            return Ok(Some(Place::Kept(host)));
        }
        Ok(self.look_in("taken", id)?.map(Place::Taken))
    }

    /// Servers whose tokens this host holds or has put down last.
    ///
    /// # Errors
    /// If the storage does not answer.
    pub fn ours(&self) -> io::Result<Vec<ServerId>> {
        let mut ours = Vec::new();
        // In the order in which this host moves them: what is put down meanwhile is seen at least once.
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
