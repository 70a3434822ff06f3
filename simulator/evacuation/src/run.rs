//! One seed from its birth to its end.

use crate::Mutation;
use crate::event_log::EventLog;
use crate::fault::FaultCounts;
use crate::nova::NovaWorld;
use crate::region::RegionWorld;
use crate::script::{ScriptStep, StepPositions, script};
use crate::violation::{Invariant, Violation};
use crate::world_base::WorldBase;
use ebbtide_engine::Engine;
use std::sync::Arc;

/// Which world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorldKind {
    /// The standalone region: a database, schedulers of which one leads.
    Region,
    /// OpenStack mode: Placement, a ledger, schedulers that are all active.
    Nova,
}

impl WorldKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Region, Self::Nova];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nova => "nova",
        }
    }
}

impl std::str::FromStr for WorldKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| format!("there is no world {word:?}; there are region and nova"))
    }
}

/// What came of evacuations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvacuationCounts {
    /// The victim is gone.
    pub evacuated: u64,
    /// It lives on.
    pub spared: u64,
    /// It could not be done.
    pub failed: u64,
    /// Under way when the run was broken off by a violation.
    pub open: u64,
    /// How often a victim that had been kept was told to go on.
    pub resumed: u64,
    /// How often on another host than the one that had kept it.
    pub moved: u64,
    /// How many of the evacuated had lived as long as they might.
    pub expired: u64,
    /// How many of them did not pay the price any more.
    pub outbid: u64,
    /// How many of them left for the owner of their host.
    pub reclaimed: u64,
}

impl EvacuationCounts {
    /// How many in all.
    #[must_use]
    pub fn total(self) -> u64 {
        self.evacuated + self.spared + self.failed + self.open
    }

    /// Adds those of another world.
    pub fn merge(&mut self, other: Self) {
        self.evacuated += other.evacuated;
        self.spared += other.spared;
        self.failed += other.failed;
        self.open += other.open;
        self.resumed += other.resumed;
        self.moved += other.moved;
        self.expired += other.expired;
        self.outbid += other.outbid;
        self.reclaimed += other.reclaimed;
    }
}

/// What came of one seed.
#[derive(Debug, Clone)]
pub struct SeedResult {
    /// Steps that were done.
    pub steps: usize,
    /// Evacuations.
    pub ends: EvacuationCounts,
    /// Faults injected.
    pub faults: FaultCounts,
    /// Folds everything that happened: two runs of one seed have the same.
    pub digest: u64,
    /// The first broken promise.
    pub violation: Option<Violation>,
    /// What happened, in words, if it was asked for.
    pub event_log: Vec<String>,
}

/// Runs worlds. Cheap to clone, and can be used by several threads at the same time.
#[derive(Debug, Clone)]
pub struct Simulator {
    engine: Arc<Engine>,
    /// A rule that is broken on purpose.
    pub mutation: Option<Mutation>,
}

impl Simulator {
    /// A simulator. `None` only if the engine's own defaults were wrong.
    #[must_use]
    pub fn new() -> Option<Self> {
        let engine = crate::region::engine()?;
        Some(Self {
            engine,
            mutation: None,
        })
    }

    /// With a rule that is broken on purpose.
    #[must_use]
    pub fn breaking(mut self, mutation: Mutation) -> Self {
        if let Some(engine) = crate::region::broken_engine(mutation) {
            self.engine = engine;
        }
        self.mutation = Some(mutation);
        self
    }

    /// One seed with all its steps.
    #[must_use]
    pub fn run(&self, kind: WorldKind, seed: u64, steps: usize) -> SeedResult {
        self.run_steps(kind, seed, &script(seed, steps), false)
    }

    /// One seed with some of its steps, and its story.
    #[must_use]
    pub fn replay(
        &self,
        kind: WorldKind,
        seed: u64,
        steps: usize,
        places: &StepPositions,
    ) -> SeedResult {
        let all = script(seed, steps);
        let some: Vec<ScriptStep> = places
            .0
            .iter()
            .filter_map(|n| all.get(*n).copied())
            .collect();
        self.run_steps(kind, seed, &some, true)
    }

    /// One seed twice: the same must have happened.
    #[must_use]
    pub fn run_twice(&self, kind: WorldKind, seed: u64, steps: usize) -> SeedResult {
        let mut first = self.run(kind, seed, steps);
        let second = self.run(kind, seed, steps);
        if first.digest != second.digest && first.violation.is_none() {
            first.violation = Some(Violation {
                promise: Invariant::Deterministic,
                what: "the same seed gave another story the second time".to_owned(),
                at_millis: 0,
                step: steps,
            });
        }
        first
    }

    pub(crate) fn run_steps(
        &self,
        kind: WorldKind,
        seed: u64,
        steps: &[ScriptStep],
        told: bool,
    ) -> SeedResult {
        match kind {
            WorldKind::Region => {
                let engine = Arc::clone(&self.engine);
                let world = RegionWorld::new(seed, engine, self.mutation, EventLog::new(told));
                live(world, steps)
            }
            WorldKind::Nova => {
                let engine = Arc::clone(&self.engine);
                let world = NovaWorld::new(seed, engine, self.mutation, EventLog::new(told));
                live(world, steps)
            }
        }
    }
}

/// What every world can do.
trait SimulatedWorld: std::ops::DerefMut<Target = WorldBase> {
    fn step(&mut self, step: ScriptStep);
    fn finish(&mut self);
    fn ends(&self) -> EvacuationCounts;
}

macro_rules! world {
    ($name:ident) => {
        impl SimulatedWorld for $name {
            fn step(&mut self, step: ScriptStep) {
                self.step(step);
            }

            fn finish(&mut self) {
                self.finish();
            }

            fn ends(&self) -> EvacuationCounts {
                self.ends()
            }
        }
    };
}

world!(RegionWorld);
world!(NovaWorld);

/// A world from its birth to its end.
fn live(mut world: impl SimulatedWorld, steps: &[ScriptStep]) -> SeedResult {
    let mut done = 0;
    for step in steps {
        if world.broken.is_some() {
            break;
        }
        world.step(*step);
        done += 1;
    }
    let ended = world.broken.is_none();
    if ended {
        world.finish();
    }
    let at_millis = world.millis();
    let violation = world.broken.take().map(|(promise, what)| Violation {
        promise,
        what,
        at_millis,
        step: if ended { steps.len() } else { done },
    });
    SeedResult {
        steps: done,
        ends: world.ends(),
        faults: world.faults.clone(),
        digest: world.event_log.digest(),
        violation,
        event_log: std::mem::take(&mut world.event_log).into_lines(),
    }
}
