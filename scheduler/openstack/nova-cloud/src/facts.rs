//! The input of the cloud in memory: rows of Nova's databases and answers of Placement, as plain
//! data.

use ebbtide_nova::hosts::ComputeRow;
use ebbtide_nova::model::{Flavor, InstanceNumaTopology, PciDevice, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// What a consumer holds: amounts by resource class, by provider.
pub type Allocations = BTreeMap<Uuid, BTreeMap<String, u64>>;

/// A cell, without its database URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFacts {
    /// `cell_mappings.uuid`.
    pub uuid: String,
    /// The operator has disabled the cell for scheduling.
    pub disabled: bool,
}

/// A row of `compute_nodes`.
#[derive(Debug, Clone)]
pub struct ComputeFacts {
    /// `compute_nodes.uuid`, which is the uuid of its root provider in Placement.
    pub uuid: Uuid,
    /// The cell in whose database the row is.
    pub cell_uuid: String,
    /// The row as Nova's object presents it, with the effective allocation ratios.
    pub row: ComputeRow,
}

/// A nova-compute of `services`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceFacts {
    pub host: String,
    /// The columns of its row that the scheduler uses.
    pub service: Service,
}

/// The inventory of one resource class of a provider. Values have the ranges of Placement; see `GET
/// /resource_providers/{uuid}/inventories`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inventory {
    /// The total amount.
    pub total: i64,
    /// The reserved amount.
    pub reserved: i64,
    /// The least that one consumer may take.
    pub min_unit: i64,
    /// The most that one consumer may take.
    pub max_unit: i64,
    /// Amounts are multiples of this.
    pub step_size: i64,
    /// The overcommit factor.
    pub allocation_ratio: f64,
}

/// A resource provider. A `None` field was not read; the cloud keeps its known value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProviderFacts {
    pub uuid: Uuid,
    pub name: String,
    /// Its generation when it was read.
    pub generation: Option<i64>,
    /// Its parent; `None` for a root.
    pub parent: Option<Uuid>,
    pub root: Option<Uuid>,
    /// Inventories by resource class.
    pub inventories: Option<BTreeMap<String, Inventory>>,
    /// Usage by resource class (`GET /resource_providers/{uuid}/usages`).
    pub used: Option<BTreeMap<String, i64>>,
    /// Traits.
    pub traits: Option<BTreeSet<String>>,
    /// Aggregates, by Placement's uuid.
    pub aggregates: Option<BTreeSet<Uuid>>,
}

impl ProviderFacts {
    /// The first of these classes of which all consumers together hold more than the provider's
    /// capacity, in words.
    pub fn overcommitted<'a>(
        &self,
        classes: impl IntoIterator<Item = &'a String>,
    ) -> Option<String> {
        classes.into_iter().find_map(|class| {
            let has = self.inventories.as_ref()?.get(class)?;
            let (used, capacity) = (
                *self.used.as_ref()?.get(class)?,
                crate::cloud::capacity(has),
            );
            (used > capacity).then(|| format!("{used} of {capacity} {class}"))
        })
    }
}

/// One line of `GET /resource_providers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLine {
    pub uuid: Uuid,
    pub name: String,
    pub generation: i64,
    /// Its parent; `None` for a root.
    pub parent: Option<Uuid>,
    pub root: Uuid,
}

/// What a server holds of its host besides amounts of resource classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldResources {
    /// `instance_extra.numa_topology`, as it was fitted on the host.
    pub numa_topology: Option<InstanceNumaTopology>,
    /// The devices that are claimed for it or allocated to it.
    pub pci_devices: Vec<PciDevice>,
    /// Why they are not known, in words. Such a server is no victim of a request for cells or
    /// devices.
    pub fault: Option<String>,
}

/// What is known of a server's [`HeldResources`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HeldFacts {
    /// Not read: what was known before stays.
    #[default]
    NotRead,
    /// It holds nothing besides amounts.
    Nothing,
    /// It holds these.
    Held(Arc<HeldResources>),
}

/// A server, from its row in a cell's `instances` and the related tables.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InstanceRecord {
    /// `instances.uuid`, the consumer in Placement.
    pub uuid: Uuid,
    /// Name, for explanations only.
    pub name: String,
    /// Host of its nova-compute service; `None` while it has none.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub node: Option<String>,
    /// Who owns it.
    pub project_id: String,
    /// The user that created it.
    pub user_id: String,
    /// Its flavor as embedded when the server was created (or resized), extra specs included.
    pub flavor: Flavor,
    /// True if its root disk is a volume, which takes no disk of the host.
    pub boots_from_volume: bool,
    /// Creation time in microseconds since 1970, UTC; `None` if unknown.
    pub created_at: Option<i64>,
    /// Launch time in microseconds since 1970, UTC.
    pub launched_at: Option<i64>,
    /// When Nova last changed its row, in microseconds since 1970, UTC; `None`: never, or unknown.
    pub updated_at: Option<i64>,
    /// `active`, `stopped`, …
    pub vm_state: Option<String>,
    /// Nova's current task; `None` if Nova is not working on the server.
    pub task_state: Option<String>,
    /// Locked by its owner or an administrator.
    pub locked: bool,
    /// Its server group.
    pub group: Option<Uuid>,
    /// `system_metadata` keys `image_*` without the prefix; empty if not read.
    pub image_properties: BTreeMap<String, serde_json::Value>,
    /// NUMA cells and PCI devices.
    pub held: HeldFacts,
}

/// A consumer of a provider (`GET /resource_providers/{uuid}/allocations`, 1.28 and later).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Its uuid: a server, or a migration.
    pub uuid: Uuid,
    /// Its generation, which a write that takes something from it has to name.
    pub generation: i64,
    /// What it has of this provider, by resource class.
    pub resources: BTreeMap<String, u64>,
}

/// A host, as answers name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostRef {
    /// Service's host.
    pub host: String,
    /// Hypervisor's host name.
    pub nodename: String,
    /// Compute node and root provider.
    pub uuid: Uuid,
    pub cell_uuid: String,
}
