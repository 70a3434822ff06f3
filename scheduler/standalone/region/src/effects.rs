//! What an input brings about: changes to write, events for watchers.

use ebbtide_model::DecisionComparison;
use ebbtide_model::record::Change;
use ebbtide_model::{Decision, Evacuation, Host, HostHealth, Server};

/// An event for watchers.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionEvent {
    /// A decision was made (what-if excluded).
    Decision(Box<Decision>),
    /// A server has a new state.
    Server(Box<Server>),
    /// An evacuation has a new state.
    Evacuation(Box<Evacuation>),
    /// A host appeared, went down, was enabled or was disabled.
    Host(Box<Host>, HostHealth),
    /// The region ignored a report, for this reason: for the log and the metrics.
    Ignored(String),
    /// A problem that an operator must look at, for the log.
    Alarm {
        /// Its code in `docs/reference/errors.md`.
        code: &'static str,
        /// What was observed, and what to do.
        words: String,
    },
}

/// What the caller has to do after an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// Changes to make durable in one transaction, in this order.
    pub changes: Vec<Change>,
    /// Events to publish once the changes are durable.
    pub events: Vec<RegionEvent>,
    /// Decisions, each with the one that the shadow engine would have made.
    pub compared: Vec<DecisionComparison>,
}

impl Effects {
    /// True if the changes contain a message for the outbox.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        self.changes
            .iter()
            .any(|change| matches!(change, Change::Enqueue(_)))
    }
}
