//! Certificates and keys as files. Each attempt to connect reads them again, so that a renewed
//! certificate needs no restart.

use std::path::{Path, PathBuf};

use lapin::tcp::{OwnedIdentity, OwnedTLSConfig};

/// The PEM files for TLS. The system's root certificates are always trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Further root certificates, for a broker with a private CA.
    pub ca: Option<PathBuf>,
    /// A client certificate chain, leaf first; it needs `key`.
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate`.
    pub key: Option<PathBuf>,
}

/// One of the files of [`TlsFiles`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    /// [`TlsFiles::ca`].
    Ca,
    /// [`TlsFiles::certificate`].
    Certificate,
    /// [`TlsFiles::key`].
    Key,
}

/// Why [`TlsFiles`] cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has another format.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which of the files.
        file: TlsFile,
        path: PathBuf,
        /// The system's words, or the missing format.
        reason: String,
    },
    /// Only one of the client's certificate and key is set.
    #[error("a certificate and its key go together; set both or none")]
    Unpaired,
}

impl TlsFiles {
    /// Checks that the files can be read and belong together.
    ///
    /// # Errors
    ///
    /// The first problem.
    pub fn check(&self) -> Result<(), TlsError> {
        self.read().map(|_| ())
    }

    /// Reads the files for lapin.
    pub(crate) fn read(&self) -> Result<OwnedTLSConfig, TlsError> {
        let identity = match (&self.certificate, &self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(OwnedIdentity::PKCS8 {
                pem: pem(TlsFile::Certificate, certificate)?,
                key: pem(TlsFile::Key, key)?,
            }),
            _ => return Err(TlsError::Unpaired),
        };
        let cert_chain = match &self.ca {
            None => None,
            Some(path) => Some(
                String::from_utf8(pem(TlsFile::Ca, path)?)
                    .map_err(|_| problem(TlsFile::Ca, path, NOT_PEM))?,
            ),
        };
        Ok(OwnedTLSConfig {
            identity,
            cert_chain,
        })
    }
}

const NOT_PEM: &str = "it is not in PEM form";

fn pem(file: TlsFile, path: &Path) -> Result<Vec<u8>, TlsError> {
    let bytes = std::fs::read(path).map_err(|error| problem(file, path, &error.to_string()))?;
    // The dashes before "BEGIN". lapin's own error for a DER file does not name the file.
    if !bytes.windows(5).any(|window| window == b"-----") {
        return Err(problem(file, path, NOT_PEM));
    }
    Ok(bytes)
}

fn problem(file: TlsFile, path: &Path, reason: &str) -> TlsError {
    TlsError::File {
        file,
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("ca.der");
        std::fs::write(&binary, [0x30, 0x82, 0xff]).unwrap();
        for path in [folder.path().join("missing.pem"), binary] {
            let files = TlsFiles {
                ca: Some(path.clone()),
                ..TlsFiles::default()
            };
            let error = files.check().unwrap_err();
            assert!(error.to_string().contains(&path.display().to_string()));
            assert!(matches!(
                error,
                TlsError::File {
                    file: TlsFile::Ca,
                    ..
                }
            ));
        }
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let certificate = Some(PathBuf::from("client.pem"));
        let files = TlsFiles {
            certificate,
            ..TlsFiles::default()
        };
        assert_eq!(files.check(), Err(TlsError::Unpaired));
    }
}
