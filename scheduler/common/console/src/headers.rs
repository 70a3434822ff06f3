//! Headers that protect the console in the browser.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// What the page may load and do: its own scripts and styles, and requests to the same scheduler.
/// Text never becomes markup: with trusted types and no policy for them, the browser refuses the
/// functions that would do that.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Every header, by name.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    // For browsers that do not know `frame-ancestors`.
    ("x-frame-options", "DENY"),
];

/// Adds the headers. Every answer has them, errors and redirects, too.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
}
