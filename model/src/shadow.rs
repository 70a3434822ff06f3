//! Shadow decisions: what other plugins would have decided with the same data.

use crate::DecisionId;

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecisionSide {
    /// The hosts, in the order of the request's instances; empty if there was no valid host.
    pub hosts: Vec<String>,
    /// Number of victims.
    pub victims: u32,
    /// Cost of the victims by the deciding engine's cost module, in its unit; `None` if it could
    /// not price them.
    pub cost: Option<f64>,
    /// Cost of the victims by the shadow engine's cost module.
    pub shadow_cost: Option<f64>,
}

/// A decision with the shadow decision for the same request.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionComparison {
    /// The decision that was made.
    pub decision_id: DecisionId,
    /// The request's flavor.
    pub flavor: String,
    pub decided: DecisionSide,
    /// The shadow decision, or why there is none.
    pub shadow: Result<DecisionSide, String>,
    /// Rule violations of plugins in the shadow engine.
    pub warnings: Vec<String>,
}

impl DecisionComparison {
    /// True if the shadow engine selected other hosts or another number of victims.
    #[must_use]
    pub fn differs(&self) -> bool {
        match &self.shadow {
            Ok(shadow) => {
                shadow.hosts != self.decided.hosts || shadow.victims != self.decided.victims
            }
            Err(_) => false,
        }
    }
}
