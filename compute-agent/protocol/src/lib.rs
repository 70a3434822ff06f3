//! The agent's logic as a pure state machine: no clock, no I/O, no async.
//!
//! [`AgentCore`] gets events ([`AgentInput`]) with the current time and answers with what to do
//! ([`AgentEffect`]). The shell (`ebbtide_agent::agent`) does it. Everything that can go wrong with
//! commands that arrive twice, late, in the wrong order or never, and with crashes at any step, is
//! decided here and tested here.
//!
//! Invariants, each of them a property test:
//!
//! - A victim is never ended before its grace period is over, unless it was released, or there was
//!   no running guest to wait for.
//! - A spared victim is never ended, and a victim whose end has begun is never reported as spared.
//! - The same notice any number of times ends one victim once, and its grace period does not
//!   restart.
//! - [`EvacuationPhase::Acting`] is durable before the driver is asked to end a victim.
//! - A delivery is acknowledged only after its effect is done, durable where it must be, and its
//!   report confirmed.
//! - At most one call of the driver is under way for a server.
//! - A victim is fenced only after its end has begun and the driver could not hibernate, stop or
//!   terminate it.
//! - Every command is answered in the end, whatever fails on the way.
//!
//! The grace period is a duration. The agent stores its end as a time of day, because it continues
//! while the agent is down; if the clock is set meanwhile, the end moves with it.

mod clock;
mod core;
mod dispatch;
mod effect;
mod error;
mod evacuation;
mod fence;
mod objection;
mod policy;
mod record;
mod report;
mod server;
mod view;

#[cfg(test)]
mod tests;

pub use self::core::AgentCore;
pub use effect::{
    ActionId, AgentEffect, AgentInput, DeliveryTag, DriverCall, DriverResult, ReportId,
};
pub use error::DriverError;
pub use policy::AgentPolicy;
pub use record::{
    CommandRef, Drain, EvacuationPhase, EvacuationRecord, EvacuationResult, JournalRecord,
    NoticeTerms, ServerRecord,
};
pub use view::{GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView};
