//! When servers come back.

use super::{ClassCapacity, ReservedCapacity, units};
use ebbtide_model::{ResourceClass, Resources, Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// In seconds.
const DAY: u32 = 24 * 3600;

ebbtide_model::settings! {
    /// When servers that were stopped or hibernated for a preemptor are resumed automatically.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ComebackConfig: Default {
        /// Whether servers that were stopped or hibernated for a preemptor come back by themselves;
        /// false: they stay as they are until their owners delete them.
        pub enabled: bool = true => key("false");
        /// How long a server stays away at least after it had to leave, and after an attempt that
        /// failed. Twice as long each further time, up to `max_seconds`.
        // A grace period: a preemptor whose request is withdrawn may give the capacity back at
        // once.
        pub first_seconds: Seconds = Seconds(30) => key("60").range(1..=7 * DAY);
        /// Longest time that a server stays away if there is room. Not below `first_seconds`.
        pub max_seconds: Seconds = Seconds(3600) => key("7200").range(1..=7 * DAY);
        /// A server that has run this long starts again with `first_seconds`; resumes of a project
        /// within this time count for its turn.
        pub window_seconds: Seconds = Seconds(3600) => key("7200").range(1..=7 * DAY);
        /// How much of each resource class of a host has to stay free for the next request when a
        /// server comes back. Ignored on a host without other servers.
        // One processor of 20 and 5 GiB of 100: enough for a small request, and nothing on
        // hosts with few processors.
        pub reserve_percent: u32 = 5 => key("10").range(0..=90);
        /// In every second period of this length the first server in a host's queue reserves the
        /// free capacity; in the others smaller servers may go before it.
        pub hold_seconds: Seconds = Seconds(600) => key("300").range(1..=DAY);
        /// How many servers return to one host at the same time.
        // Their memory is read from one disk.
        pub at_once: u32 = 4 => key("2").range(1..=1000);
    }
}

impl ComebackConfig {
    /// How long a server stays away for the `n`th time in a row, counted from 1.
    #[must_use]
    pub fn waiting_time(&self, n: u32) -> Seconds {
        // 31 doublings exceed any limit; more would overflow the shift.
        let doublings = n.saturating_sub(1).min(31);
        let long = u64::from(self.first_seconds.0) << doublings;
        let limit = u64::from(self.max_seconds.0);
        Seconds(u32::try_from(long.min(limit)).unwrap_or(self.max_seconds.0))
    }

    /// True in the periods in which the first server in the queue reserves the free capacity.
    #[must_use]
    pub fn holds(&self, since: Timestamp, now: Timestamp) -> bool {
        let period = self.hold_seconds.as_millis().max(1);
        (now.millis_since(since).max(0) / period) % 2 == 1
    }

    /// How many servers return to one host at the same time.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        usize::try_from(self.at_once).unwrap_or(usize::MAX)
    }

    /// True if these resources fit into what is free, beside what is reserved for another server
    /// and with the reserve left. `alone`: no other server holds capacity on the host.
    pub fn fits(
        &self,
        needs: &Resources,
        reserved: &ReservedCapacity,
        alone: bool,
        room: impl Fn(&ResourceClass) -> ClassCapacity,
    ) -> bool {
        let percent = i64::from(self.reserve_percent);
        needs.iter().all(|(class, amount)| {
            let room = room(class);
            let reserve = match alone {
                true => 0,
                false => room.capacity.saturating_mul(percent) / 100,
            };
            let reserved = reserved.get(class).copied().unwrap_or(0);
            room.free - reserved - reserve >= units(amount)
        })
    }
}
