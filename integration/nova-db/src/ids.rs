//! The only place of this crate that makes an identifier: the UUID of a new services record.

use uuid::Uuid;

#[allow(clippy::disallowed_methods, reason = "this is the crate's ids module")]
pub(crate) fn fresh() -> String {
    Uuid::new_v4().to_string()
}
