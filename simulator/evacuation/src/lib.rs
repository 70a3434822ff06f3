//! The whole region in one seeded, virtual world: the real state machines against every modelled
//! fault.
//!
//! A world consists of schedulers, agents, a broker, a database (or Placement and a ledger),
//! hypervisors, guests and tenants, and a clock that only the script moves. The real state machines
//! decide in it: `ebbtide-region`, `ebbtide-agent-protocol`, `ebbtide-preemption`. Shells around
//! them do what the services do, and can die at any step. After each step the simulator checks the
//! promises of the design from outside, with full knowledge of the world. In the end the faults
//! stop, and every evacuation has to end.
//!
//! The same seed and number of steps always give the same story.
//! `docs/development/evacuation-protocol.md` says what is modelled and what is not.

mod agent;
mod broker;
pub mod cheapest;
mod event_log;
mod fault;
mod hypervisor;
mod mutation;
mod nova;
mod random;
mod region;
mod regressions;
mod run;
mod script;
mod shared_storage;
mod shrink;
mod violation;
mod world_base;

pub use fault::{FaultCounts, FaultKind};
pub use mutation::Mutation;
pub use region::{LIFETIMES_FROM, MARKETS_FROM};
pub use regressions::{Regression, parse_regressions};
pub use run::{EvacuationCounts, SeedResult, Simulator, WorldKind};
pub use script::{Op, ScriptStep, StepPositions, script};
pub use shrink::ShrunkWorld;
pub use violation::{Invariant, Violation};

/// Maximum number of steps of a script. Such a script takes one core about a day. The text form of
/// places in a script has the same limit.
pub const MAX_STEPS: usize = 1_000_000;
/// Default number of steps of a script.
pub const DEFAULT_STEPS: usize = 400;
