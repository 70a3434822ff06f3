//! The HTTP client with its TLS.

use crate::error::OpenStackError;
use crate::options::{SessionOptions, TlsOptions};
use reqwest::{Certificate, Client, ClientBuilder, Identity};
use std::path::Path;

/// A client for these options. It follows no redirects: what we send carries a token.
pub(crate) fn client(tls: &TlsOptions, options: &SessionOptions) -> Result<Client, OpenStackError> {
    // reqwest takes the provider of the process. An error means that a provider is already
    // installed; it is the same one, because this workspace contains only ring.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trusted = match &tls.cafile {
        None => None,
        Some(path) => {
            let certificates = Certificate::from_pem_bundle(&read("cafile", path)?);
            let certificates =
                certificates.map_err(|_| bad("cafile", path, "it holds no certificates in PEM"))?;
            Some(certificates)
        }
    };
    let identity = identity(tls)?;
    let build = |roots: Option<Vec<Certificate>>| {
        let mut builder: ClientBuilder = Client::builder()
            .user_agent(&options.user_agent)
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(options.idle_connections)
            // Below the 5 s after which Apache closes an idle connection: a request must not meet
            // the closing.
            .pool_idle_timeout(std::time::Duration::from_secs(4))
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .tls_danger_accept_invalid_certs(tls.insecure);
        if let Some(roots) = roots {
            builder = builder.tls_certs_only(roots);
        }
        if let Some(identity) = identity.clone() {
            builder = builder.identity(identity);
        }
        builder.build()
    };
    let has_own_roots = trusted.is_some();
    build(trusted)
        .or_else(|error| {
            if has_own_roots {
                return Err(error);
            }
            // A machine without certificates can still talk to services without TLS.
            tracing::debug!(%error, "no certificates of the system; TLS needs cafile");
            build(Some(Vec::new()))
        })
        .map_err(|error| {
            OpenStackError::config("TLS", "cafile, certfile, keyfile", error.to_string())
        })
}

fn identity(tls: &TlsOptions) -> Result<Option<Identity>, OpenStackError> {
    let Some(certfile) = &tls.certfile else {
        return match &tls.keyfile {
            None => Ok(None),
            Some(path) => Err(bad("keyfile", path, "it is given without certfile")),
        };
    };
    let mut pem = read("certfile", certfile)?;
    if let Some(keyfile) = &tls.keyfile {
        pem.push(b'\n');
        pem.extend(read("keyfile", keyfile)?);
    }
    let identity = Identity::from_pem(&pem);
    let problem = "it holds no certificate and private key in PEM (the key may be in keyfile)";
    identity
        .map(Some)
        .map_err(|_| bad("certfile", certfile, problem))
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, OpenStackError> {
    std::fs::read(path).map_err(|error| bad(option, path, &error.to_string()))
}

fn bad(option: &str, path: &Path, problem: &str) -> OpenStackError {
    OpenStackError::config("TLS", option, format!("{}: {problem}", path.display()))
}
