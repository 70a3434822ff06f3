//! The one place of this crate that makes identifiers and chance.

use uuid::Uuid;

/// A request id as OpenStack's services write and accept it: `req-` and a UUID.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub fn new_request_id() -> String {
    format!("req-{}", Uuid::new_v4())
}

/// A number of at least 0 and below 1, for waiting times that shall not meet again.
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub(crate) fn fraction() -> f64 {
    let bits = u32::try_from(Uuid::new_v4().as_u128() & 0xffff_ffff).unwrap_or(0);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}
