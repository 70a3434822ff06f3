//! What a placed instance takes from a host state (`HostState.consume_from_request`).

use crate::fault::NovaException;
use crate::model::{HostState, Options, RequestSpec};
use crate::numa;

/// Takes the request's resources from a chosen host. Nova logs an error here and continues: what
/// was taken before the error stays taken. Returns the error, for explanations only.
pub fn consume(
    state: &mut HostState,
    spec: &mut RequestSpec,
    options: &Options,
) -> Option<NovaException> {
    take(state, spec, options).err()
}

fn take(
    state: &mut HostState,
    spec: &mut RequestSpec,
    options: &Options,
) -> Result<(), NovaException> {
    let disk_gb = spec.flavor.root_gb.saturating_add(spec.flavor.ephemeral_gb);
    let free_ram_mb = state
        .free_ram_mb
        .ok_or_else(|| NovaException::new("TypeError", "free_ram_mb is NULL"))?;
    state.free_ram_mb = Some(free_ram_mb.saturating_sub(spec.flavor.memory_mb));
    state.free_disk_mb = state
        .free_disk_mb
        .saturating_sub(disk_gb.saturating_mul(1024));
    state.vcpus_used = state.vcpus_used.saturating_add(spec.flavor.vcpus);
    state.num_instances += 1;
    numa::consume(state, spec, options)?;
    state.num_io_ops += 1;
    Ok(())
}
