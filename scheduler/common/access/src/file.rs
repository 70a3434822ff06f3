//! The token file: hashes only, written by `ebbtide-manage token`, read by schedulers whenever it
//! changes.
//!
//! The tokens are in a file and not in a table of the database, for three reasons. The first
//! operator's token must exist before the region does. A person who can write to the database can
//! do everything anyway, but one who can only read it should learn nothing new. Configuration
//! management can distribute a file to several schedulers at once, as it does with their
//! certificates.

use crate::caller::{Caller, Role};
use crate::certificate::check_projects;
use crate::error::AccessError;
use crate::token::{self, Token};
use ebbtide_model::{Timestamp, names, toml_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// More tokens than this are a mistake: each row is about 200 bytes and is read into memory.
const MAX_TOKENS: usize = 100_000;
/// What stands at the head of every file that we write.
const HEAD: &str = "# Tokens of an Ebbtide region; only hashes of their secrets. Written by `ebbtide-manage token`, read again by the\n\
                    # scheduler within a second of a change.\n\n";

/// One token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRow {
    /// The public part; names the token in logs and in `ebbtide-manage token revoke`.
    pub id: String,
    /// What it is for, in words.
    #[serde(default)]
    pub name: String,
    /// What its holder is.
    pub role: Role,
    /// A tenant's projects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// SHA-256 of the secret, in hexadecimal.
    pub sha256: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// From then on it is not valid any more; never if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl TokenRow {
    fn check(&self) -> Result<(), String> {
        if !token::is_id(&self.id) {
            return Err(format!("id = {:?} is not 12 hexadecimal digits", self.id));
        }
        if !token::is_hash(&self.sha256) {
            // The error does not repeat the value: the file may contain the token itself by
            // mistake.
            return Err(format!(
                "token {}: sha256 is not 64 hexadecimal digits in small letters",
                self.id
            ));
        }
        check_projects(self.role, &self.projects)
            .map_err(|problem| format!("token {}: {problem}", self.id))
    }
}

/// All tokens, by identifier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenFile {
    rows: BTreeMap<String, TokenRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default, rename = "token")]
    tokens: Vec<TokenRow>,
}

impl TokenFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong and in which line, in words. The text itself is not repeated.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error: toml::de::Error| {
            toml_text::problem(text, error.span(), error.message())
        })?;
        if document.tokens.len() > MAX_TOKENS {
            return Err(format!("more than {MAX_TOKENS} tokens"));
        }
        let mut file = Self::default();
        for row in document.tokens {
            row.check()?;
            let id = row.id.clone();
            if file.rows.insert(id.clone(), row).is_some() {
                return Err(format!("token {id} is there twice"));
            }
        }
        Ok(file)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`AccessError::File`]: the file is missing, not readable, world-writable, or malformed.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let wrong = |problem: String| AccessError::File {
            path: path.to_owned(),
            problem,
        };
        let metadata = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?;
        if metadata.permissions().mode() & 0o002 != 0 {
            return Err(wrong(
                "everybody may write to it, and so make tokens; chmod o-w it".to_owned(),
            ));
        }
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    /// Reads, changes and writes a file while no other process does. What the change returns is
    /// durable when this returns; if the change fails, nothing is written.
    ///
    /// # Errors
    /// [`AccessError::File`]; what the change says.
    pub fn change<T, E: From<AccessError>>(
        path: &Path,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // Held until the new file is in its place. The lock is on a file of its own, because the
        // token file is replaced, and with it whatever lock is on it.
        let _lock = lock(path)?;
        let mut file = match Self::read(path) {
            Err(_) if !path.exists() => Self::default(),
            read => read?,
        };
        let changed = change(&mut file)?;
        file.write(path)?;
        Ok(changed)
    }

    /// Writes a file: whole or not at all, readable by owner and group. A program that changes a
    /// file that others change, too, uses [`TokenFile::change`].
    ///
    /// # Errors
    /// [`AccessError::File`].
    pub fn write(&self, path: &Path) -> Result<(), AccessError> {
        let wrong = |problem: String| AccessError::File {
            path: path.to_owned(),
            problem,
        };
        let document = Document {
            tokens: self.rows.values().cloned().collect(),
        };
        let text = toml::to_string(&document).map_err(|e| wrong(e.to_string()))?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let io = |e: std::io::Error| wrong(e.to_string());
        let mut draft = tempfile::NamedTempFile::new_in(directory).map_err(io)?;
        draft.write_all(HEAD.as_bytes()).map_err(io)?;
        draft.write_all(text.as_bytes()).map_err(io)?;
        // Owner and group of an existing file stay with `chown`, which only root can do; its mode
        // is kept.
        let mode = std::fs::metadata(path).map_or(0o640, |m| m.permissions().mode() & 0o775);
        draft
            .as_file()
            .set_permissions(std::fs::Permissions::from_mode(mode))
            .map_err(io)?;
        if let Ok(old) = std::fs::metadata(path) {
            use std::os::unix::fs::MetadataExt as _;
            // Fails for a process that is not root, which then owns the file anyway.
            let _ = std::os::unix::fs::chown(draft.path(), Some(old.uid()), Some(old.gid()));
        }
        draft.as_file().sync_all().map_err(io)?;
        draft.persist(path).map_err(|e| io(e.error))?;
        // A revocation must survive a power failure.
        File::open(directory).and_then(|d| d.sync_all()).map_err(io)
    }

    /// Makes a token and takes note of its hash. The token is only here: it can never be shown
    /// again.
    ///
    /// # Errors
    /// [`AccessError::Invalid`] if role and projects do not go together,
    /// [`AccessError::NoRandomness`].
    pub fn create(
        &mut self,
        name: &str,
        role: Role,
        projects: Vec<String>,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<Token, AccessError> {
        check_projects(role, &projects).map_err(AccessError::Invalid)?;
        if name.len() > 255 || names::hidden(name).next().is_some() {
            return Err(AccessError::Invalid(
                "the name of a token has at most 255 bytes, all of visible characters".to_owned(),
            ));
        }
        if self.rows.len() >= MAX_TOKENS {
            return Err(AccessError::Invalid(format!(
                "there are {MAX_TOKENS} tokens already; revoke some"
            )));
        }
        let token = Token::create()?;
        let row = TokenRow {
            id: token.id().to_owned(),
            name: name.to_owned(),
            role,
            projects,
            sha256: token.hash(),
            created_at: Some(now),
            expires_at,
        };
        self.rows.insert(row.id.clone(), row);
        Ok(token)
    }

    /// Takes a token out. False if there is none with this identifier.
    pub fn revoke(&mut self, id: &str) -> bool {
        self.rows.remove(id).is_some()
    }

    /// All tokens, without their secrets, by identifier.
    pub fn rows(&self) -> impl Iterator<Item = &TokenRow> {
        self.rows.values()
    }

    /// The caller that sent this text as its token.
    ///
    /// # Errors
    /// [`AccessError::BadToken`], whatever is wrong with it.
    pub fn caller(&self, text: &str, now: Timestamp) -> Result<Caller, AccessError> {
        let token = Token::parse(text).ok_or(AccessError::BadToken)?;
        let row = self.rows.get(token.id()).ok_or(AccessError::BadToken)?;
        if !token.fits(&row.sha256) || row.expires_at.is_some_and(|end| now >= end) {
            return Err(AccessError::BadToken);
        }
        let name = if row.name.is_empty() {
            &row.id
        } else {
            &row.name
        };
        Ok(Caller {
            name: format!("token {name}"),
            role: row.role,
            projects: row.projects.clone(),
            authenticated: true,
        })
    }
}

/// The lock of a token file, `FILE.lock`, given back when the handle is dropped.
fn lock(path: &Path) -> Result<File, AccessError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let wrong = |e: std::io::Error| AccessError::File {
        path: name.clone(),
        problem: format!("cannot be locked: {e}"),
    };
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .open(&name)
        .map_err(wrong)?;
    file.lock().map_err(wrong)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        "2026-11-22T00:00:00Z"
            .parse::<Timestamp>()
            .unwrap()
            .plus(ebbtide_model::Seconds(u32::try_from(seconds).unwrap()))
    }

    #[test]
    fn a_token_works_until_it_expires_or_is_revoked() {
        let mut file = TokenFile::default();
        let tenant = vec!["science".to_owned()];
        let token = file
            .create("ci", Role::Tenant, tenant.clone(), at(0), Some(at(60)))
            .unwrap();
        let who = file.caller(&token.reveal(), at(59)).unwrap();
        assert_eq!((who.role, who.projects), (Role::Tenant, tenant));
        assert_eq!(who.name, "token ci");
        let late = file.caller(&token.reveal(), at(60)).unwrap_err();
        assert_eq!(late.code(), "EB-ACCESS-002");
        assert!(file.revoke(token.id()) && !file.revoke(token.id()));
        assert!(file.caller(&token.reveal(), at(0)).is_err());
    }

    #[test]
    fn the_file_holds_no_secret_and_is_read_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        let mut file = TokenFile::default();
        let token = file
            .create("", Role::Operator, vec![], at(0), None)
            .unwrap();
        file.write(&path).unwrap();
        assert_eq!(TokenFile::read(&path).unwrap(), file);
        let text = std::fs::read_to_string(&path).unwrap();
        let secret = token.reveal().splitn(3, '_').nth(2).unwrap().to_owned();
        assert!(
            text.contains(token.id()) && !text.contains(&secret),
            "{text}"
        );
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn a_failed_change_writes_nothing_and_a_first_one_makes_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        let refused = |_: &mut TokenFile| Err::<(), _>(AccessError::BadToken);
        TokenFile::change(&path, refused).unwrap_err();
        assert!(!path.exists());
        let create = |file: &mut TokenFile| file.create("", Role::Operator, vec![], at(0), None);
        let token = TokenFile::change(&path, create).unwrap();
        let read = TokenFile::read(&path).unwrap();
        assert_eq!(read.rows().next().unwrap().id, token.id());
        std::fs::write(&path, "[[token").unwrap();
        TokenFile::change(&path, create).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[[token");
    }

    #[test]
    fn of_concurrent_changes_none_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        let create = |path: &Path| {
            let create =
                |file: &mut TokenFile| file.create("", Role::Operator, vec![], at(0), None);
            let token = TokenFile::change(path, create).unwrap();
            token.id().to_owned()
        };
        let ours: Vec<String> = (0..12).map(|_| create(&path)).collect();
        // Twelve revoke, twelve create, all at once: each opens the files for itself, as processes
        // do.
        let made: Vec<String> = std::thread::scope(|scope| {
            for id in &ours {
                let path = &path;
                scope.spawn(move || {
                    TokenFile::change(path, |file| {
                        assert!(file.revoke(id));
                        Ok::<_, AccessError>(())
                    })
                    .unwrap();
                    let read = TokenFile::read(path).unwrap();
                    assert!(read.rows().all(|row| row.id != *id), "revoked is revoked");
                });
            }
            let threads: Vec<_> = (0..12).map(|_| scope.spawn(|| create(&path))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let read = TokenFile::read(&path).unwrap();
        let kept: Vec<&str> = read.rows().map(|row| row.id.as_str()).collect();
        assert_eq!(kept.len(), 12, "{kept:?}");
        assert!(made.iter().all(|id| kept.contains(&id.as_str())));
    }

    #[test]
    fn a_file_that_everybody_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        TokenFile::default().write(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let error = TokenFile::read(&path).unwrap_err();
        assert!(error.to_string().contains("chmod"), "{error}");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_without_repeating_secrets() {
        let good = format!(
            "[[token]]\nid = \"0123456789ab\"\nrole = \"reader\"\nsha256 = \"{}\"\n",
            "0".repeat(64)
        );
        assert!(TokenFile::parse(&good).is_ok());
        for (text, named) in [
            (good.replace("reader", "root"), "line 3"),
            (good.replace("reader", "tenant"), "project"),
            (good.replace("0123456789ab", "geheim"), "12 hexadecimal"),
            (
                good.replace(&"0".repeat(64), "ebt_geheimnis"),
                "64 hexadecimal",
            ),
            (format!("{good}{good}"), "twice"),
            (good.replace("sha256", "sha-256"), "line"),
            ("[[token]".to_owned(), "line 1"),
        ] {
            let error = TokenFile::parse(&text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
            assert!(!error.contains("geheimnis"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(\\[\\[token\\]\\]\n)?[a-z0-9 =\"\\[\\]\n]{0,120}") {
            let _ = TokenFile::parse(&text);
        }
    }
}
