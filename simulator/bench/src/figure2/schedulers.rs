//! The three schedulers of the paper's figure 2, on the same engine: same table, filters, weighers
//! and explanation.
//!
//! They differ only in what the paper says that they differ in:
//!
//! - *plain* knows one state. Its table holds every instance as a normal one, so it never selects a
//!   victim.
//! - *preemptible-aware* is Ebbtide itself: one pass, normal requests on h_n, preemptible ones on
//!   h_f.
//! - *retry* first schedules as plain does, on the full state h_f. If it finds no valid host, it
//!   runs a second, whole cycle on the normal state h_n and chooses victims.

use crate::cloud::BenchInstance;
use crate::cloud::{Builder, host_name};
use ebbtide_engine::{Budgets, Engine, EngineError, HostTable};
use ebbtide_model::{Decision, DecisionId, DecisionOutcome, PlacementRequest, ServerId, Timestamp};
use serde::Serialize;
use uuid::Uuid;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    /// Without preemption.
    Plain,
    /// Ebbtide.
    PreemptibleAware,
    /// Two cycles.
    Retry,
}

impl SchedulerKind {
    /// All, in the order of the figure.
    pub const ALL: [Self; 3] = [Self::Plain, Self::PreemptibleAware, Self::Retry];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::PreemptibleAware => "preemptible-aware",
            Self::Retry => "retry",
        }
    }
}

/// A request, as each of the three asks it. Both forms are made before anything is timed.
#[derive(Debug, Clone)]
pub struct BenchRequest {
    /// For a normal instance: decided on h_n.
    pub normal: PlacementRequest,
    /// For a preemptible one: decided on h_f, never with victims.
    pub preemptible: PlacementRequest,
    /// Which of them the tenant wants.
    pub wants_preemptible: bool,
}

impl BenchRequest {
    /// What a scheduler that knows both kinds is asked.
    fn placement_request(&self) -> &PlacementRequest {
        if self.wants_preemptible {
            &self.preemptible
        } else {
            &self.normal
        }
    }
}

/// A scheduler and its picture of the cloud.
#[derive(Debug)]
pub struct BenchScheduler<'a> {
    kind: SchedulerKind,
    engine: &'a Engine,
    table: HostTable,
}

impl<'a> BenchScheduler<'a> {
    /// With a table of its own. `plain` needs the one in which everybody is normal.
    #[must_use]
    pub fn new(kind: SchedulerKind, engine: &'a Engine, table: HostTable) -> Self {
        Self {
            kind,
            engine,
            table,
        }
    }

    /// Decides: what is timed.
    ///
    /// # Errors
    /// The engine's.
    pub fn decide(
        &self,
        asked: &BenchRequest,
        now: Timestamp,
        id: DecisionId,
    ) -> Result<Decision, EngineError> {
        let budgets = Budgets::unlimited();
        let cycle = |request| {
            self.engine
                .decide(&self.table, &budgets, request, now, 0, id)
        };
        match self.kind {
            SchedulerKind::Plain => cycle(&asked.normal),
            SchedulerKind::PreemptibleAware => cycle(asked.placement_request()),
            SchedulerKind::Retry => {
                let first = cycle(&asked.preemptible)?;
                match first.outcome {
                    DecisionOutcome::NoValidHost(_) if !asked.wants_preemptible => {
                        cycle(&asked.normal)
                    }
                    _ => Ok(first),
                }
            }
        }
    }

    /// Does what was decided: victims leave, the new instance runs. Not timed.
    ///
    /// # Errors
    /// Never: the host is there.
    pub fn apply(
        &mut self,
        builder: &Builder,
        answer: &SchedulerAnswer,
        guest: &BenchInstance,
    ) -> Result<(), EngineError> {
        let Some((host, victims)) = answer else {
            return Ok(());
        };
        for victim in victims {
            self.table
                .remove_instance(ServerId(Uuid::from_u128(*victim)));
        }
        let everybody_is_normal = self.kind == SchedulerKind::Plain;
        let guest = BenchInstance {
            preemptible: guest.preemptible && !everybody_is_normal,
            ..*guest
        };
        self.table
            .put_instance(&builder.instance(&guest, &host_name(*host)))
    }
}

/// The number of the host and the victims' identifiers; `None` for no valid host.
pub type SchedulerAnswer = Option<(u32, Vec<u128>)>;

pub(super) fn answer(decision: &Decision) -> SchedulerAnswer {
    let DecisionOutcome::Placed(placements) = &decision.outcome else {
        return None;
    };
    let placement = placements.first()?;
    let host = placement.host.strip_prefix("host-")?.parse().ok()?;
    let mut victims: Vec<u128> = placement
        .victims
        .iter()
        .map(|v| v.server_id.0.as_u128())
        .collect();
    victims.sort_unstable();
    Some((host, victims))
}
