//! The request of a case (`RequestSpec` and what hangs from it, as the oracle fills them).

use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{
    dict, get, integer, key, list, map, nullable, nullable_integer, nullable_string, one_of,
    string, type_error, value_error, wide,
};
use ebbtide_nova::hosts::from_dict::{integers, networks};
use ebbtide_nova::model::{
    Destination, Flavor, Image, InstanceGroup, InstanceNumaCell, InstanceNumaTopology, PciRequest,
    RequestGroup, RequestSpec,
};
use ebbtide_nova::python::to_json;
use ebbtide_nova::python::{Dict, Value};
use std::collections::BTreeSet;

/// Reads a request. Cells are those of the case.
///
/// # Errors
/// What Nova's objects raise for values that they do not take: mostly ValueError, KeyError for what
/// is missing.
pub(super) fn read(request: &Dict<Value>, cells: &[String]) -> Result<RequestSpec, NovaException> {
    let flavor = flavor(dict(key(request, "flavor")?)?)?;
    let image = nullable(request.get("image"), Image::read)?;
    let num_instances = request.get("num_instances").map_or(Ok(1), integer)?;
    let instance_uuid = key(request, "instance_uuid")?.text();
    Ok(RequestSpec {
        num_instances,
        instance_uuid,
        project_id: nullable_string(request.get("project_id"))?,
        user_id: nullable_string(request.get("user_id"))?,
        availability_zone: nullable_string(request.get("availability_zone"))?,
        flavor,
        image,
        numa_topology: nullable(request.get("numa_topology"), topology)?,
        pci_requests: nullable(request.get("pci_requests"), |all| {
            list(all, |one| pci_request(dict(one)?))
        })?,
        ignore_hosts: strings(request, "ignore_hosts")?,
        force_hosts: strings(request, "force_hosts")?,
        force_nodes: strings(request, "force_nodes")?,
        limits: limits(get(request, "limits"))?,
        is_bfv: request.get("is_bfv").is_some_and(Value::truth),
        instance_group: nullable(request.get("instance_group"), group)?,
        scheduler_hints: match request.get("scheduler_hints") {
            None => Some(Default::default()),
            some => nullable(some, |hints| map(hints, |values| list(values, string)))?,
        },
        requested_destination: nullable(request.get("requested_destination"), |value| {
            destination(dict(value)?, cells)
        })?,
        requested_resources: match get(request, "requested_resources") {
            None => Vec::new(),
            Some(groups) => list(groups, |one| resources(dict(one)?))?,
        },
        network_metadata: nullable(request.get("network_metadata"), networks)?,
        level: Default::default(),
    })
}

fn strings(object: &Dict<Value>, name: &str) -> Result<Option<Vec<String>>, NovaException> {
    nullable(object.get(name), |value| list(value, string))
}

fn flavor(flavor: &Dict<Value>) -> Result<Flavor, NovaException> {
    let name = key(flavor, "name")?;
    let or_zero = |name: &str| flavor.get(name).map_or(Ok(0), integer);
    Ok(Flavor {
        name: string(name)?,
        flavorid: string(flavor.get("flavorid").unwrap_or(name))?,
        vcpus: integer(key(flavor, "vcpus")?)?,
        memory_mb: integer(key(flavor, "memory_mb")?)?,
        root_gb: integer(key(flavor, "root_gb")?)?,
        ephemeral_gb: or_zero("ephemeral_gb")?,
        swap: or_zero("swap")?,
        extra_specs: nullable(flavor.get("extra_specs"), |specs| map(specs, string))?,
    })
}

fn limits(
    value: Option<&Value>,
) -> Result<std::collections::BTreeMap<String, serde_json::Value>, NovaException> {
    let Some(value) = value else {
        return Ok(Default::default());
    };
    let mut limits = std::collections::BTreeMap::new();
    for (name, value) in dict(value)?.iter() {
        if matches!(name.as_str(), "vcpu" | "disk_gb" | "memory_mb") {
            nullable_integer(Some(value))?;
        }
        limits.insert(name.clone(), to_json(value));
    }
    Ok(limits)
}

fn group(value: &Value) -> Result<InstanceGroup, NovaException> {
    let group = dict(value)?;
    Ok(InstanceGroup {
        uuid: key(group, "uuid")?.text(),
        policy: string(key(group, "policy")?)?,
        members: list(key(group, "members")?, string)?,
        hosts: list(key(group, "hosts")?, string)?,
        rules: match get(group, "rules") {
            None => Default::default(),
            Some(rules) => map(rules, |value| Ok(value.text()))?,
        },
    })
}

fn destination(given: &Dict<Value>, cells: &[String]) -> Result<Destination, NovaException> {
    let cell = match get(given, "cell").filter(|cell| cell.truth()) {
        None => None,
        Some(Value::Str(uuid)) if cells.contains(uuid) => Some(uuid.clone()),
        Some(other) => {
            let message = format!("there is no cell {}", other.text());
            return Err(NovaException::new("KeyError", message));
        }
    };
    Ok(Destination {
        // A host cannot be null, a node can.
        host: given.get("host").map(|v| string(v).map(Some)).transpose()?,
        node: given
            .get("node")
            .map(|v| nullable_string(Some(v)))
            .transpose()?,
        cell,
        allow_cross_cell_move: given.get("allow_cross_cell_move").map(Value::truth),
        aggregates: given
            .get("aggregates")
            .map(|v| nullable(Some(v), |v| list(v, string)))
            .transpose()?,
        forbidden_aggregates: given
            .get("forbidden_aggregates")
            .map(|v| match v {
                Value::List(_) => Ok(list(v, string)?.into_iter().collect()),
                other => Err(type_error(format!("a {} is no list", other.class()))),
            })
            .transpose()?,
    })
}

fn resources(given: &Dict<Value>) -> Result<RequestGroup, NovaException> {
    let traits = |name: &str| -> Result<BTreeSet<String>, NovaException> {
        match given.get(name) {
            None => Ok(BTreeSet::new()),
            Some(value) => Ok(list(value, string)?.into_iter().collect()),
        }
    };
    Ok(RequestGroup {
        use_same_provider: given.get("use_same_provider").is_none_or(Value::truth),
        requester_id: nullable_string(Some(key(given, "requester_id")?))?,
        resources: match given.get("resources") {
            None => Default::default(),
            Some(amounts) => map(amounts, integer)?,
        },
        required_traits: traits("required_traits")?,
        forbidden_traits: traits("forbidden_traits")?,
        provider_uuids: match given.get("provider_uuids") {
            None | Some(Value::None) => Vec::new(),
            Some(uuids) => list(uuids, |uuid| Ok(uuid.text()))?,
        },
        ..RequestGroup::default()
    })
}

fn topology(value: &Value) -> Result<InstanceNumaTopology, NovaException> {
    let topology = dict(value)?;
    Ok(InstanceNumaTopology {
        cells: list(key(topology, "cells")?, |cell| numa_cell(dict(cell)?))?,
        emulator_threads_policy: nullable(topology.get("emulator_threads_policy"), |value| {
            one_of(value, &["isolate", "share"])
        })?,
    })
}

fn numa_cell(cell: &Dict<Value>) -> Result<InstanceNumaCell, NovaException> {
    Ok(InstanceNumaCell {
        id: integer(key(cell, "id")?)?,
        cpuset: integers(key(cell, "cpuset")?)?,
        pcpuset: integers(key(cell, "pcpuset")?)?,
        memory: integer(key(cell, "memory")?)?,
        pagesize: nullable_integer(cell.get("pagesize"))?,
        cpu_policy: nullable(cell.get("cpu_policy"), |value| {
            one_of(value, &["dedicated", "shared", "mixed"])
        })?,
        cpu_thread_policy: nullable(cell.get("cpu_thread_policy"), |value| {
            one_of(value, &["prefer", "isolate", "require"])
        })?,
        cpuset_reserved: get(cell, "cpuset_reserved")
            .filter(|value| value.truth())
            .map(integers)
            .transpose()?,
        cpu_pinning: None,
    })
}

fn pci_request(request: &Dict<Value>) -> Result<PciRequest, NovaException> {
    let spec = |value: &Value| match value {
        Value::Dict(tags) => tags
            .iter()
            .map(|(name, value)| {
                let text = nullable_string(Some(value))?;
                Ok((
                    name.clone(),
                    text.map_or(serde_json::Value::Null, Into::into),
                ))
            })
            .collect(),
        other => Err(value_error(format!("a {} is no dictionary", other.class()))),
    };
    Ok(PciRequest {
        count: wide(key(request, "count")?).map(ebbtide_nova::fields::narrow)?,
        spec: list(key(request, "spec")?, spec)?,
        alias_name: nullable_string(request.get("alias_name"))?,
        request_id: nullable(request.get("request_id"), |id| Ok(id.text()))?,
        requester_id: nullable_string(request.get("requester_id"))?,
        numa_policy: nullable(request.get("numa_policy"), |value| {
            one_of(value, &["required", "legacy", "preferred", "socket"])
        })?,
    })
}
