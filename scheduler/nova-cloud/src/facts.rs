//! What the cloud is told: rows of Nova's databases and answers of Placement, as plain data.

use ebbtide_nova::hosts::ComputeRow;
use ebbtide_nova::model::{Flavor, Service};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// What a consumer has: amounts by resource class, by provider.
pub type Allocations = BTreeMap<Uuid, BTreeMap<String, u64>>;

/// A cell, without its database URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFacts {
    /// `cell_mappings.uuid`.
    pub uuid: String,
    /// Taken out of scheduling.
    pub disabled: bool,
}

/// A row of `compute_nodes`.
#[derive(Debug, Clone)]
pub struct ComputeFacts {
    /// `compute_nodes.uuid`, which is the uuid of its root provider in Placement.
    pub uuid: Uuid,
    /// The cell in whose database the row is.
    pub cell_uuid: String,
    /// The row as its object has it, with the ratios that are in effect.
    pub row: ComputeRow,
}

/// A nova-compute of `services`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Its host.
    pub host: String,
    /// Its row, as far as it matters.
    pub service: Service,
}

/// What a provider has of one resource class (Placement's inventory). Numbers as Placement allows them; see
/// `GET /resource_providers/{uuid}/inventories`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inventory {
    /// All there is.
    pub total: i64,
    /// Kept back.
    pub reserved: i64,
    /// The least that one consumer may take.
    pub min_unit: i64,
    /// The most that one consumer may take.
    pub max_unit: i64,
    /// Amounts are multiples of this.
    pub step_size: i64,
    /// How often it is sold.
    pub allocation_ratio: f64,
}

/// A resource provider. What is `None` was not read: what is known of it already stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProviderFacts {
    /// Its uuid.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Its generation when it was read.
    pub generation: Option<i64>,
    /// Its parent; `None` for a root.
    pub parent: Option<Uuid>,
    /// Its root.
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

/// One line of `GET /resource_providers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLine {
    /// Its uuid.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: i64,
    /// Its parent; `None` for a root.
    pub parent: Option<Uuid>,
    /// Its root.
    pub root: Uuid,
}

/// A server, as its row in a cell's `instances` and the tables beside it say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InstanceRecord {
    /// `instances.uuid`, the consumer in Placement.
    pub uuid: Uuid,
    /// Name, for explanations only.
    pub name: String,
    /// Service's host; `None` while it has none.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub node: Option<String>,
    /// Who owns it.
    pub project_id: String,
    /// Who made it.
    pub user_id: String,
    /// Its flavor as it was embedded when the server was created (or resized), extra specs included.
    pub flavor: Flavor,
    /// Its root disk is a volume, so that it takes none of the host's for it.
    pub boots_from_volume: bool,
    /// Microseconds since 1970, UTC.
    pub launched_at: Option<i64>,
    /// `active`, `stopped`, …
    pub vm_state: Option<String>,
    /// `None` while nobody does anything with it.
    pub task_state: Option<String>,
    /// Locked by its owner or an administrator.
    pub locked: bool,
    /// Its server group.
    pub group: Option<Uuid>,
    /// `system_metadata` keys `image_*` without the prefix, where somebody read them.
    pub image_properties: BTreeMap<String, serde_json::Value>,
}

/// A consumer of a provider (`GET /resource_providers/{uuid}/allocations`, 1.28 and later).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Its uuid: a server, or a migration.
    pub uuid: Uuid,
    /// Its generation, without which nothing can be taken from it.
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
    /// Its cell.
    pub cell_uuid: String,
}
