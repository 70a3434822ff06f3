//! Converts rows of Nova's databases to the input of the cloud in memory.

use ebbtide_nova::model::Flavor;
use ebbtide_nova_cloud::{
    CellFacts, ComputeFacts, HeldFacts, HeldResources, InstanceRecord, ServiceFacts,
};
use ebbtide_nova_db::{CellMapping, ComputeNode, Instance, NovaService};
use ebbtide_nova_objects::read_numa_topology;
use std::sync::Arc;
use uuid::Uuid;

pub(super) fn cell(cell: &CellMapping) -> CellFacts {
    CellFacts {
        uuid: cell.uuid.clone(),
        disabled: cell.disabled,
    }
}

/// A compute node. `None` for a row without a UUID, on which nothing can be placed, and for a row
/// that Nova itself cannot read.
pub(super) fn compute(cell_uuid: &str, node: &ComputeNode) -> Option<ComputeFacts> {
    let uuid = Uuid::parse_str(node.uuid.as_deref()?).ok()?;
    match &node.row {
        Ok(row) => Some(ComputeFacts {
            uuid,
            cell_uuid: cell_uuid.to_owned(),
            row: row.as_ref().clone(),
        }),
        Err(fault) => {
            tracing::warn!(
                code = "EB-DOOR-010",
                "the row of compute node {uuid} in cell {cell_uuid} cannot be read: {fault:?}; the host is left out"
            );
            None
        }
    }
}

/// A nova-compute.
pub(super) fn service(service: &NovaService) -> ServiceFacts {
    ServiceFacts {
        host: service.host.clone(),
        service: service.service.clone(),
    }
}

/// A server. `None` if its UUID is invalid: Placement cannot know it.
pub(super) fn instance(row: &Instance) -> Option<InstanceRecord> {
    let own = row.flavor.as_ref().map(|flavor| flavor.current.clone());
    let flavor =
        own.unwrap_or_else(|| bare_flavor(row.vcpus, row.memory_mb, row.root_gb, row.ephemeral_gb));
    Some(InstanceRecord {
        uuid: Uuid::parse_str(&row.uuid).ok()?,
        name: row.display_name.clone().unwrap_or_default(),
        host: row.host.clone(),
        node: row.node.clone(),
        project_id: row.project_id.clone().unwrap_or_default(),
        user_id: row.user_id.clone().unwrap_or_default(),
        flavor,
        boots_from_volume: row.boots_from_volume,
        created_at: row.created_at,
        launched_at: row.launched_at,
        updated_at: row.updated_at,
        vm_state: row.vm_state.clone(),
        task_state: row.task_state.clone(),
        locked: row.locked,
        group: row
            .server_group
            .as_deref()
            .and_then(|group| Uuid::parse_str(group).ok()),
        image_properties: row.image_properties.clone(),
        held: held(row),
    })
}

/// What a server holds of NUMA cells and PCI devices.
fn held(row: &Instance) -> HeldFacts {
    if row.numa_topology.is_none() && !row.has_pci_requests {
        return HeldFacts::Nothing;
    }
    let topology = row.numa_topology.as_deref().map(|text| {
        let value = ebbtide_nova_objects::parse(text);
        value.and_then(|value| read_numa_topology(&value))
    });
    let (numa_topology, no_topology) = match topology.transpose() {
        Ok(topology) => (topology, None),
        Err(error) => {
            let text = format!("its NUMA topology cannot be read: {error}");
            (None, Some(text))
        }
    };
    let (pci_devices, no_devices) = match &row.pci_devices {
        Ok(devices) if devices.is_empty() && row.has_pci_requests => {
            let text = "Nova has no device for its PCI requests";
            (Vec::new(), Some(text.to_owned()))
        }
        Ok(devices) => (devices.clone(), None),
        Err(problem) => (Vec::new(), Some(problem.clone())),
    };
    HeldFacts::Held(Arc::new(HeldResources {
        numa_topology,
        pci_devices,
        fault: no_topology.or(no_devices),
    }))
}

/// A flavor built from the row's amounts, for a server without a flavor: it occupies capacity all
/// the same.
fn bare_flavor(vcpus: i64, memory_mb: i64, root_gb: i64, ephemeral_gb: i64) -> Flavor {
    Flavor {
        vcpus,
        memory_mb,
        root_gb,
        ephemeral_gb,
        ..Flavor::default()
    }
}

/// A server from a notification of its compute.
pub(super) fn told_instance(told: &ebbtide_nova_objects::Instance) -> Option<InstanceRecord> {
    let own = told.flavor.clone();
    let flavor = own.unwrap_or_else(|| {
        bare_flavor(told.vcpus, told.memory_mb, told.root_gb, told.ephemeral_gb)
    });
    Some(InstanceRecord {
        uuid: Uuid::parse_str(&told.uuid).ok()?,
        name: told.display_name.clone().unwrap_or_default(),
        host: told.host.clone(),
        node: told.node.clone(),
        project_id: told.project_id.clone().unwrap_or_default(),
        user_id: told.user_id.clone().unwrap_or_default(),
        flavor,
        boots_from_volume: told.image_ref.as_deref().is_none_or(str::is_empty),
        created_at: told.created_at,
        launched_at: told.launched_at,
        updated_at: told.updated_at,
        vm_state: told.vm_state.clone(),
        task_state: told.task_state.clone(),
        locked: false,
        group: None,
        image_properties: told.facts().image_properties,
        held: HeldFacts::NotRead,
    })
}
