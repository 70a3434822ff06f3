//! The one place of this crate that makes up identifiers.

use uuid::Uuid;

/// A fresh identifier of 32 hexadecimal digits, as oslo.messaging uses for `_msg_id`, `_unique_id`
/// and queue names.
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub(crate) fn hex() -> String {
    Uuid::new_v4().simple().to_string()
}

/// A fresh identifier with hyphens, as in the `message_id` of notifications.
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub(crate) fn hyphenated() -> String {
    Uuid::new_v4().hyphenated().to_string()
}

/// Chance, for the order in which brokers are tried and for pauses. Nothing secret is made of it.
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub(crate) fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}
