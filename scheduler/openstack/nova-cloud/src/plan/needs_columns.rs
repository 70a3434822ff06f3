//! What every victim set frees that Nova's filters accept: the columns by which the search finds
//! sets before it asks the filters.
//!
//! Each condition here follows from the filters alone, for any set. They are not all conditions:
//! thread siblings, the order in which Nova tries cells, and networks are left to the filters.

use super::needs::FilterNeeds;
use crate::cloud::devices::grouped;
use crate::facts::HeldResources;
use ebbtide_nova::model::{HostState, InstanceNumaCell, NumaCell, NumaTopology, PciRequest};
use ebbtide_nova::pci;
use std::collections::{BTreeMap, BTreeSet};

/// Most arrangements of a guest's cells on those of a host that become alternatives. On a host with
/// more, only the filters say whether the cells fit.
const MOST_ARRANGEMENTS: usize = 64;

const KIB_PER_MIB: i64 = 1024;

/// A free amount of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Amount {
    /// Dedicated CPUs that are not pinned.
    Pinnable,
    /// Floating CPUs, below zero by those in use.
    Floating,
    /// MiB, below zero by those in use.
    Memory,
    /// KiB in free pages of a size.
    Pages(i64),
}

impl Amount {
    fn of(self, cell: &NumaCell) -> i64 {
        match self {
            Self::Pinnable => {
                let free = cell.pcpuset.iter();
                let free = free.filter(|cpu| !cell.pinned_cpus.contains(cpu));
                i64::try_from(free.count()).unwrap_or(i64::MAX)
            }
            Self::Floating => cell.cpu_usage.saturating_neg(),
            Self::Memory => cell.memory_usage.saturating_neg(),
            Self::Pages(size) => {
                let pages = cell.mempages.iter().find(|pages| pages.size_kb == size);
                pages.map_or(0, |pages| {
                    let free = pages.total.saturating_sub(pages.used);
                    free.saturating_sub(pages.reserved).saturating_mul(size)
                })
            }
        }
    }
}

/// What an arrangement of cells wants, by cell and amount.
type Wanted = BTreeMap<(i64, Amount), i64>;

/// The columns of one host.
pub(super) struct Demand {
    /// Groups of requests for devices with the same spec come first, then amounts of cells.
    requests: Vec<PciRequest>,
    amounts: Vec<(i64, Amount)>,
    /// What is missing, for each arrangement of cells.
    pub(super) deficits: Vec<Vec<i64>>,
}

/// What so many instances demand of a host.
pub(super) fn demanded(needs: &FilterNeeds<'_>, host: &HostState, count: u32) -> Demand {
    let requests = if needs.pci {
        grouped(
            needs.spec.pci_requests.as_deref().unwrap_or_default(),
            count,
        )
    } else {
        Vec::new()
    };
    let pools = host.pci_pools.as_deref().unwrap_or_default();
    let devices: Vec<i64> = requests
        .iter()
        .map(|request| request.count.saturating_sub(pci::usable(pools, request)))
        .collect();
    let arrangements = arrangements(needs, host, count);
    let keys = arrangements.iter().flat_map(BTreeMap::keys).copied();
    let keys: BTreeSet<(i64, Amount)> = keys.collect();
    let amounts: Vec<(i64, Amount)> = keys.into_iter().collect();
    let deficits = arrangements.iter().map(|wanted| {
        let cells = amounts.iter().map(|(cell, amount)| {
            let wanted = wanted.get(&(*cell, *amount));
            wanted.map_or(0, |wanted| {
                wanted.saturating_sub(free(host.numa_topology.as_ref(), *cell, *amount))
            })
        });
        devices.iter().copied().chain(cells).collect()
    });
    Demand {
        deficits: deficits.collect(),
        requests,
        amounts,
    }
}

/// What a server on a host frees when it leaves, by column.
pub(super) fn freed_columns(
    needs: &FilterNeeds<'_>,
    demand: &Demand,
    with: &HostState,
    held: Option<&HeldResources>,
) -> Vec<i64> {
    let nothing = || vec![0; demand.requests.len() + demand.amounts.len()];
    let Some(held) = held else {
        return nothing();
    };
    let pools = with.pci_pools.as_deref();
    let devices = demand.requests.iter().map(|request| {
        // Pools of a node that was never updated do not come back.
        pools.map_or(0, |pools| pci::freed(pools, &held.pci_devices, request))
    });
    let cells = with.numa_topology.as_ref().map_or(Ok(None), |topology| {
        let without = needs.cells_without(topology, held.numa_topology.iter());
        without.map(|without| Some((topology, without)))
    });
    let Ok(cells) = cells else {
        return nothing();
    };
    let amounts = demand.amounts.iter().map(|(cell, amount)| {
        let freed = cells.as_ref().map(|(with, without)| {
            free(Some(&**without), *cell, *amount) - free(Some(with), *cell, *amount)
        });
        freed.unwrap_or(0)
    });
    devices.chain(amounts).map(|freed| freed.max(0)).collect()
}

fn free(host: Option<&NumaTopology>, cell: i64, amount: Amount) -> i64 {
    let cells = host.into_iter().flat_map(|host| &host.cells);
    let cell = cells.into_iter().find(|known| known.id == cell);
    cell.map_or(0, |cell| amount.of(cell))
}

/// What each arrangement of the guest's cells on the host's wants of them. One that wants nothing
/// stands for all where they are not worked out.
fn arrangements(needs: &FilterNeeds<'_>, host: &HostState, count: u32) -> Vec<Wanted> {
    let open = vec![BTreeMap::new()];
    let guest = needs
        .spec
        .numa_topology
        .as_ref()
        .filter(|_| needs.numa && count == 1);
    let (Some(guest), Some(topology)) = (guest, &host.numa_topology) else {
        return open;
    };
    // Nova remembers what fits under numbers that change while it tries. With three cells, or if
    // devices or networks refuse cells that fit, it can take a cell for one that fits unseen.
    let alone = !needs.pci && needs.spec.network_metadata.is_none();
    let remembered = match guest.cells.len() {
        1 => false,
        2 => !alone,
        _ => true,
    };
    if remembered {
        return open;
    }
    let limits = host.cpu_allocation_ratio.zip(host.ram_allocation_ratio);
    let isolates = guest.emulator_threads_policy.as_deref() == Some("isolate");
    let mut all: Vec<(Vec<i64>, Wanted)> = vec![Default::default()];
    for (place, part) in guest.cells.iter().enumerate() {
        let reserved = i64::from(isolates && place == 0);
        let mut longer = Vec::new();
        for (used, wanted) in &all {
            for cell in topology
                .cells
                .iter()
                .filter(|cell| !used.contains(&cell.id))
            {
                let mut wanted = wanted.clone();
                for (amount, least) in wants(cell, part, reserved, limits) {
                    wanted.insert((cell.id, amount), least);
                }
                longer.push(([used.as_slice(), &[cell.id]].concat(), wanted));
            }
        }
        if longer.is_empty() || longer.len() > MOST_ARRANGEMENTS {
            return open;
        }
        all = longer;
    }
    all.into_iter().map(|(_, wanted)| wanted).collect()
}

/// The least of each amount that a cell has to have free for a guest's cell (`fit_cell`).
fn wants(
    cell: &NumaCell,
    part: &InstanceNumaCell,
    reserved: i64,
    limits: Option<(f64, f64)>,
) -> Vec<(Amount, i64)> {
    let policy = part.cpu_policy.as_deref();
    let pins = matches!(policy, Some("dedicated" | "mixed"));
    let floats = matches!(policy, None | Some("shared" | "mixed"));
    let count = |cpus: usize| i64::try_from(cpus).unwrap_or(i64::MAX);
    let mut wants = Vec::new();
    if pins {
        let pinned = count(part.pcpuset.len()).saturating_add(reserved);
        wants.push((Amount::Pinnable, pinned));
    }
    let smallest = cell.mempages.iter().map(|pages| pages.size_kb).min();
    let size = match part.pagesize.filter(|size| *size != 0) {
        // A symbolic size may become any.
        Some(size) => Some(size).filter(|size| *size > 0),
        None => smallest.filter(|_| pins),
    };
    if let Some(size) = size {
        wants.push((Amount::Pages(size), part.memory.saturating_mul(KIB_PER_MIB)));
    } else if part.pagesize.is_none_or(|size| size == 0) && smallest.is_none() && pins {
        wants.push((Amount::Memory, part.memory.saturating_sub(cell.memory)));
    }
    if let Some((cpu, ram)) = limits.filter(|_| floats) {
        // The most that may be in use beside it.
        let cpus = (cell.cpuset.len() as f64 * cpu).floor() as i64;
        wants.push((
            Amount::Floating,
            count(part.cpuset.len()).saturating_sub(cpus),
        ));
        let memory = (cell.memory as f64 * ram).floor() as i64;
        let least = part.memory.saturating_sub(memory);
        let known = wants
            .iter_mut()
            .find(|(amount, _)| *amount == Amount::Memory);
        match known {
            Some((_, known)) => *known = (*known).max(least),
            None => wants.push((Amount::Memory, least)),
        }
    }
    wants
}
