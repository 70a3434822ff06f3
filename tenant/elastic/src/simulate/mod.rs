//! A simulated cluster for the controller: Eagle's hybrid scheduler, with a static or an elastic
//! partition for short jobs.
//!
//! A central scheduler places the tasks of long jobs ([`central`]); short jobs send probes to
//! servers ([`short`]) and hand out their tasks when a probe's turn comes, or wait in one queue for
//! all servers ([`shared`]). Events lie in one queue,
//! ordered by time and then by number, so a seed gives one outcome, bit for bit.

mod central;
mod event;
mod long;
mod meter;
mod outcome;
mod pool;
mod queue;
mod server;
mod setup;
mod shared;
mod short;
#[cfg(test)]
mod tests;
mod transient;
mod watch;
mod world;

pub use outcome::{MeasuredTimes, SimulationResult, Transients};
pub use setup::{Cluster, Elastic, Recovery, Setup};
pub use watch::{NoWatch, ServerRole, Watch, WatchEvent};

use crate::error::ElasticError;
use crate::trace::Trace;
use world::ClusterSimulation;

/// Plays a trace to its end.
///
/// # Errors
/// [`ElasticError::Setting`] for a setup that cannot be, [`ElasticError::NoRoom`] for long jobs
/// without servers for them.
pub fn simulate(
    trace: &Trace,
    setup: &Setup,
    watch: &mut dyn Watch,
) -> Result<SimulationResult, ElasticError> {
    let mut world = ClusterSimulation::new(trace, setup, watch)?;
    while world.step()? {}
    Ok(world.outcome())
}
