//! The only place of the ledger that makes identifiers: one for each write, by which a write that
//! is repeated knows itself.

use uuid::Uuid;

#[allow(clippy::disallowed_methods, reason = "this is the ledger's ids module")]
pub(super) fn write() -> Uuid {
    Uuid::new_v4()
}
