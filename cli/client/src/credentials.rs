//! How the command proves who it is, and makes sure of whom it talks to.

use crate::ClientError;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// Larger files are not what they should be.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The bytes of a file in PEM.
type Pem = Vec<u8>;

/// What options, environment and configuration file say together.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Roots of the region's certificate, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The client's certificate.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    pub token: Bearer,
    /// Send a token in plain text to another machine.
    pub insecure: bool,
    /// Take every certificate of the region, as `verify: false` in clouds.yaml has it.
    pub unverified: bool,
}

impl Credentials {
    /// TLS for an `https://` endpoint.
    ///
    /// # Errors
    /// [`ClientError::Usage`] if a file cannot be used, or certificate and key are not both there.
    pub fn tls(&self) -> Result<ClientTlsConfig, ClientError> {
        let tls = match &self.ca {
            Some(path) => {
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path, "--ca")?))
            }
            None => ClientTlsConfig::new().with_native_roots(),
        };
        Ok(match self.identity()? {
            None => tls,
            Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
        })
    }

    /// Certificate and key, PEM.
    pub(crate) fn identity(&self) -> Result<Option<(Pem, Pem)>, ClientError> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some((
                read(certificate, "--certificate")?,
                read(key, "--key")?,
            ))),
            _ => Err(ClientError::Usage(
                "--certificate and --key go together; give both or none".to_owned(),
            )),
        }
    }

    /// Refuses to send a token where others could read it.
    ///
    /// # Errors
    /// [`ClientError::Usage`] that says what to do.
    pub fn check(&self, endpoint: &tonic::transport::Uri) -> Result<(), ClientError> {
        let plain = endpoint.scheme_str() == Some("http");
        if plain && (self.ca.is_some() || self.certificate.is_some()) {
            return Err(ClientError::Usage(format!(
                "certificates are for https://, and the endpoint is {endpoint}"
            )));
        }
        let host = endpoint.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let near = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if plain && !near && !self.insecure && self.token.is_some() {
            return Err(ClientError::Usage(format!(
                "the token would travel to {host} in plain text; use https://, or --insecure if the way there is safe"
            )));
        }
        Ok(())
    }
}

/// Gives out tokens that end, and new ones in their place.
pub trait TokenIssuer: Send + Sync + std::fmt::Debug {
    /// A token that is good for now. `refused` was not accepted: then it is a new one.
    fn token<'a>(&'a self, refused: Option<&'a str>) -> IssuedToken<'a>;
}

/// What an issuer gives: a token, later. An error ends the call that needs it.
pub type IssuedToken<'a> = Pin<Box<dyn Future<Output = Result<String, Status>> + Send + 'a>>;

/// Who the caller is, as it is sent. `Debug` does not show the token.
#[derive(Clone, Default)]
pub struct Bearer(pub(crate) Option<Proof>);

#[derive(Clone)]
pub(crate) enum Proof {
    Fixed(MetadataValue<Ascii>),
    Issued(Arc<dyn TokenIssuer>),
}

impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "Bearer(…)"
        } else {
            "none"
        })
    }
}

impl Bearer {
    /// From a token's text.
    ///
    /// # Errors
    /// [`ClientError::Usage`], which does not repeat the text.
    pub fn new(token: &str) -> Result<Self, ClientError> {
        Self::value(token).map(|value| Self(Some(Proof::Fixed(value))))
    }

    #[must_use]
    pub fn issued(issuer: Arc<dyn TokenIssuer>) -> Self {
        Self(Some(Proof::Issued(issuer)))
    }

    pub(crate) fn value(token: &str) -> Result<MetadataValue<Ascii>, ClientError> {
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {}", token.trim()).parse().map_err(|_| {
                ClientError::Usage("the token has characters that no token has".to_owned())
            })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// From a file that holds nothing but the token.
    ///
    /// # Errors
    /// [`ClientError::Usage`].
    pub fn from_file(path: &Path) -> Result<Self, ClientError> {
        let bytes = read(path, "--token-file")?;
        let text = String::from_utf8(bytes)
            .map_err(|_| ClientError::Usage(format!("--token-file {}: no text", path.display())))?;
        Self::new(&text)
    }

    /// True if there is one.
    #[must_use]
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

fn read(path: &Path, option: &str) -> Result<Vec<u8>, ClientError> {
    let wrong =
        |problem: String| ClientError::Usage(format!("{option} {}: {problem}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(wrong("it is too large for what it should be".to_owned()));
    }
    std::fs::read(path).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_in_plain_text_to_this_machine_only() {
        let with = |token: Bearer, insecure| Credentials {
            token,
            insecure,
            ..Credentials::default()
        };
        let token = || Bearer::new("ebt_x").unwrap();
        let check = |credentials: &Credentials, endpoint: &'static str| {
            credentials.check(&tonic::transport::Uri::from_static(endpoint))
        };
        for near in [
            "http://127.0.0.1:1",
            "http://localhost:1",
            "http://[::1]:1",
            "https://far:1",
        ] {
            assert!(check(&with(token(), false), near).is_ok(), "{near}");
        }
        let error = check(&with(token(), false), "http://far:1").unwrap_err();
        assert!(matches!(error, crate::ClientError::Usage(_)), "{error}");
        assert!(check(&with(token(), true), "http://far:1").is_ok());
        assert!(check(&with(Bearer::default(), false), "http://far:1").is_ok());
    }

    #[test]
    fn nothing_shows_the_token() {
        let bearer = Bearer::new("ebt_geheim").unwrap();
        let value = Bearer::value("ebt_geheim").unwrap();
        for shown in [format!("{bearer:?}"), format!("{value:?}")] {
            assert!(!shown.contains("geheim"), "{shown}");
        }
        let error = Bearer::new("ebt_geheim\n\u{1}x").unwrap_err();
        assert!(!error.to_string().contains("geheim"), "{error}");
    }
}
