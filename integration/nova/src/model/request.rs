//! The request (`nova/objects/request_spec.py`).

use super::{Image, InstanceNumaTopology, NetworkMetadata, OrderedMap, PciRequest};
use ebbtide_model::flavor;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flavor {
    pub name: String,
    /// Id as users see it.
    pub flavorid: String,
    /// CPUs.
    pub vcpus: i64,
    /// Memory in MiB.
    pub memory_mb: i64,
    /// Root disk in GiB.
    pub root_gb: i64,
    /// Ephemeral disk in GiB.
    pub ephemeral_gb: i64,
    /// Swap in MiB.
    pub swap: i64,
    /// `None`: the field is not set. In the order of the request: filters stop at the first that
    /// decides.
    pub extra_specs: Option<OrderedMap<String>>,
}

impl Flavor {
    /// Whether the flavor says `ebbtide:preemptible=true`.
    #[must_use]
    pub fn is_preemptible(&self) -> bool {
        let specs = self.extra_specs.as_ref();
        let value = specs.and_then(|specs| specs.get(flavor::PREEMPTIBLE));
        flavor::is_preemptible(value.map(String::as_str))
    }
}

/// A server group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceGroup {
    pub uuid: String,
    /// Policy; `policies` is the list of just this one.
    pub policy: String,
    /// Rules, as strings.
    pub rules: BTreeMap<String, String>,
    /// Instance UUIDs.
    pub members: Vec<String>,
    /// Host names. Grows while a request is scheduled.
    pub hosts: Vec<String>,
}

/// Where a request wants to go. The outer option says whether the field is set, the inner whether
/// it is null.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destination {
    /// Host name.
    pub host: Option<Option<String>>,
    /// Node name. Unset, although a host is set, is an ObjectActionError in Nova.
    pub node: Option<Option<String>>,
    /// Cell UUID.
    pub cell: Option<String>,
    /// Whether other cells are allowed.
    pub allow_cross_cell_move: Option<bool>,
    /// Groups of aggregate UUIDs, comma separated.
    pub aggregates: Option<Option<Vec<String>>>,
    /// Aggregate UUIDs.
    pub forbidden_aggregates: Option<BTreeSet<String>>,
}

/// A request group for Placement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestGroup {
    /// Whether one provider has to give all.
    pub use_same_provider: bool,
    /// The object that asks for the resources, such as a port.
    pub requester_id: Option<String>,
    /// Amount by resource class.
    pub resources: BTreeMap<String, i64>,
    pub required_traits: BTreeSet<String>,
    pub forbidden_traits: BTreeSet<String>,
    /// Filled in while a request is scheduled.
    pub provider_uuids: Vec<String>,
    /// Choices of aggregates, all to be met.
    pub aggregates: Vec<Vec<String>>,
    /// Aggregates to keep away from.
    pub forbidden_aggregates: BTreeSet<String>,
    /// Root provider whose tree has to give the resources.
    pub in_tree: Option<String>,
}

/// What holds for the whole query of Placement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestLevelParams {
    /// Traits that the root provider needs.
    pub root_required: BTreeSet<String>,
    /// Traits that the root provider must not have.
    pub root_forbidden: BTreeSet<String>,
    /// Suffixes of groups that have to come from one subtree.
    pub same_subtree: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestSpec {
    /// How many instances, where no UUIDs are given.
    pub num_instances: i64,
    /// The instance that is being scheduled.
    pub instance_uuid: String,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub availability_zone: Option<String>,
    pub flavor: Flavor,
    /// Image; null for volume-booted requests of some callers.
    pub image: Option<Image>,
    /// Hints; `None`: null, which breaks every request in Nova.
    pub scheduler_hints: Option<BTreeMap<String, Vec<String>>>,
    /// Server group.
    pub instance_group: Option<InstanceGroup>,
    /// Hosts to leave out.
    pub ignore_hosts: Option<Vec<String>>,
    /// Hosts to which the request is forced.
    pub force_hosts: Option<Vec<String>>,
    /// Nodes to which the request is forced.
    pub force_nodes: Option<Vec<String>>,
    pub requested_destination: Option<Destination>,
    pub numa_topology: Option<InstanceNumaTopology>,
    /// PCI requests; `None`: null.
    pub pci_requests: Option<Vec<PciRequest>>,
    /// Request groups of ports and devices.
    pub requested_resources: Vec<RequestGroup>,
    /// What holds for the whole query of Placement; ports bring it.
    pub level: RequestLevelParams,
    /// Networks; `None`: not set.
    pub network_metadata: Option<NetworkMetadata>,
    /// Boots from a volume.
    pub is_bfv: bool,
    /// Numbers of the old `limits` dictionary, as given.
    pub limits: BTreeMap<String, serde_json::Value>,
}

impl RequestSpec {
    /// The hint's single value, if it is a list of just one (`get_scheduler_hint`), else the list.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<&[String]> {
        self.scheduler_hints
            .as_ref()
            .and_then(|hints| hints.get(name))
            .map(Vec::as_slice)
    }
}
