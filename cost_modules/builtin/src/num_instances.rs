//! Every victim costs the same: as few instances as possible have to leave.
//!
//! - Cost: 1 each.
//! - Chooses: few large instances rather than many small ones. Among sets of the same number the
//!   engine's rule for ties decides.
//!
//! Source: the obvious count; also what the engine falls back to when another module fails.

use crate::columns::map;
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumInstances;

impl CostModule for NumInstances {
    fn name(&self) -> &str {
        "num_instances"
    }

    fn unit(&self) -> &str {
        "instances"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        map(victims, "age_seconds", victims.age_seconds, out, |_| 1.0)
    }
}
