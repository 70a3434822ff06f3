//! The return of servers that were evacuated and kept, the same on both clouds: when a server may
//! be resumed, which one is first, and what has to stay free.
//!
//! - **Fair.** The project with the fewest resumptions within the window goes first, then the
//!   server that has waited longest. A server that does not fit is overtaken by smaller ones in
//!   every other period of `hold_seconds`. In the periods between, the first server that does not
//!   fit reserves the free capacity. So small servers do not keep a large one waiting for ever, nor
//!   a large one the small ones.
//! - **No thrashing.** A server that is evicted again before it has run for `window_seconds` stays
//!   away twice as long as the last time, up to `max_seconds`. So does one whose resumption fails.
//!   A server is resumed only if `reserve_percent` of the host stays free for the next request,
//!   unless the host has no other server.

mod config;
mod queue;
mod record;

pub use config::ComebackConfig;
pub use queue::{ResumeEntry, ResumeQueue, ResumeState};
pub use record::{failed_attempt, saved};

use ebbtide_model::{ResourceClass, Resources};
use std::collections::BTreeMap;

/// Capacity that is reserved for a waiting server, by class.
pub type ReservedCapacity = BTreeMap<ResourceClass, i64>;

/// What a host has of one resource class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCapacity {
    /// Free beside all servers and all promises.
    pub free: i64,
    /// All that servers may use.
    pub capacity: i64,
}

/// An amount in the unit of free capacity. Larger amounts than any host has stay larger.
fn units(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// What a server reserves for itself.
#[must_use]
pub fn reserved_for(needs: &Resources) -> ReservedCapacity {
    let amounts = needs.iter();
    amounts.map(|(c, n)| (c.clone(), units(n))).collect()
}

#[cfg(test)]
mod tests;
