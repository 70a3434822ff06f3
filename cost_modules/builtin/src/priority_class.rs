//! Prefers victims of lower priority classes: up to 999 victims of a lower class rather than one of
//! a higher.
//!
//! - Cost: 1000^class: 1, 1,000, 1,000,000 or 1,000,000,000 for the classes 0 to 3 (extra spec
//!   `ebbtide:priority`).
//! - Chooses: the set whose highest class is lowest, then the one with fewest victims of it, and so
//!   on down, as long as no class gives 1,000 victims or more: 1,000 of one class cost exactly one
//!   of the next. No host runs that many.
//! - Within a class all are alike; the engine's rule for ties decides (fewer victims, then younger
//!   ones).
//! - A class above 3, which no flavor can have, counts as 3.
//!
//! Source: our own. Class 3 costs exactly the largest cost that the engine accepts.

use crate::columns::map;
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};
use ebbtide_model::flavor::MAX_PRIORITY;

/// How many victims of one class are as dear as one of the next: more than a host runs, and the
/// largest with which class 3 is still a cost.
const STEP: f64 = 1000.0;

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct PriorityClass;

impl CostModule for PriorityClass {
    fn name(&self) -> &str {
        "priority_class"
    }

    fn unit(&self) -> &str {
        "victims of class 0"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        map(victims, "priority", victims.priority, out, |class| {
            STEP.powi(i32::from(class.min(MAX_PRIORITY)))
        })
    }
}
