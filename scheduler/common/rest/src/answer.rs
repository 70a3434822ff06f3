//! Answers of one JSON document.

use crate::contract::BoundRoute;
use crate::error::RestError;
use crate::{json, page};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use prost_reflect::DynamicMessage;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use tonic::body::Body;

/// A JSON document with a status.
pub(crate) fn text(status: StatusCode, text: String) -> Response<Body> {
    let mut answer = Response::new(Body::new(axum::body::Body::from(text)));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// An answer without a body.
fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

/// The parts of a request that its answer needs.
#[derive(Debug)]
pub(crate) struct RequestParts {
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
}

/// The answer of a call.
///
/// # Errors
/// [`RestError::Answer`].
pub(crate) fn of(
    route: &BoundRoute,
    status: u16,
    message: &DynamicMessage,
    asked: &RequestParts,
) -> Result<Response<Body>, RestError> {
    let status =
        StatusCode::from_u16(status).map_err(|error| RestError::Answer(error.to_string()))?;
    if status == StatusCode::NO_CONTENT {
        return Ok(empty(status));
    }
    let mut value = json::write(message)?;
    let next = route
        .route
        .page
        .and_then(|page| page::next(&page, &asked.path, &asked.query, message));
    if let (Some(next), Value::Object(fields)) = (&next, &mut value) {
        let links = json!([{ "rel": "next", "href": next }]);
        fields.insert("links".to_owned(), links);
    }
    let body = value.to_string();
    let tag = route.route.etag.then(|| entity_tag(&body));
    let known = asked.headers.get(header::IF_NONE_MATCH);
    let unchanged = match (&tag, known.and_then(|known| known.to_str().ok())) {
        (Some(tag), Some(known)) => names(known, tag),
        _ => false,
    };
    let mut answer = match unchanged {
        true => empty(StatusCode::NOT_MODIFIED),
        false => text(status, body),
    };
    let headers = answer.headers_mut();
    if let Some(Ok(tag)) = tag.as_deref().map(HeaderValue::from_str) {
        headers.insert(header::ETAG, tag);
    }
    if let Some(next) = next
        && let Ok(link) = HeaderValue::from_str(&format!("<{next}>; rel=\"next\""))
    {
        headers.insert(header::LINK, link);
    }
    Ok(answer)
}

/// A strong entity tag: the first 128 bits of the hash of the body.
fn entity_tag(body: &str) -> String {
    let mut tag = String::from("\"");
    for byte in Sha256::digest(body.as_bytes()).iter().take(16) {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// Whether `If-None-Match` names this tag (RFC 9110, section 13.1.2: compared weakly).
fn names(header: &str, tag: &str) -> bool {
    let mut tags = header.split(',').map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}
