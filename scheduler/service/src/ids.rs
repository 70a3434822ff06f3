//! The only place of this crate where identifiers are made.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use ebbtide_region::Ids;
use uuid::Uuid;

/// Identifiers that sort by the time at which they were made (UUID version 7), which databases like.
#[derive(Debug, Default)]
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    fn next(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}

/// One identifier.
pub(crate) fn new() -> Uuid {
    Uuid::now_v7()
}

/// Random bytes, for plugins to which they are granted.
pub(crate) fn fill(bytes: &mut [u8]) {
    if let Err(error) = getrandom::fill(bytes) {
        tracing::error!("the system has no random numbers: {error}");
    }
}
