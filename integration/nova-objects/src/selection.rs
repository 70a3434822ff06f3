//! What the scheduler answers: for each instance the chosen host and its alternates
//! (`nova/objects/selection.py`).

use crate::dumps;
use crate::error::{ObjectError, Result};
use crate::object::{Object, envelope};
use crate::read;
use crate::request::read_network_metadata;
use ebbtide_nova::model::{AllocationCandidate, NetworkMetadata};
use ebbtide_nova::python::Value;
use serde_json::{Map, Value as Json, json};

/// Microversion of Placement by which a claim of ours is to be read.
pub const ALLOCATION_REQUEST_VERSION: &str = "1.36";

/// A host for an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// UUID of the compute node; `None` only where a node was never updated.
    pub compute_node_uuid: Option<String>,
    /// Host name of the service.
    pub service_host: String,
    /// Hypervisor's host name.
    pub nodename: String,
    pub cell_uuid: String,
    /// What NUMATopologyFilter found the host's limits to be.
    pub numa_limits: Option<NumaLimits>,
    /// The claim of the selected host, or the claim that a caller may make on this alternate.
    /// `None` where nothing is claimed (a rebuild, and callers that name no instances).
    pub allocation_request: Option<AllocationCandidate>,
    /// Availability zone of the host.
    pub availability_zone: String,
}

/// Limits of a host's NUMA cells (`NUMATopologyLimits`).
#[derive(Debug, Clone, PartialEq)]
pub struct NumaLimits {
    pub cpu_allocation_ratio: f64,
    /// Memory allocation ratio.
    pub ram_allocation_ratio: f64,
    /// The networks of the request, where it needs some.
    pub network_metadata: Option<NetworkMetadata>,
}

impl NumaLimits {
    fn read(value: &Value) -> Result<Self> {
        let limits = Object::open(value, "NUMATopologyLimits", 1)?;
        Ok(Self {
            cpu_allocation_ratio: limits.required("cpu_allocation_ratio", read::float)?,
            ram_allocation_ratio: limits.required("ram_allocation_ratio", read::float)?,
            network_metadata: limits.optional("network_metadata", read_network_metadata)?,
        })
    }

    fn to_json(&self) -> Json {
        let mut data = Map::new();
        data.insert(
            "cpu_allocation_ratio".to_owned(),
            self.cpu_allocation_ratio.into(),
        );
        data.insert(
            "ram_allocation_ratio".to_owned(),
            self.ram_allocation_ratio.into(),
        );
        if let Some(networks) = &self.network_metadata {
            let mut fields = Map::new();
            let physnets: Vec<&String> = networks.physnets.iter().collect();
            fields.insert("physnets".to_owned(), json!(physnets));
            fields.insert("tunneled".to_owned(), networks.tunneled.into());
            data.insert(
                "network_metadata".to_owned(),
                envelope("NetworkMetadata", "1.0", fields),
            );
        }
        envelope("NUMATopologyLimits", "1.1", data)
    }
}

impl Selection {
    /// The Selection object, version 1.1. All four limits are there, as null where there is none:
    /// without them the conductor dies when it looks at them, and the server stays in BUILD for
    /// ever.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut limits = Map::new();
        for name in ["vcpu", "disk_gb", "memory_mb"] {
            limits.insert(name.to_owned(), Json::Null);
        }
        let numa = self.numa_limits.as_ref().map(NumaLimits::to_json);
        limits.insert("numa_topology".to_owned(), numa.unwrap_or(Json::Null));
        let version = self
            .allocation_request
            .as_ref()
            .map(|_| ALLOCATION_REQUEST_VERSION);
        let mut data = Map::new();
        let mut set = |name: &str, value: Json| data.insert(name.to_owned(), value);
        set("compute_node_uuid", json!(self.compute_node_uuid));
        set("service_host", json!(self.service_host));
        set("nodename", json!(self.nodename));
        set("cell_uuid", json!(self.cell_uuid));
        set("limits", envelope("SchedulerLimits", "1.0", limits));
        set("allocation_request", self.allocation_text().into());
        set("allocation_request_version", json!(version));
        set("availability_zone", json!(self.availability_zone));
        envelope("Selection", "1.1", data)
    }

    /// Reads a Selection object, as a caller does.
    ///
    /// # Errors
    /// What is wrong, with the path to it.
    pub fn read(value: &Value) -> Result<Self> {
        let selection = Object::open(value, "Selection", 1)?;
        let numa = |value: &Value| {
            let limits = Object::open(value, "SchedulerLimits", 1)?;
            limits.optional("numa_topology", NumaLimits::read)
        };
        Ok(Self {
            compute_node_uuid: selection.optional("compute_node_uuid", read::text)?,
            service_host: selection.required("service_host", read::text)?,
            nodename: selection.required("nodename", read::text)?,
            cell_uuid: selection.required("cell_uuid", read::text)?,
            numa_limits: selection.optional("limits", numa)?.flatten(),
            allocation_request: selection.or_default("allocation_request", claim)?,
            availability_zone: selection.or_default("availability_zone", read::text)?,
        })
    }

    /// The old dictionary, for callers that do not ask for objects.
    #[must_use]
    pub fn to_legacy(&self) -> Json {
        let mut limits = Map::new();
        if let Some(numa) = &self.numa_limits {
            limits.insert("numa_topology".to_owned(), numa.to_json());
        }
        json!({"host": self.service_host, "nodename": self.nodename, "limits": limits})
    }

    /// The claim as text of JSON, as Python writes it; the text `null` where there is none.
    fn allocation_text(&self) -> String {
        match &self.allocation_request {
            None => "null".to_owned(),
            Some(claim) => dumps::dumps(&json!({
                "allocations": claim.allocations,
                "mappings": claim.mappings,
            })),
        }
    }
}

/// A claim from its text; the text `null` is none.
fn claim(value: &Value) -> Result<Option<AllocationCandidate>> {
    let text = read::text(value)?;
    let claim: Json =
        serde_json::from_str(&text).map_err(|_| ObjectError::value("is no text of JSON"))?;
    let part = |name: &str| claim.get(name).cloned().unwrap_or(Json::Null);
    Ok((!claim.is_null()).then(|| AllocationCandidate {
        allocations: part("allocations"),
        mappings: part("mappings"),
    }))
}

/// Reads the result of `select_destinations` with objects, as a caller does.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_reply(result: &Value) -> Result<Vec<Vec<Selection>>> {
    read::list(result, |all| read::list(all, Selection::read))
}

/// The result of `select_destinations`: for each instance a list of the chosen host and its
/// alternates, or for callers that do not ask for objects the chosen hosts alone.
#[must_use]
pub fn reply(selections: &[Vec<Selection>], return_objects: bool) -> Json {
    if return_objects {
        let list = |all: &Vec<Selection>| all.iter().map(Selection::to_json).collect::<Json>();
        selections.iter().map(list).collect()
    } else {
        let chosen = selections.iter().filter_map(|all| all.first());
        chosen.map(Selection::to_legacy).collect()
    }
}
