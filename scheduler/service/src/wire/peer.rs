//! The other end of a connection.

use ebbtide_listen::ConnectionHandle;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::Arc;

/// The other end of a connection. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The names in its certificate (`dns:…`, `uri:…`), if it has presented a trusted one.
    pub(crate) names: Option<Arc<Vec<String>>>,
    /// The connection's handle; `None` for the listener itself.
    pub(crate) session: Option<ConnectionHandle>,
}

/// The names in a certificate whose chain has been verified. A certificate that cannot be parsed
/// has none.
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
