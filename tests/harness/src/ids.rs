//! The only place of the harness that draws random names and numbers.

use uuid::Uuid;

/// Twelve hexadecimal digits (48 random bits): enough that no two of the few thousand databases,
/// queues and nodes of one test run meet, and short enough for a MySQL database name and a Unix
/// socket path.
pub(crate) fn fresh() -> String {
    let mut name = uuid().simple().to_string();
    name.truncate(12);
    name
}

/// A random number, for choosing a port.
pub(crate) fn random() -> u16 {
    let bytes = uuid().into_bytes();
    u16::from_be_bytes([bytes[0], bytes[1]])
}

#[allow(
    clippy::disallowed_methods,
    reason = "names of throw-away servers; nothing is decided by them"
)]
fn uuid() -> Uuid {
    Uuid::new_v4()
}
