//! The only place of this crate that makes new identifiers.

use uuid::Uuid;

/// A new identifier that sorts by the time at which it was made.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the ids module.
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// Bytes that cannot be guessed, for passwords.
#[must_use]
pub fn secret() -> [u8; 32] {
    // Each has 122 random bits of the system's generator.
    let mut bytes = [0; 32];
    for half in bytes.chunks_mut(16) {
        #[allow(clippy::disallowed_methods)] // This is the ids module.
        half.copy_from_slice(Uuid::new_v4().as_bytes());
    }
    bytes
}
