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

use crate::cloud::Guest;
use crate::cloud::{Builder, host_name};
use ebbtide_engine::{Budgets, Engine, EngineError, HostTable};
use ebbtide_model::{Decision, DecisionId, Outcome, PlacementRequest, ServerId, Timestamp};
use serde::Serialize;
use uuid::Uuid;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Without preemption.
    Plain,
    /// Ebbtide.
    PreemptibleAware,
    /// Two cycles.
    Retry,
}

impl Kind {
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
pub struct Asked {
    /// For a normal instance: decided on h_n.
    pub normal: PlacementRequest,
    /// For a preemptible one: decided on h_f, never with victims.
    pub preemptible: PlacementRequest,
    /// Which of them the tenant wants.
    pub wants_preemptible: bool,
}

impl Asked {
    /// What a scheduler that knows both kinds is asked.
    fn wanted(&self) -> &PlacementRequest {
        if self.wants_preemptible {
            &self.preemptible
        } else {
            &self.normal
        }
    }
}

/// A scheduler and its picture of the cloud.
#[derive(Debug)]
pub struct Scheduler<'a> {
    kind: Kind,
    engine: &'a Engine,
    table: HostTable,
}

impl<'a> Scheduler<'a> {
    /// With a table of its own. `plain` needs the one in which everybody is normal.
    #[must_use]
    pub fn new(kind: Kind, engine: &'a Engine, table: HostTable) -> Self {
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
        asked: &Asked,
        now: Timestamp,
        id: DecisionId,
    ) -> Result<Decision, EngineError> {
        let budgets = Budgets::unlimited();
        let cycle = |request| {
            self.engine
                .decide(&self.table, &budgets, request, now, 0, id)
        };
        match self.kind {
            Kind::Plain => cycle(&asked.normal),
            Kind::PreemptibleAware => cycle(asked.wanted()),
            Kind::Retry => {
                let first = cycle(&asked.preemptible)?;
                match first.outcome {
                    Outcome::NoValidHost(_) if !asked.wants_preemptible => cycle(&asked.normal),
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
        answer: &Answer,
        guest: &Guest,
    ) -> Result<(), EngineError> {
        let Some((host, victims)) = answer else {
            return Ok(());
        };
        for victim in victims {
            self.table
                .remove_instance(ServerId(Uuid::from_u128(*victim)));
        }
        let everybody_is_normal = self.kind == Kind::Plain;
        let guest = Guest {
            preemptible: guest.preemptible && !everybody_is_normal,
            ..*guest
        };
        self.table
            .put_instance(&builder.instance(&guest, &host_name(*host)))
    }
}

/// The number of the host and the victims' identifiers; `None` for no valid host.
pub type Answer = Option<(u32, Vec<u128>)>;

/// What a decision says.
pub(super) fn answer(decision: &Decision) -> Answer {
    let Outcome::Placed(placements) = &decision.outcome else {
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
