//! What the agent does, as a pure state machine: no clock, no I/O, no async.
//!
//! [`AgentCore`] is told what has happened ([`Input`]) and what time it is, and answers with what has to be done
//! ([`Effect`]). The shell (`ebbtide_agent::agent`) does it. Whatever can be got wrong with commands that arrive twice, late, in the
//! wrong order or never, and with crashes at any step, is decided here and tested here.
//!
//! Invariants, each of them a property test:
//!
//! - A victim is never ended before its grace period is over, unless it was released, or there was nobody to wait for.
//! - A spared victim is never ended, and a victim whose end has begun is never reported as spared.
//! - The same notice any number of times ends one victim once, and its grace period is not begun anew.
//! - [`Phase::Acting`] is durable before the driver is asked to end a victim.
//! - A delivery is acknowledged only after its effect is done, durable where it must be, and its report confirmed.
//! - At most one call of the driver is under way for a server.
//! - Nobody is fenced whose end has not begun, or who could be hibernated, stopped or terminated by the driver.
//! - Every command is answered in the end, whatever fails on the way.
//!
//! The grace period is a length of time. Its end is written down as a time of day, because it goes on while the agent is down; if the clock is
//! set meanwhile, the end moves with it.

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
pub use effect::{Action, ActionId, Done, Effect, Input, ReportId, Token};
pub use error::DriverError;
pub use policy::Policy;
pub use record::{
    CommandRef, Drain, EvacuationRecord, Phase, Record, ServerRecord, Terms, Verdict,
};
pub use view::{GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView};
