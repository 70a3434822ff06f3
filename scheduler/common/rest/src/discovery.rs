//! The documents by which OpenStack's clients find the versions of an API.

use axum::http::HeaderMap;
use axum::http::uri::Authority;
use serde_json::{Value, json};

/// The version of the API. The second number grows with every addition to the contracts that a
/// client has to know of; so far there was none.
pub(crate) const VERSION: &str = "1.0";

/// The document of the top: all versions.
pub(crate) fn versions(base: &str) -> Value {
    json!({ "versions": [version_entry(base)] })
}

/// The document of `/v1`.
pub(crate) fn version(base: &str) -> Value {
    json!({ "version": version_entry(base) })
}

fn version_entry(base: &str) -> Value {
    json!({
        "id": format!("v{VERSION}"),
        "status": "CURRENT",
        "links": [
            { "rel": "self", "href": format!("{base}/v1/") },
            {
                "rel": "describedby",
                "type": "application/vnd.oai.openapi+json;version=3.1",
                "href": format!("{base}/v1/openapi.json"),
            },
        ],
    })
}

/// The address by which the client has reached this service, without a path. Empty if the request
/// does not say it: the links are then relative.
pub(crate) fn base(https: bool, authority: Option<&Authority>, headers: &HeaderMap) -> String {
    let host = headers
        .get(axum::http::header::HOST)
        .and_then(|host| host.to_str().ok())
        .and_then(|host| host.parse::<Authority>().ok());
    // HTTP/2 has the host in the address of the request.
    match authority.or(host.as_ref()) {
        Some(at) if !at.as_str().contains('@') => {
            format!("{}://{at}", if https { "https" } else { "http" })
        }
        _ => String::new(),
    }
}
