//! What the conductor asks: `select_destinations` and the RequestSpec in it.

mod destination;
pub(crate) mod flavor;
mod legacy;
mod numa;

use crate::error::{ObjectError, ObjectProblem, Result};
use crate::object::{self, Object};
use crate::read;
use ebbtide_nova::model::{Flavor, InstanceNumaTopology, NetworkMetadata, PciRequest, RequestSpec};
use ebbtide_nova::python::{Dict, Value};
use std::collections::BTreeMap;
use std::fmt;

pub use destination::{CellMapping, NetworkRequest};

/// The call `select_destinations` (`nova/scheduler/manager.py`), versions 4.0 to 4.5.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectDestinations {
    /// What is asked for.
    pub request: ScheduleRequest,
    /// The instances to place; `None`: the old form, which claims nothing.
    pub instance_uuids: Option<Vec<String>>,
    /// Whether the answer is Selection objects or the old dictionaries.
    pub return_objects: bool,
    /// Whether the answer has alternates; never without objects.
    pub return_alternates: bool,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScheduleRequest {
    /// What filters, weighers and the query of Placement look at.
    pub spec: RequestSpec,
    /// Row of the request spec in Nova's API database; none with callers of 4.0 to 4.2.
    pub id: Option<i64>,
    /// The mapping of the cell that the request is bound to.
    pub cell: Option<CellMapping>,
    /// `instance_group` came without its hosts: they have to be read from the cells before an
    /// affinity filter looks.
    pub group_hosts_unset: bool,
    /// Networks and ports; `None`: not set.
    pub requested_networks: Option<Vec<NetworkRequest>>,
    /// Hosts that were tried before, by older callers that schedule again.
    pub retry: Option<Retry>,
    /// The object as it came, for notifications.
    pub wire: Wire,
}

/// Attempts before this one (`SchedulerRetries`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retry {
    pub num_attempts: i64,
    /// Host and node of each.
    pub hosts: Vec<(String, String)>,
}

/// A message's own JSON. It may hold the URLs of a cell's database and broker, so debug output
/// shows nothing of it.
#[derive(Clone, PartialEq, Default)]
pub struct Wire(Option<Dict<Value>>);

impl Wire {
    /// Fields of the outermost object; `None` where the caller sent dictionaries instead of an
    /// object.
    pub(crate) fn fields(&self) -> Option<&Dict<Value>> {
        self.0.as_ref()
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire(…)")
    }
}

const METHOD: &str = "select_destinations";
const ARGUMENTS: [&str; 6] = [
    "request_spec",
    "filter_properties",
    "spec_obj",
    "instance_uuids",
    "return_objects",
    "return_alternates",
];

impl SelectDestinations {
    /// Reads the arguments of the call (`args` of the message).
    ///
    /// # Errors
    /// An unknown argument, and whatever is wrong with the request.
    pub fn read(args: &Value) -> Result<Self> {
        let args = read::dict(args)?;
        if let Some(name) = args.keys().find(|name| !ARGUMENTS.contains(&name.as_str())) {
            return Err(ObjectError::here(ObjectProblem::Argument {
                method: METHOD,
                name: name.chars().take(40).collect(),
            }));
        }
        let request = match args.get("spec_obj") {
            Some(spec) => ScheduleRequest::read(spec).map_err(|error| error.within("spec_obj"))?,
            None => legacy::from_primitives(args)?,
        };
        let flag = |name: &str| args.get(name).is_some_and(Value::truth);
        let return_objects = flag("return_objects");
        Ok(Self {
            request,
            instance_uuids: read::member(args, "instance_uuids", read::texts)?,
            return_objects,
            return_alternates: return_objects && flag("return_alternates"),
        })
    }

    /// How many hosts are asked for.
    #[must_use]
    pub fn count(&self) -> i64 {
        match &self.instance_uuids {
            Some(uuids) if !uuids.is_empty() => i64::try_from(uuids.len()).unwrap_or(i64::MAX),
            _ => self.request.spec.num_instances,
        }
    }

    /// A rebuild on the host where the server is: only filters run, nothing is claimed.
    #[must_use]
    pub fn is_rebuild(&self) -> bool {
        self.request.spec.hint("_nova_check_type") == Some(&["rebuild".to_owned()])
    }
}

impl ScheduleRequest {
    /// Reads a RequestSpec object, versions 1.x; fields that a newer minor version added are
    /// ignored.
    ///
    /// # Errors
    /// What is wrong, with the path to it.
    pub fn read(value: &Value) -> Result<Self> {
        let spec = Object::open(value, "RequestSpec", 1)?;
        let mut read = Self {
            id: spec.optional("id", read::integer)?,
            wire: Wire(Some(spec.data.clone())),
            ..Self::default()
        };
        read.spec = RequestSpec {
            num_instances: spec.optional("num_instances", read::quantity)?.unwrap_or(1),
            instance_uuid: spec.or_default("instance_uuid", read::text)?,
            project_id: spec.optional("project_id", read::text)?,
            user_id: spec.optional("user_id", read::text)?,
            availability_zone: spec.optional("availability_zone", read::text)?,
            flavor: spec.required("flavor", flavor::flavor)?,
            image: spec.optional("image", flavor::image)?,
            // Null breaks every request in Nova, unset does not.
            scheduler_hints: spec
                .nullable_or_unset("scheduler_hints", hints)?
                .unwrap_or(Some(BTreeMap::new())),
            ignore_hosts: spec.optional("ignore_hosts", read::texts)?,
            force_hosts: spec.optional("force_hosts", read::texts)?,
            force_nodes: spec.optional("force_nodes", read::texts)?,
            numa_topology: spec.optional("numa_topology", numa::topology)?,
            pci_requests: spec.optional("pci_requests", numa::pci_requests)?,
            network_metadata: spec.optional("network_metadata", numa::network_metadata)?,
            is_bfv: spec.optional("is_bfv", read::boolean)?.unwrap_or(false),
            limits: spec.or_default("limits", limits)?,
            ..RequestSpec::default()
        };
        if let Some((group, hosts_set)) = spec.optional("instance_group", flavor::group)? {
            read.spec.instance_group = Some(group);
            read.group_hosts_unset = !hosts_set;
        }
        if let Some((to, cell)) =
            spec.optional("requested_destination", destination::destination)?
        {
            read.spec.requested_destination = Some(to);
            read.cell = cell;
        }
        read.spec.requested_resources = spec.or_default("requested_resources", |groups| {
            read::list(groups, destination::request_group)
        })?;
        read.spec.level = spec.or_default("request_level_params", destination::level)?;
        read.requested_networks = spec.optional("requested_networks", destination::networks)?;
        read.retry = spec.optional("retry", retry)?;
        Ok(read)
    }
}

/// Each hint is a list; older callers may have left a bare value.
fn hints(value: &Value) -> Result<BTreeMap<String, Vec<String>>> {
    read::map(value, |hint| match hint {
        Value::List(_) => read::texts(hint),
        one => Ok(vec![read::text(one)?]),
    })
}

/// A SchedulerLimits object: the numbers that are set.
fn limits(value: &Value) -> Result<BTreeMap<String, serde_json::Value>> {
    let limits = Object::open(value, "SchedulerLimits", 1)?;
    let mut set = BTreeMap::new();
    for name in ["vcpu", "disk_gb", "memory_mb"] {
        if let Some(limit) = limits.optional(name, read::integer)? {
            set.insert(name.to_owned(), limit.into());
        }
    }
    Ok(set)
}

/// A SchedulerRetries object.
fn retry(value: &Value) -> Result<Retry> {
    let retry = Object::open(value, "SchedulerRetries", 1)?;
    let node = |value: &Value| {
        let node = Object::open(value, "ComputeNode", 1)?;
        let name = |name| node.or_default(name, read::text);
        Ok((name("host")?, name("hypervisor_hostname")?))
    };
    Ok(Retry {
        num_attempts: retry.optional("num_attempts", read::integer)?.unwrap_or(0),
        hosts: retry.or_default("hosts", |hosts| {
            object::items(hosts, "ComputeNodeList", 1, node)
        })?,
    })
}

/// Reads a Flavor object, as requests and instances carry it.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_flavor(value: &Value) -> Result<Flavor> {
    flavor::flavor(value)
}

/// Reads an InstanceNUMATopology object, as requests, instances and the table `instance_extra` hold
/// it.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_numa_topology(value: &Value) -> Result<InstanceNumaTopology> {
    numa::topology(value)
}

/// Reads an InstancePCIRequests object, as requests and instances carry it.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_pci_requests(value: &Value) -> Result<Vec<PciRequest>> {
    numa::pci_requests(value)
}

/// Reads a NetworkMetadata object.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_network_metadata(value: &Value) -> Result<NetworkMetadata> {
    numa::network_metadata(value)
}
