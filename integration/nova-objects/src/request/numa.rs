//! NUMA topology and PCI requests of a request.

use crate::error::{ObjectError, Result};
use crate::object::Object;
use crate::read;
use ebbtide_nova::model::{InstanceNumaCell, InstanceNumaTopology, NetworkMetadata, PciRequest};
use ebbtide_nova::python::{Value, number};

/// An InstanceNUMATopology object.
pub(crate) fn topology(value: &Value) -> Result<InstanceNumaTopology> {
    let topology = Object::open(value, "InstanceNUMATopology", 1)?;
    Ok(InstanceNumaTopology {
        cells: topology.required("cells", |cells| read::list(cells, cell))?,
        emulator_threads_policy: topology.optional("emulator_threads_policy", |policy| {
            read::one_of(policy, &["isolate", "share"])
        })?,
    })
}

fn cell(value: &Value) -> Result<InstanceNumaCell> {
    let cell = Object::open(value, "InstanceNUMACell", 1)?;
    let mut cpuset = cell.required("cpuset", read::integer_set)?;
    let cpu_policy = cell.optional("cpu_policy", |policy| {
        read::one_of(policy, &["dedicated", "shared", "mixed"])
    })?;
    let pcpuset = match cell.optional("pcpuset", read::integer_set)? {
        Some(pcpuset) => pcpuset,
        // Before 1.5 there was one set, and the policy said what it is
        // (`_migrate_legacy_dedicated_instance_cpuset`).
        None if cpu_policy.as_deref() == Some("dedicated") => std::mem::take(&mut cpuset),
        None => Default::default(),
    };
    Ok(InstanceNumaCell {
        id: cell.required("id", read::integer)?,
        cpuset,
        pcpuset,
        memory: cell.required("memory", read::quantity)?,
        pagesize: cell.optional("pagesize", pagesize)?,
        cpu_policy,
        cpu_thread_policy: cell.optional("cpu_thread_policy", |policy| {
            read::one_of(policy, &["prefer", "isolate", "require"])
        })?,
        cpuset_reserved: cell
            .optional("cpuset_reserved", read::integer_set)?
            .filter(|reserved| !reserved.is_empty()),
        cpu_pinning: cell
            .optional("cpu_pinning_raw", pinning)?
            .filter(|pinning| !pinning.is_empty()),
    })
}

/// KiB, or one of the symbolic sizes below zero.
fn pagesize(value: &Value) -> Result<i64> {
    let size = read::integer(value)?;
    if (-10..=read::COLUMN_MAX).contains(&size) {
        Ok(size)
    } else {
        Err(ObjectError::value(format!("{size} is no page size in KiB")))
    }
}

/// Guest CPU to host CPU; JSON has made text of the guest's.
fn pinning(value: &Value) -> Result<Vec<(i64, i64)>> {
    let pairs: Vec<(String, i64)> = read::map(value, read::integer)?;
    pairs
        .into_iter()
        .map(|(guest, host)| {
            let guest = number::int(&guest).and_then(|guest| i64::try_from(guest).ok());
            let guest = guest.ok_or_else(|| ObjectError::value("a key is no number of a CPU"))?;
            Ok((guest, host))
        })
        .collect()
}

/// An InstancePCIRequests object.
pub(crate) fn pci_requests(value: &Value) -> Result<Vec<PciRequest>> {
    let requests = Object::open(value, "InstancePCIRequests", 1)?;
    requests.required("requests", |requests| read::list(requests, pci_request))
}

fn pci_request(value: &Value) -> Result<PciRequest> {
    let request = Object::open(value, "InstancePCIRequest", 1)?;
    let tags = |tags: &Value| {
        read::map(tags, |tag| {
            Ok(read::nullable(tag, read::text)?.map_or(serde_json::Value::Null, Into::into))
        })
    };
    Ok(PciRequest {
        count: request.required("count", read::quantity)?,
        spec: request.or_default("spec", |spec| read::list(spec, tags))?,
        alias_name: request.optional("alias_name", read::text)?,
        request_id: request.optional("request_id", read::text)?,
        requester_id: request.optional("requester_id", read::text)?,
        numa_policy: request.optional("numa_policy", |policy| {
            read::one_of(policy, &["required", "legacy", "preferred", "socket"])
        })?,
    })
}

/// A NetworkMetadata object.
pub(crate) fn network_metadata(value: &Value) -> Result<NetworkMetadata> {
    let metadata = Object::open(value, "NetworkMetadata", 1)?;
    Ok(NetworkMetadata {
        physnets: metadata.or_default("physnets", read::text_set)?,
        tunneled: metadata
            .optional("tunneled", read::boolean)?
            .unwrap_or(false),
    })
}
