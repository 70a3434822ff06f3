//! What an input brings about: changes to write, events for watchers.

use ebbtide_model::record::Change;
use ebbtide_model::{CloudEvent, DecisionComparison};

/// What the caller has to do after an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// Changes to make durable in one transaction, in this order.
    pub changes: Vec<Change>,
    /// Events to publish once the changes are durable.
    pub events: Vec<CloudEvent>,
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
