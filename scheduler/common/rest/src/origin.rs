//! Which page a browser sends a request for.

use crate::error::RestError;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri, header};

/// Where a browser says that a request comes from (Fetch Metadata). Browsers leave it out on
/// connections without TLS to other machines.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a change that a page of another origin asks for. A browser adds a client certificate to
/// such a request by itself, and a region without authentication asks for nothing. Clients outside
/// of browsers send neither header.
///
/// # Errors
/// [`RestError::CrossSite`].
pub(crate) fn same(authority: Option<&Authority>, headers: &HeaderMap) -> Result<(), RestError> {
    let refused = |site: &[u8]| {
        Err(RestError::CrossSite {
            site: String::from_utf8_lossy(site).into_owned(),
        })
    };
    if let Some(site) = headers.get(FETCH_SITE) {
        return match site.as_bytes() {
            // `none`: the user typed the address.
            b"same-origin" | b"none" => Ok(()),
            other => refused(other),
        };
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    // HTTP/2 has the host in the address of the request.
    let host = authority.map(Authority::as_str).or(host);
    let from = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.parse::<Uri>().ok());
    let from = from
        .as_ref()
        .and_then(|origin| origin.authority())
        .map(Authority::as_str);
    match from.is_some() && from == host {
        true => Ok(()),
        false => refused(origin.as_bytes()),
    }
}
