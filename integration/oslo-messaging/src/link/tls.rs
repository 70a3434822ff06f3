//! The files of the options `ssl_*`, read once for each attempt to connect: a renewed certificate
//! needs no restart.

use std::path::Path;

use lapin::tcp::{OwnedIdentity, OwnedTLSConfig};

use crate::{MessagingError, RabbitOptions};

/// What lapin needs for TLS. Roots are the system's, and those of `ssl_ca_file` besides.
pub(crate) fn config(options: &RabbitOptions) -> Result<OwnedTLSConfig, MessagingError> {
    let cert_chain = match &options.ssl_ca_file {
        Some(path) => {
            let pem = read("ssl_ca_file", path)?;
            let text = String::from_utf8(pem)
                .map_err(|_| problem("ssl_ca_file", path, "it is not in PEM form"))?;
            Some(text)
        }
        None => None,
    };
    let identity = match (&options.ssl_cert_file, &options.ssl_key_file) {
        (Some(certificate), Some(key)) => Some(OwnedIdentity::PKCS8 {
            pem: read("ssl_cert_file", certificate)?,
            key: read("ssl_key_file", key)?,
        }),
        _ => None,
    };
    Ok(OwnedTLSConfig {
        identity,
        cert_chain,
    })
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, MessagingError> {
    let bytes = std::fs::read(path).map_err(|error| problem(option, path, &error.to_string()))?;
    if !bytes.windows(5).any(|window| window == b"-----") {
        return Err(problem(option, path, "it is not in PEM form"));
    }
    Ok(bytes)
}

fn problem(option: &'static str, path: &Path, reason: &str) -> MessagingError {
    MessagingError::TlsFile {
        option,
        path: path.display().to_string(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_option() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("ca.der");
        std::fs::write(&binary, [0x30, 0x82, 0xff]).unwrap();
        for path in [folder.path().join("missing.pem"), binary] {
            let options = RabbitOptions {
                ssl_ca_file: Some(path.clone()),
                ..RabbitOptions::default()
            };
            let error = config(&options).err().unwrap();
            assert_eq!(error.code(), "EB-OSLO-003");
            let text = error.to_string();
            assert!(
                text.contains("ssl_ca_file") && text.contains(&path.display().to_string()),
                "{text}"
            );
        }
    }
}
