//! The compute agent: notices in, guests warned, instances evacuated, reports out. One agent runs
//! for each host.
//!
//! ```text
//!  scheduler ── commands ──▶ agent (shell) ──▶ protocol (pure) ──▶ agent (shell) ──▶ driver ──▶
//! hypervisor
//!            ◀── reports ───                                                    ──▶ journal
//! ```
//!
//! - [`protocol`] decides, without clock, I/O or async. What may never happen is proven there.
//! - [`agent`] does what it decided: bus, journal, driver, time.
//! - [`driver`] is the contract with hypervisors, its conformance suite, and the drivers.
//! - [`journal`] is what survives a crash of the agent.
//! - [`health`] is what systemd, Prometheus and load balancers see of it.
//!
//! The program `ebbtide-agent` is a thin edge around [`Agent::run`]; the scheduler's embedded mode
//! calls it in its own process.

pub mod agent;
pub mod cli;
pub mod clock;
pub mod config;
pub mod driver;
pub mod error;
pub mod fence;
pub mod fleet;
pub mod health;
pub mod journal;
pub mod logging;
pub mod logins;
pub mod metadata;
#[cfg(test)]
mod testing;

pub use agent::{Agent, AgentConfig};
pub use config::Config;
/// What the agent decides: a crate of its own, so that the region's tests and the simulator run the
/// real thing.
pub use ebbtide_agent_protocol as protocol;
pub use error::AgentError;
pub use health::Health;
