//! Whose connection it is.

use ebbtide_listen::Session;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::Arc;

/// The other end of a connection. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Where it comes from.
    pub(crate) address: SocketAddr,
    /// The names of its certificate (`dns:…`, `uri:…`), if it has shown one that is trusted.
    pub(crate) names: Option<Arc<Vec<String>>>,
    /// The connection's handle; none for the listener itself.
    pub(crate) session: Option<Session>,
}

/// The names for which a certificate stands. The chain has been verified; one that cannot be read has none.
pub(super) fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let dns = certificate
        .valid_dns_names()
        .map(|name| format!("dns:{name}"));
    let uri = certificate
        .valid_uri_names()
        .map(|name| format!("uri:{name}"));
    dns.chain(uri).collect()
}
