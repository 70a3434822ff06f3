//! Whether one guest cell fits on one host cell (`_numa_fit_instance_cell`).

use super::fit::NumaFitLimits;
use super::pack::pack;
use crate::fault::NovaException;
use crate::model::{InstanceNumaCell, NumaCell};

const KIB_PER_MIB: i64 = 1024;

/// Whether the guest cell fits; if so it carries the host cell's number, its page size and its
/// pinning. Even if not, the page size and the pinning found on the way stay with it, as in Nova.
///
/// # Errors
/// `MemoryPageSizeNotSupported` for a size that the host cell has not, which the caller takes for
/// no; anything else fails the request.
pub(super) fn fit_cell(
    host: &NumaCell,
    guest: &mut InstanceNumaCell,
    limits: Option<&NumaFitLimits<'_>>,
    reserved: usize,
) -> Result<bool, NovaException> {
    if !memory_fits(host, guest)? {
        return Ok(false);
    }
    let dedicated = guest.pcpuset.len() + reserved;
    // A guest may not over-commit against itself on one cell, whatever the ratios say.
    if guest.pins() && dedicated > host.pcpuset.len() {
        return Ok(false);
    }
    if guest.floats() && guest.cpuset.len() > host.cpuset.len() {
        return Ok(false);
    }
    if guest.pins() {
        if dedicated > host.free_pcpus().len() || !pack(host, guest, reserved)? {
            return Ok(false);
        }
        // Nova takes a packed cell without any CPU for one that could not be packed.
        if guest.cpuset.is_empty() && guest.pcpuset.is_empty() {
            return Ok(false);
        }
    }
    if let Some(limits) = limits
        && guest.floats()
    {
        let cpus = host.cpu_usage as f64 + guest.cpuset.len() as f64;
        if cpus > host.cpuset.len() as f64 * limits.cpu_allocation_ratio {
            return Ok(false);
        }
        let memory = host.memory_usage.saturating_add(guest.memory) as f64;
        if memory > host.memory as f64 * limits.ram_allocation_ratio {
            return Ok(false);
        }
    }
    guest.id = host.id;
    Ok(true)
}

fn memory_fits(host: &NumaCell, guest: &mut InstanceNumaCell) -> Result<bool, NovaException> {
    if let Some(wanted) = guest.pagesize.filter(|size| *size != 0) {
        let Some(size) = host.pagesize_for(wanted, guest)?.filter(|size| *size != 0) else {
            return Ok(false);
        };
        guest.pagesize = Some(size);
        return Ok(true);
    }
    if let Some(smallest) = host.smallest_pagesize() {
        // Small pages may be over-committed, but never under pinned guests.
        return host.can_fit_pagesize(
            smallest,
            guest.memory.saturating_mul(KIB_PER_MIB),
            guest.pins(),
        );
    }
    let room = if guest.pins() {
        host.avail_memory()
    } else {
        host.memory
    };
    Ok(room >= guest.memory)
}
