//! The console: a single-page application in the browser, over the REST API and its event stream.
//!
//! `./console/build` makes its files from the folder `console`, and this crate has them in the
//! program. Without them the scheduler serves a page that says how to build them: a build of the
//! scheduler needs no Node.js.
//!
//! The files are the same for every caller and need no token. What they show, they read from the
//! REST API with the token that the user has given them.

mod headers;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use rust_embed::{EmbeddedFile, RustEmbed};

/// Where the console is served.
pub const PATH: &str = "/console/";
/// The document; every other file is named by it.
const INDEX: &str = "index.html";
/// The folder of files whose names contain a hash of their content.
const HASHED: &str = "assets/";
/// The ending of the compressed twin of a file.
const COMPRESSED: &str = ".gz";

/// What `./console/build` has written.
#[derive(RustEmbed)]
#[folder = "../../../console/dist"]
struct Files;

/// Shown by a scheduler that was built without the console.
const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ebbtide</title></head><body>
<h1>This scheduler was built without the console</h1>
<p>Run <code>./console/build</code> (it needs Node.js), then build the scheduler again. Packages of
Ebbtide contain the console.</p>
</body></html>
";

/// True if this program contains the console.
#[must_use]
pub fn is_built() -> bool {
    Files::get(INDEX).is_some()
}

/// The answer to a request for the console; `None` if the request is for something else.
///
/// A browser that asks for `/` is sent to the console. Other clients get the versions of the API
/// there.
#[must_use]
pub fn answer(method: &Method, path: &str, request: &HeaderMap) -> Option<Response<Bytes>> {
    let name = match path.strip_prefix(PATH) {
        Some(name) => name,
        None if path == PATH.trim_end_matches('/') => return Some(redirect()),
        None if path == "/" && method == Method::GET && wants_html(request) => {
            return Some(redirect());
        }
        None => return None,
    };
    let mut answer = match *method {
        Method::GET | Method::HEAD => file(name, request),
        _ => {
            let mut answer = status(StatusCode::METHOD_NOT_ALLOWED);
            let allow = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(header::ALLOW, allow);
            answer
        }
    };
    if method == Method::HEAD {
        *answer.body_mut() = Bytes::new();
    }
    headers::protect(answer.headers_mut());
    Some(answer)
}

fn file(name: &str, request: &HeaderMap) -> Response<Bytes> {
    let name = if name.is_empty() { INDEX } else { name };
    let found = match is_document(name) {
        true => Files::get(name),
        false => None,
    };
    let Some(plain) = found else {
        return match name {
            INDEX => not_built(),
            _ => status(StatusCode::NOT_FOUND),
        };
    };
    let tag = entity_tag(&plain);
    let mut answer = if matches(request, &tag) {
        status(StatusCode::NOT_MODIFIED)
    } else {
        let twin = match accepts_gzip(request) {
            true => Files::get(&format!("{name}{COMPRESSED}")),
            false => None,
        };
        let compressed = twin.is_some();
        let mut answer = Response::new(bytes(twin.unwrap_or(plain)));
        if compressed {
            let gzip = HeaderValue::from_static("gzip");
            answer.headers_mut().insert(header::CONTENT_ENCODING, gzip);
        }
        answer
    };
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type(name));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CACHE_CONTROL, kept(name));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    answer
}

/// The compressed twins are representations, not documents of their own. `.gitignore` keeps the
/// folder in the repository.
fn is_document(name: &str) -> bool {
    !name.ends_with(COMPRESSED) && !name.starts_with('.')
}

fn bytes(file: EmbeddedFile) -> Bytes {
    match file.data {
        std::borrow::Cow::Borrowed(data) => Bytes::from_static(data),
        std::borrow::Cow::Owned(data) => Bytes::from(data),
    }
}

fn status(status: StatusCode) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = status;
    answer
}

fn redirect() -> Response<Bytes> {
    let mut answer = status(StatusCode::SEE_OTHER);
    let headers = answer.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static(PATH));
    // What `/` is depends on who asks.
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers::protect(headers);
    answer
}

fn not_built() -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from_static(NOT_BUILT.as_bytes()));
    *answer.status_mut() = StatusCode::NOT_FOUND;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type(INDEX));
    headers.insert(header::CACHE_CONTROL, kept(INDEX));
    answer
}

/// How long browsers may keep a file.
fn kept(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        // Asked for again each time: after an upgrade it names other files.
        false => "no-cache",
    })
}

fn media_type(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}

/// A weak tag, because the compressed twin has the same.
fn entity_tag(file: &EmbeddedFile) -> String {
    use std::fmt::Write as _;
    let mut tag = String::from("W/\"");
    for byte in file.metadata.sha256_hash().iter().take(16) {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

fn matches(request: &HeaderMap, tag: &str) -> bool {
    words(request, &header::IF_NONE_MATCH).any(|word| word == tag)
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    words(request, &header::ACCEPT_ENCODING).any(|word| {
        let (coding, quality) = word.split_once(';').unwrap_or((word, ""));
        coding.trim().eq_ignore_ascii_case("gzip") && quality.trim() != "q=0"
    })
}

fn wants_html(request: &HeaderMap) -> bool {
    words(request, &header::ACCEPT).any(|word| word.starts_with("text/html"))
}

/// The words of a header that is a list.
fn words<'a>(
    request: &'a HeaderMap,
    name: &'a header::HeaderName,
) -> impl Iterator<Item = &'a str> {
    let values = request.get_all(name).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

#[cfg(test)]
mod tests;
