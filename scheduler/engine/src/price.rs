//! What given victims cost, whoever chose them.

use crate::ranking::facts;
use crate::table::{HostIndex, Slot};
use crate::{Engine, HostTable};
use ebbtide_cost_api::{CostError, MAX_COST, SetCost, VictimBatch};
use ebbtide_model::{ServerId, Timestamp};
use std::collections::BTreeMap;

/// The columns of a batch.
#[derive(Default)]
struct Columns {
    ages: Vec<f64>,
    vcpus: Vec<f64>,
    memory: Vec<f64>,
    prices: Vec<f64>,
    priorities: Vec<u8>,
    projects: Vec<u32>,
}

impl Engine {
    /// What the loss of all these together costs by this engine's cost module, surcharge included, in its unit. Who is not in the table costs
    /// nothing. Another engine may have chosen them: so two choices are measured by one measure.
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
        let mut columns = Columns::default();
        for slot in &slots {
            let row = table.row(*slot);
            let resources = table.shape(row.shape).takes();
            let age_ms = u64::try_from(row.age_millis(now)).unwrap_or(0);
            columns.ages.push(age_ms as f64 / 1000.0);
            let vcpus = resources.amount("VCPU") + resources.amount("PCPU");
            columns.vcpus.push(vcpus as f64);
            columns.memory.push(resources.amount("MEMORY_MB") as f64);
            columns
                .prices
                .push(row.price_per_hour.micros() as f64 / 1e6);
            columns.priorities.push(row.priority);
            columns.projects.push(row.project);
        }
        let module = &self.cost_module;
        let hosts: Vec<HostIndex> = slots.iter().map(|slot| table.row(*slot).host).collect();
        let known: Vec<_> = module
            .facts()
            .iter()
            .map(|fact| (fact.clone(), facts::column(table, &hosts, fact)))
            .collect();
        let batch = VictimBatch {
            len: slots.len(),
            age_seconds: &columns.ages,
            vcpus: &columns.vcpus,
            memory_mb: &columns.memory,
            price_per_hour: &columns.prices,
            priority: &columns.priorities,
            project: &columns.projects,
            facts: &known,
        };
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
                let steps = columns.projects.iter().map(|project| {
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
