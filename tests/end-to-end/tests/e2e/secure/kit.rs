//! Short words for callers with and without rights.

use super::certificates::Pair;
use crate::kit::code;
use ebbtide_access::{Role, TokenFile};
use ebbtide_client::{Bearer, Credentials};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use std::path::{Path, PathBuf};
use tonic::{Code, Response, Status};

/// The tokens of a region under test, with the file in which their hashes are.
pub(crate) struct Tokens {
    pub(crate) path: PathBuf,
    file: TokenFile,
    _dir: tempfile::TempDir,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let this = Self {
            path: dir.path().join("tokens.toml"),
            file: TokenFile::default(),
            _dir: dir,
        };
        this.file.write(&this.path).unwrap();
        this
    }

    pub(crate) fn make(&mut self, role: Role, projects: &[&str]) -> String {
        let projects = projects.iter().map(|p| (*p).to_owned()).collect();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let token = self.file.create("test", role, projects, now, None).unwrap();
        self.file.write(&self.path).unwrap();
        token.reveal()
    }

    pub(crate) fn revoke(&mut self, token: &str) {
        assert!(self.file.revoke(token.split('_').nth(1).unwrap()));
        self.file.write(&self.path).unwrap();
    }

    pub(crate) fn auth(&self) -> String {
        format!("[auth]\ntokens = {:?}\n", self.path.display().to_string())
    }
}

pub(crate) fn with_token(token: &str) -> Credentials {
    Credentials {
        token: Bearer::new(token).unwrap(),
        ..Credentials::default()
    }
}

pub(crate) fn with_certificate(ca: &Path, pair: Option<&Pair>) -> Credentials {
    Credentials {
        ca: Some(ca.to_owned()),
        certificate: pair.map(|pair| pair.certificate.clone()),
        key: pair.map(|pair| pair.key.clone()),
        ..Credentials::default()
    }
}

/// A scheduler without agents, with these further sections.
pub(crate) async fn scheduler(sections: String, credentials: Credentials) -> Region {
    Region::start(RegionOptions {
        hosts: Vec::new(),
        sections,
        credentials,
        ..RegionOptions::default()
    })
    .await
    .unwrap()
}

/// A refused call: its status and its stable code.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> (Code, String) {
    let status = answer.unwrap_err();
    assert!(!status.message().contains("ebt_"), "{status}");
    (status.code(), code(&status))
}

/// Waits until the attempt goes well.
pub(crate) async fn soon<T, F: AsyncFnMut() -> Result<T, String>>(attempt: F) -> T {
    eventually(PATIENCE, attempt).await
}
