//! The server side of TLS: rustls with ring, TLS 1.2 and 1.3. Certificates are read again when
//! their files change.

use crate::Tasks;
use crate::config::{ClientCertificates, Tls};
use crate::error::ServiceError;
use ebbtide_runtime::task::pause;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

/// How often the files are checked for changes: `stat` of four files.
const LOOK: Duration = Duration::from_secs(1);

/// The TLS configuration for new connections.
#[derive(Debug)]
pub(crate) struct TlsServer {
    files: Tls,
    section: &'static str,
    protocols: &'static [&'static [u8]],
    current: RwLock<Arc<ServerConfig>>,
}

impl TlsServer {
    /// Reads the files. `section` is the configuration section for errors, `protocols` are those of
    /// ALPN.
    ///
    /// # Errors
    /// [`ServiceError::Config`] with the invalid file.
    pub(crate) fn load(
        files: &Tls,
        section: &'static str,
        protocols: &'static [&'static [u8]],
    ) -> Result<Arc<Self>, ServiceError> {
        let current = server_config(files, section, protocols)?;
        if let Some(mode) = readable_by_others(&files.key) {
            tracing::warn!(
                "{section}.tls.key = {:?}: everybody on the machine can read it (mode {mode:o}); chmod o= it",
                files.key
            );
        }
        Ok(Arc::new(Self {
            files: files.clone(),
            section,
            protocols,
            current: RwLock::new(Arc::new(current)),
        }))
    }

    /// The acceptor for the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&current))
    }

    /// Reads the files again whenever they change. Invalid files are logged, and the former ones
    /// stay in use.
    pub(crate) fn follow(self: &Arc<Self>, tasks: &Tasks) {
        let this = Arc::clone(self);
        let stop = tasks.stop().clone();
        let mut seen = Stamp::of(&this.paths());
        tasks.spawn("tls-files", async move {
            while pause(&stop, LOOK).await {
                let now = Stamp::of(&this.paths());
                if now == seen {
                    continue;
                }
                match server_config(&this.files, this.section, this.protocols) {
                    Ok(new) => {
                        *this.current.write().unwrap_or_else(PoisonError::into_inner) =
                            Arc::new(new);
                        tracing::info!(section = this.section, "the certificates were read again");
                        seen = now;
                    }
                    // Certificate and key are two files that do not match while only one of them
                    // has been written.
                    Err(error) => tracing::warn!(
                        code = error.code(),
                        "the new certificates cannot be used yet, the old ones stay: {error}"
                    ),
                }
            }
        });
    }

    fn paths(&self) -> Vec<PathBuf> {
        let Tls {
            certificate,
            key,
            client_ca,
            client_crl,
            ..
        } = &self.files;
        [
            Some(certificate),
            Some(key),
            client_ca.as_ref(),
            client_crl.as_ref(),
        ]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
    }
}

/// Identifies a version of some files without reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<Option<(u64, i64, i64, u64)>>);

impl Stamp {
    /// The present version.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let one = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((
                metadata.ino(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.len(),
            ))
        };
        Self(paths.iter().map(one).collect())
    }
}

fn server_config(
    files: &Tls,
    section: &str,
    protocols: &[&[u8]],
) -> Result<ServerConfig, ServiceError> {
    let wrong = |key: &str, path: &Path, problem: String| {
        ServiceError::Config(format!("{section}.tls.{key} = {path:?}: {problem}"))
    };
    let chain = certificates(&files.certificate)
        .map_err(|problem| wrong("certificate", &files.certificate, problem))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong("key", &files.key, pem_problem(&error, "private key")))?;
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ServiceError::Config(format!("{section}.tls: {error}")))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(path).map_err(|problem| wrong("client_ca", path, problem))? {
                roots
                    .add(root)
                    .map_err(|error| wrong("client_ca", path, error.to_string()))?;
            }
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            if let Some(path) = &files.client_crl {
                let lists: Result<Vec<_>, _> =
                    CertificateRevocationListDer::pem_file_iter(path).and_then(Iterator::collect);
                let lists = lists.map_err(|error| {
                    wrong("client_crl", path, pem_problem(&error, "revocation list"))
                })?;
                if lists.is_empty() {
                    let problem = "there is no PEM block X509 CRL in it".to_owned();
                    return Err(wrong("client_crl", path, problem));
                }
                // Certificates of roots without a revocation list are accepted: an authority need
                // not have one.
                verifier = verifier.with_crls(lists).allow_unknown_revocation_status();
            }
            if files.client_certificates == ClientCertificates::Optional {
                verifier = verifier.allow_unauthenticated();
            }
            let verifier = verifier
                .build()
                .map_err(|error| wrong("client_ca", path, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        let problem = format!("it does not go with {:?}: {error}", files.key);
        wrong("certificate", &files.certificate, problem)
    })?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// The mode of a file, if every user of the machine can read it.
fn readable_by_others(path: &Path) -> Option<u32> {
    let mode = std::fs::metadata(path).ok()?.mode() & 0o777;
    (mode & 0o004 != 0).then_some(mode)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| pem_problem(&error, "certificate"))?;
    if found.is_empty() {
        return Err("there is no PEM block CERTIFICATE in it".to_owned());
    }
    Ok(found)
}

/// What is wrong with a PEM file, without its contents.
fn pem_problem(error: &rustls_pki_types::pem::Error, what: &str) -> String {
    use rustls_pki_types::pem::Error;
    match error {
        Error::Io(error) => error.to_string(),
        Error::NoItemsFound => format!("there is no {what} in PEM form in it"),
        _ => format!("its {what} cannot be read as PEM"),
    }
}
