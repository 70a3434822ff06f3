//! The pure state machine of a region: servers, claims, evacuations.
//!
//! [`Region`] holds all state that can still change: hosts, servers that are not gone, evacuations
//! under way. It takes inputs (a command from the API, a report from an agent, a publisher confirm
//! from the broker, the time) and answers with the input's own [`RegionInput::Reply`] and
//! [`Effects`]. The caller makes
//! the changes in the effects durable *in one transaction* before it returns the reply, and then
//! publishes the events. The region has no clock, no I/O and no random numbers; identifiers come
//! from an [`Ids`].
//!
//! # Invariants
//! - **No unnecessary eviction.** A notice exists only as an outbox row in the same transaction as
//!   the preemptor's claim. When a claim is withdrawn, or gets its capacity from elsewhere, the
//!   region sends a spare to the victims that no other claim needs, in the same transaction.
//! - **No capacity is given twice.** A server holds its capacity in the host table from the
//!   decision on until its agent has reported that the server is gone. The possible remains of an
//!   abandoned start hold theirs, too. A claim starts only when the capacity is physically free.
//! - **No unlimited wait.** Every wait has a time limit. After it the region tries another host or
//!   sets the server to error.
//! - **Exactly-once effect.** Reports may arrive twice, late or never. The region compares each
//!   report with the state that it is about; an obsolete one changes nothing, or is answered again.
//! - If the transaction fails, the caller discards the region and restores it from the database:
//!   memory is never ahead of the database.
//!
//! `docs/operate/evacuation.md` describes the protocol with all states, messages and limits.

mod admin;
mod adopt;
mod audit;
mod backup;
mod books;
mod budgets;
mod capacity;
mod claims;
mod comeback;
mod command;
mod config;
mod effects;
mod error;
mod evacuate;
mod examine;
mod heartbeat;
mod input;
mod lifetimes;
mod market;
mod memory;
mod orphaned_start;
mod past_life;
mod prices;
mod reclaim;
mod record;
mod relocation;
mod removal;
mod replication;
mod reports;
mod restore;
mod servers;
mod shadow;
mod speculate;
mod state;
mod timers;
mod transition;
mod view;

pub use backup::{ReconcileAction, ReconcileRegion, ReconcileStep, Reconciliation};
pub use command::{
    AdoptServer, CreateFlavor, CreateGroup, CreateServers, CreatedServers, DeleteAggregate,
    DeleteBudget, DeleteFlavor, DeleteGroup, DeleteServer, DisableHost, EnableHost, PutAggregate,
    PutBudget, ReadmitHost, ReclaimHost, ReleaseServer, RemoveHost, ReturnHost,
};
pub use config::RegionConfig;
pub use ebbtide_evacuation::ComebackConfig;
pub use effects::Effects;
pub use error::RegionError;
pub use examine::{Disagreement, Examination};
pub use input::{CountingIds, Ids, InputKind, OutboxConfirmation, RegionInput, Report, Tick};
pub use record::{RECORD_FORMAT, RegionRecord};
pub use speculate::{Speculation, SpeculationCounts};
pub use state::Region;
pub use view::RegionFigures;

#[cfg(test)]
mod tests;
