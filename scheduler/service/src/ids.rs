//! The only module of this crate that makes identifiers.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use ebbtide_region::Ids;
use uuid::Uuid;

/// Identifiers that sort by the time of their creation (UUID version 7), which suits database
/// indexes.
#[derive(Debug, Default)]
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    fn next(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}

/// One new identifier.
pub(crate) fn new() -> Uuid {
    Uuid::now_v7()
}

/// Random bytes, for plugins with that permission.
pub(crate) fn fill(bytes: &mut [u8]) {
    if let Err(error) = getrandom::fill(bytes) {
        tracing::error!("the system has no random numbers: {error}");
    }
}
