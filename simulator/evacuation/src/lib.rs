//! The whole region in one seeded, virtual world: the real state machines against everything that can go wrong.
//!
//! A world is schedulers, agents, a broker, a database (or Placement and a ledger), hypervisors, guests and tenants, and a clock that only
//! the script moves. What decides in it is the real thing: `ebbtide-region`, `ebbtide-agent-protocol`, `ebbtide-preemption`. Around
//! them are shells that do what the services do, and that can die at any step. After each step the promises of the design are checked from
//! outside, by somebody who sees everything; in the end faults stop, and everything has to end.
//!
//! The same seed and number of steps give the same story, always. `docs/evacuation-protocol.md` says what is modelled and what is not.

mod agent;
mod broker;
mod chance;
mod cheapest;
mod fault;
mod hypervisor;
mod mutation;
mod nova;
mod region;
mod regressions;
mod run;
mod script;
mod shared_storage;
mod shrink;
mod story;
mod violation;
mod world_base;

pub use fault::{Fault, FaultCounts};
pub use mutation::Mutation;
pub use regressions::{Regression, parse_regressions};
pub use run::{Ends, Outcome, Simulator, WorldKind};
pub use script::{Op, Places, Step, script};
pub use shrink::Shrunk;
pub use violation::{Promise, Violation};

/// Most steps that a script may have: a day of one core, and places in it can be written down.
pub const MAX_STEPS: usize = 1_000_000;
/// Steps of a script where nobody says how many.
pub const DEFAULT_STEPS: usize = 400;

#[cfg(test)]
mod tests;
