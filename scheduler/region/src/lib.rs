//! The pure state machine of a region: servers, claims, evacuations.
//!
//! [`Region`] holds everything that can still change: hosts, servers that are not gone, evacuations under way. It gets
//! inputs (a command from the API, a report from an agent, the news that the broker has confirmed a message, the time) and
//! answers with a [`Reply`] and [`Effects`]: changes that have to be made durable *in one transaction* before the reply is
//! given, and events for those who watch. It knows no clock, no I/O and no chance; identifiers come from an [`Ids`].
//!
//! # Invariants
//! - **Nobody dies for nothing.** A notice exists only as an outbox row of the same transaction as the preemptor's claim. Whenever a
//!   claim goes away, or gets its room from elsewhere, the victims that nobody else needs are asked to stay in that transaction.
//! - **No room is given twice.** A server holds its room in the host table from the decision on until its agent has
//!   reported that it is gone, and so does what a start that was given up may have left behind; a claim starts only when the room is
//!   physically free.
//! - **Nobody waits for ever.** Whatever is waited for has a limit, after which another host is tried or the server is in error.
//! - **Exactly-once effect.** Reports may come twice, late or never: each is compared with the state that it speaks about, and an old
//!   one changes nothing, or is answered again.
//! - If the transaction fails, the region is thrown away and restored from the database: memory is never ahead of it.
//!
//! `docs/evacuation.md` tells the protocol in words, with all states, messages and limits.

mod admin;
mod adopt;
mod audit;
mod budgets;
mod claims;
mod comeback;
mod config;
mod elsewhere;
mod error;
mod evacuate;
mod examine;
mod follow;
mod gone;
mod heartbeat;
mod input;
mod lifetimes;
mod lives;
mod market;
mod memory;
mod orphaned_start;
mod pending_calls;
mod prices;
mod record;
mod reports;
mod restore;
mod resume_queue;
mod room;
mod servers;
mod shadow;
mod speculate;
mod state;
mod timers;
mod transition;
mod view;

pub use config::{ComebackConfig, RegionConfig};
pub use error::RegionError;
pub use examine::{Examination, Finding};
pub use input::{AdoptServer, Command, CreateServers, Effects, Event, Ids, Input, Reply};
pub use market::FlavorPrice;
pub use record::{RECORD_FORMAT, RegionRecord};
pub use shadow::{Compared, Side};
pub use speculate::{Speculation, SpeculationCounts};
pub use state::Region;
pub use view::{HostView, Summary};

#[cfg(test)]
mod tests;
