//! The cost of given victims, regardless of which engine chose them.

use crate::set_cost::BatchColumns;
use crate::table::{InstanceRow, Slot};
use crate::{Engine, HostTable};
use ebbtide_cost_api::{CostError, MAX_COST, SetCost};
use ebbtide_model::{ServerId, Timestamp};
use std::collections::BTreeMap;

impl Engine {
    /// The cost of losing all these victims together, by this engine's cost module, surcharge
    /// included, in the module's unit. A victim that is not in the table costs nothing. The victims
    /// may be the choice of another engine, so that one measure compares the choices of both.
    ///
    /// # Errors
    /// What the cost module fails with.
    pub fn price(
        &self,
        table: &HostTable,
        victims: &[ServerId],
        now: Timestamp,
    ) -> Result<f64, CostError> {
        let slots: Vec<Slot> = victims.iter().filter_map(|id| table.slot_of(*id)).collect();
        if slots.is_empty() {
            return Ok(0.0);
        }
        let module = self.cost_module.as_ref();
        let size = |row: &InstanceRow| {
            let takes = table.shape(row.shape).takes();
            let vcpus = takes.amount("VCPU") + takes.amount("PCPU");
            (vcpus as f64, takes.amount("MEMORY_MB") as f64)
        };
        let columns = BatchColumns::new(table, now, module, slots.iter().copied(), size);
        let batch = columns.batch();
        let mut costs = vec![0.0; slots.len()];
        module.cost(&batch, &mut costs)?;
        let wrong = costs
            .iter()
            .position(|cost| !(0.0..=MAX_COST).contains(cost));
        if let Some(index) = wrong {
            let value = costs[index];
            return Err(CostError::NotACost { index, value });
        }
        let surcharge = match module.set_cost() {
            SetCost::Sum => 0.0,
            SetCost::Monotone => {
                let all: Vec<usize> = (0..slots.len()).collect();
                module.surcharge(&batch, &all)?
            }
            SetCost::PerProject => {
                let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
                let steps = batch.project.iter().map(|project| {
                    let count = counts.entry(*project).or_default();
                    *count += 1;
                    module.nth_of_a_project(*count)
                });
                steps.sum()
            }
        };
        Ok(costs.iter().sum::<f64>() + surcharge)
    }
}
