//! A row of `instances` with what belongs to it.

use ebbtide_nova::model::Flavor;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The flavor that an instance carries (`instance_extra.flavor`). Instances of one flavor share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFlavor {
    /// The flavor that counts now.
    pub current: Flavor,
    /// While it is resized: the flavor that it will get.
    pub new: Option<Flavor>,
    /// After a resize until it is confirmed: the flavor that it had.
    pub old: Option<Flavor>,
}

/// An instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// UUID.
    pub uuid: String,
    /// Host of the service, once it has one.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub node: Option<String>,
    /// Project.
    pub project_id: Option<String>,
    /// User.
    pub user_id: Option<String>,
    /// Name that its user gave it.
    pub display_name: Option<String>,
    /// Microseconds since 1970, UTC.
    pub launched_at: Option<i64>,
    /// Microseconds since 1970, UTC.
    pub created_at: Option<i64>,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// For example `active`, `stopped`, `resized`, `shelved_offloaded`.
    pub vm_state: Option<String>,
    /// What is being done to it; `None`: nothing.
    pub task_state: Option<String>,
    /// libvirt's number of the power state; 1 is running, 4 shut down.
    pub power_state: Option<i64>,
    /// CPUs.
    pub vcpus: i64,
    /// Memory, MiB.
    pub memory_mb: i64,
    /// Root disk, GiB.
    pub root_gb: i64,
    /// Ephemeral disk, GiB.
    pub ephemeral_gb: i64,
    /// Locked against its user's or everybody's changes.
    pub locked: bool,
    /// Flavor; `None` if the row has none or one that cannot be read.
    pub flavor: Option<Arc<InstanceFlavor>>,
    /// Has a NUMA topology (pinned CPUs, huge pages).
    pub has_numa_topology: bool,
    /// Has PCI devices.
    pub has_pci_requests: bool,
    /// UUID of its server group.
    pub server_group: Option<String>,
    /// Metadata whose keys begin with `ebbtide:`.
    pub metadata: BTreeMap<String, String>,
    /// `system_metadata` whose keys begin with `image_`, under the names without that prefix, as stored. Only where asked for.
    pub image_properties: BTreeMap<String, Value>,
    /// Gone: deleted, or soft-deleted and so of no use to a scheduler. Only changes report such rows.
    pub deleted: bool,
}
