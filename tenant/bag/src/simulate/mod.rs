//! A world for plans: instances boot, run, hibernate, come back or are interrupted, and are paid.
//!
//! Tasks take exactly as long as planned. A hibernating instance is not paid; what it is used
//! before and after counts together, rounded up to slots once. A preemptible slot costs what the
//! trace says when it begins. An instance that is interrupted pays its last slot, too.

mod instance;
mod prices;
mod world;

pub use prices::{PriceTrace, Prices};
pub use world::simulate;

use crate::executor::{ExecutionPolicy, VmId};
use crate::map::Market;
use crate::plan::Plan;

/// What a preemptible instance suffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The instance of the primary map.
    pub vm: usize,
    /// From when, seconds since the begin.
    pub from: u64,
    pub end: OutageEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageEnd {
    /// The instance goes on then, seconds since the begin.
    Resumes(u64),
    /// It hibernates for ever.
    Never,
    /// It does not hibernate at all: it is gone.
    Interrupted,
}

/// What happens to a plan.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// What instances suffer. Those of on-demand instances, and those that overlap an earlier one,
    /// count for nothing.
    pub outages: Vec<Outage>,
    /// Prices that change; without, those of the types.
    pub prices: Prices,
    /// How the plan is carried out.
    pub policy: ExecutionPolicy,
}

impl Scenario {
    /// All preemptible instances of a type hibernate at the same time.
    #[must_use]
    pub fn of_type(plan: &Plan, ty: usize, from: u64, end: OutageEnd) -> Vec<Outage> {
        let vms =
            plan.vms.iter().enumerate().filter(|(_, planned)| {
                planned.vm.ty == ty && planned.vm.market == Market::Preemptible
            });
        vms.map(|(vm, _)| Outage { vm, from, end }).collect()
    }
}

/// How a run of a task on an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarEnd {
    /// It was done.
    Finished,
    /// It was done elsewhere before.
    Cancelled,
    /// The instance was given up or interrupted.
    Lost,
}

/// A run of a task on a core: a bar of a Gantt chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub task: usize,
    pub core: usize,
    /// Seconds since the begin.
    pub from: u64,
    /// Seconds since the begin.
    pub to: u64,
    /// How it ended.
    pub end: BarEnd,
}

/// What became of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRun {
    pub vm: VmId,
    pub ty: usize,
    /// How it was bought.
    pub market: Market,
    /// Launched, seconds since the begin.
    pub from: u64,
    /// Released or interrupted, seconds since the begin.
    pub to: u64,
    /// When it was frozen: from, to.
    pub frozen: Vec<(u64, u64)>,
    /// Paid slots.
    pub slots: u64,
    /// What it cost, millionths.
    pub price: u64,
    /// What ran on it.
    pub bars: Vec<Bar>,
}

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRun {
    /// When the last task was done, seconds since the begin.
    pub makespan: u64,
    /// Whether that was in time.
    pub met: bool,
    /// What all instances cost, millionths.
    pub price: u64,
    /// Every instance that was launched.
    pub instances: Vec<InstanceRun>,
    /// How many backups were launched.
    pub backups: usize,
    /// How many tasks were done on a backup.
    pub moved: usize,
    /// When each task was done, seconds since the begin.
    pub done: Vec<u64>,
}
