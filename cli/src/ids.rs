//! The only place of this crate that makes new identifiers.

use uuid::Uuid;

/// A new identifier that sorts by the time at which it was made.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the ids module.
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}
