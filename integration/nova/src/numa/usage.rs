//! What a host's cells look like with a guest on them, and without it
//! (`numa_usage_from_instance_numa`).

use crate::fault::NovaException;
use crate::model::{InstanceNumaCell, InstanceNumaTopology, NumaCell, NumaTopology};
use std::collections::BTreeSet;

/// Whether a guest comes or leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Comes,
    Leaves,
}

impl Change {
    fn sign(self) -> i64 {
        match self {
            Self::Comes => 1,
            Self::Leaves => -1,
        }
    }
}

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
    changed(host, guest, Change::Comes)
}

/// The host's topology once a guest that is on it has left (`free=True`). Usage never goes below
/// zero; a cell that the host does not have frees nothing.
///
/// # Errors
/// `IndexError` as [`usage_with`], `CPUUnpinningUnknown` and `CPUUnpinningInvalid` if a CPU of the
/// guest is not a dedicated one or is not pinned.
pub fn usage_without(
    host: &NumaTopology,
    guest: &InstanceNumaTopology,
) -> Result<NumaTopology, NovaException> {
    changed(host, guest, Change::Leaves)
}

fn changed(
    host: &NumaTopology,
    guest: &InstanceNumaTopology,
    change: Change,
) -> Result<NumaTopology, NovaException> {
    let cells = host.cells.iter();
    let cells = cells.map(|cell| changed_cell(cell, guest, change));
    Ok(NumaTopology {
        cells: cells.collect::<Result<_, _>>()?,
    })
}

fn changed_cell(
    host: &NumaCell,
    guest: &InstanceNumaTopology,
    change: Change,
) -> Result<NumaCell, NovaException> {
    let mut cell = host.clone();
    // Nova builds a new object, and building one walks the sets once more.
    cell.pcpuset = host.pcpuset.assigned();
    cell.siblings = host.siblings.iter().map(|core| core.assigned()).collect();
    for part in guest.cells.iter().filter(|part| part.id == host.id) {
        let sign = change.sign();
        cell.mempages = cell.pages_with(part, sign)?;
        cell.memory_usage = cell
            .memory_usage
            .saturating_add(part.memory.saturating_mul(sign));
        cell.cpu_usage = cell
            .cpu_usage
            .saturating_add(part.cpuset.len() as i64 * sign);
        if matches!(part.cpu_policy.as_deref(), None | Some("shared")) {
            continue;
        }
        let mut cpus = pinned_by(part);
        if part.cpu_thread_policy.as_deref() == Some("isolate") {
            let whole = cell.siblings.iter();
            let touched = whole.filter(|core| core.iter().any(|cpu| cpus.contains(&cpu)));
            cpus = touched.flat_map(|core| core.iter()).collect();
        }
        match change {
            Change::Comes => cell.pin(&cpus)?,
            Change::Leaves => cell.unpin(&cpus)?,
        }
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

    fn unpin(&mut self, cpus: &BTreeSet<i64>) -> Result<(), NovaException> {
        if let Some(cpu) = cpus.iter().find(|cpu| !self.pcpuset.contains(**cpu)) {
            let text = format!("CPU {cpu} of cell {} is no dedicated one", self.id);
            return Err(NovaException::new("CPUUnpinningUnknown", text));
        }
        if let Some(cpu) = cpus.difference(&self.pinned_cpus).next() {
            let text = format!("CPU {cpu} of cell {} is not pinned", self.id);
            return Err(NovaException::new("CPUUnpinningInvalid", text));
        }
        self.pinned_cpus.retain(|cpu| !cpus.contains(cpu));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PagesTopology;

    fn host() -> NumaTopology {
        let cell = |id: i64, first: i64| NumaCell {
            id,
            cpuset: BTreeSet::from([first, first + 1]),
            pcpuset: [first + 2, first + 3, first + 4, first + 5]
                .into_iter()
                .collect(),
            memory: 4096,
            cpu_usage: 1,
            memory_usage: 1024,
            pinned_cpus: BTreeSet::new(),
            siblings: vec![
                [first + 2, first + 3].into_iter().collect(),
                [first + 4, first + 5].into_iter().collect(),
            ],
            mempages: vec![
                PagesTopology {
                    size_kb: 4,
                    total: 786_432,
                    used: 0,
                    reserved: 0,
                },
                PagesTopology {
                    size_kb: 2048,
                    total: 512,
                    used: 7,
                    reserved: 2,
                },
            ],
            socket: Some(0),
            network_metadata: None,
        };
        NumaTopology {
            cells: vec![cell(0, 0), cell(1, 8)],
        }
    }

    fn guest(id: i64, pins: &[i64], threads: Option<&str>) -> InstanceNumaTopology {
        let cell = InstanceNumaCell {
            id,
            cpuset: BTreeSet::from([0]),
            pcpuset: (1..).zip(pins).map(|(cpu, _)| cpu).collect(),
            memory: 512,
            pagesize: Some(2048),
            cpu_policy: Some("mixed".to_owned()),
            cpu_thread_policy: threads.map(str::to_owned),
            cpuset_reserved: None,
            cpu_pinning: Some((1..).zip(pins.iter().copied()).collect()),
        };
        InstanceNumaTopology {
            cells: vec![cell],
            emulator_threads_policy: None,
        }
    }

    #[test]
    fn a_guest_that_came_and_left_leaves_the_host_as_it_was() {
        for threads in [None, Some("isolate")] {
            let guest = guest(1, &[10, 12], threads);
            let with = usage_with(&host(), &guest).unwrap();
            assert_ne!(with, host());
            assert_eq!(usage_without(&with, &guest), Ok(host()));
        }
    }

    #[test]
    fn a_guest_that_does_not_fit_its_host_is_an_error_as_in_nova() {
        let class = |guest| usage_without(&host(), &guest).map_err(|fault| fault.class);
        assert_eq!(class(guest(0, &[2], None)), Err("CPUUnpinningInvalid"));
        assert_eq!(class(guest(0, &[99], None)), Err("CPUUnpinningUnknown"));
        assert_eq!(
            class(guest(7, &[2], None)),
            Ok(host()),
            "a cell that is not there frees nothing"
        );
    }

    #[test]
    fn usage_never_falls_below_nothing() {
        let mut large = guest(0, &[], None);
        large.cells[0].memory = 8192;
        large.cells[0].cpuset = (0..8).collect();
        let left = usage_without(&host(), &large).unwrap();
        let cell = &left.cells[0];
        assert_eq!(
            (cell.memory_usage, cell.cpu_usage, cell.mempages[1].used),
            (0, 0, 0)
        );
    }
}
