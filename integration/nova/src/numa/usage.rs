//! What a host's cells look like with a guest on them (`numa_usage_from_instance_numa`).

use crate::fault::NovaException;
use crate::model::{InstanceNumaCell, InstanceNumaTopology, NumaCell, NumaTopology};
use std::collections::BTreeSet;

/// The host's topology with a fitted guest on it. Usage never goes below zero.
///
/// # Errors
/// `IndexError` if neither host nor guest names a page size, `CPUPinningUnknown` and
/// `CPUPinningInvalid` if a CPU to pin is not a dedicated one or is pinned. Nova only logs these,
/// see [`super::consume`].
pub fn usage_with(
    host: &NumaTopology,
    guest: &InstanceNumaTopology,
) -> Result<NumaTopology, NovaException> {
    let cells = host.cells.iter().map(|cell| cell_with(cell, guest));
    Ok(NumaTopology {
        cells: cells.collect::<Result<_, _>>()?,
    })
}

fn cell_with(host: &NumaCell, guest: &InstanceNumaTopology) -> Result<NumaCell, NovaException> {
    let mut cell = host.clone();
    // Nova builds a new object, and building one walks the sets once more.
    cell.pcpuset = host.pcpuset.assigned();
    cell.siblings = host.siblings.iter().map(|core| core.assigned()).collect();
    for part in guest.cells.iter().filter(|part| part.id == host.id) {
        cell.mempages = cell.pages_with(part)?;
        cell.memory_usage = cell.memory_usage.saturating_add(part.memory);
        cell.cpu_usage = cell.cpu_usage.saturating_add(part.cpuset.len() as i64);
        if matches!(part.cpu_policy.as_deref(), None | Some("shared")) {
            continue;
        }
        let mut cpus = pinned_by(part);
        if part.cpu_thread_policy.as_deref() == Some("isolate") {
            let whole = cell.siblings.iter();
            let touched = whole.filter(|core| core.iter().any(|cpu| cpus.contains(&cpu)));
            cpus = touched.flat_map(|core| core.iter()).collect();
        }
        cell.pin(&cpus)?;
    }
    cell.memory_usage = cell.memory_usage.max(0);
    cell.cpu_usage = cell.cpu_usage.max(0);
    Ok(cell)
}

fn pinned_by(part: &InstanceNumaCell) -> BTreeSet<i64> {
    let pinned = part.cpu_pinning.iter().flatten().map(|(_, pcpu)| *pcpu);
    let reserved = part.cpuset_reserved.iter().flatten().copied();
    pinned.chain(reserved).collect()
}

impl NumaCell {
    fn pin(&mut self, cpus: &BTreeSet<i64>) -> Result<(), NovaException> {
        if let Some(cpu) = cpus.iter().find(|cpu| !self.pcpuset.contains(**cpu)) {
            let text = format!("CPU {cpu} of cell {} is no dedicated one", self.id);
            return Err(NovaException::new("CPUPinningUnknown", text));
        }
        if let Some(cpu) = cpus.intersection(&self.pinned_cpus).next() {
            let text = format!("CPU {cpu} of cell {} is pinned", self.id);
            return Err(NovaException::new("CPUPinningInvalid", text));
        }
        self.pinned_cpus.extend(cpus);
        Ok(())
    }
}
