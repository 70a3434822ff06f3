//! The only place of this crate where identifiers are made.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use uuid::Uuid;

/// One identifier that sorts by the time at which it was made (UUID version 7), which databases
/// like.
pub(crate) fn new() -> Uuid {
    Uuid::now_v7()
}

/// A seed for whatever chance the operator's options allow.
pub(crate) fn seed() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    high ^ low
}
