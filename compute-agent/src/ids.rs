//! The one place of this crate that makes identifiers. Those of reports are not made here but
//! derived (see `protocol::report`), so that a repeated report has the same.

use uuid::Uuid;

/// A new identifier for one run of the agent.
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub(crate) fn session() -> Uuid {
    Uuid::now_v7()
}

/// An unguessable text: 244 random bits from the system.
#[allow(clippy::disallowed_methods)] // This is the crate's `ids` module.
pub(crate) fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
