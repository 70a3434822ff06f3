//! Requests of callers that send dictionaries instead of an object: versions 4.0 to 4.2
//! (`RequestSpec.from_primitives`).

use super::{Retry, ScheduleRequest, destination, flavor, hints, limits, numa};
use crate::error::{ObjectError, Result};
use crate::read::{self, member, or_default};
use ebbtide_nova::image::Image;
use ebbtide_nova::model::{Flavor, InstanceGroup, RequestSpec};
use ebbtide_nova::python::{Dict, Value, json};
use std::collections::BTreeMap;

/// Reads `request_spec` and `filter_properties` of the arguments.
pub(super) fn from_primitives(args: &Dict<Value>) -> Result<ScheduleRequest> {
    let of = |name: &str| match args.get(name) {
        Some(Value::Dict(dict)) => Ok(dict),
        _ => Err(
            ObjectError::value("there is no spec_obj, and this is no object either").within(name),
        ),
    };
    let spec = of("request_spec")?;
    let mut request = from_spec(spec).map_err(|error| error.within("request_spec"))?;
    add_filter_properties(&mut request, of("filter_properties")?)
        .map_err(|error| error.within("filter_properties"))?;
    Ok(request)
}

fn from_spec(given: &Dict<Value>) -> Result<ScheduleRequest> {
    let mut spec = RequestSpec {
        num_instances: member(given, "num_instances", read::quantity)?.unwrap_or(1),
        image: member(given, "image", image)?,
        ..RequestSpec::default()
    };
    spec.flavor = member(given, "instance_type", flavor_of)?.ok_or_else(|| {
        ObjectError::here(crate::error::ObjectProblem::Missing).within("instance_type")
    })?;
    member(given, "instance_properties", |instance| {
        let instance = match object_data(instance) {
            Some(data) => data,
            None => read::dict(instance)?,
        };
        spec.instance_uuid = member(instance, "uuid", read::text)?.unwrap_or_default();
        spec.project_id = member(instance, "project_id", read::text)?;
        spec.user_id = member(instance, "user_id", read::text)?;
        spec.availability_zone = member(instance, "availability_zone", read::text)?;
        spec.pci_requests = member(instance, "pci_requests", numa::pci_requests)?;
        spec.numa_topology = member(instance, "numa_topology", |topology| match topology {
            Value::Str(text) => numa::topology(&json::loads(text).map_err(ObjectError::refused)?),
            object => numa::topology(object),
        })?;
        Ok(())
    })?;
    Ok(ScheduleRequest {
        spec,
        ..ScheduleRequest::default()
    })
}

fn add_filter_properties(request: &mut ScheduleRequest, given: &Dict<Value>) -> Result<()> {
    let spec = &mut request.spec;
    spec.ignore_hosts = member(given, "ignore_hosts", read::texts)?;
    spec.force_hosts = member(given, "force_hosts", read::texts)?;
    spec.force_nodes = member(given, "force_nodes", read::texts)?;
    spec.scheduler_hints = match given.get("scheduler_hints") {
        None => Some(BTreeMap::new()),
        Some(value) => {
            read::nullable(value, hints).map_err(|error| error.within("scheduler_hints"))?
        }
    };
    spec.limits = member(given, "limits", |value| match object_data(value) {
        Some(_) => limits(value),
        None => read::map(value, |limit| Ok(ebbtide_nova::python::to_json(limit))),
    })?
    .unwrap_or_default();
    let group = member(given, "instance_group", flavor::group)?;
    if let Some((group, hosts_set)) = group {
        spec.instance_group = Some(group);
        request.group_hosts_unset = !hosts_set;
    } else if matches!(given.get("group_updated"), Some(Value::Bool(true))) {
        let set = |name: &str| or_default(given, name, read::texts);
        request.spec.instance_group = Some(InstanceGroup {
            uuid: member(given, "group_uuid", read::text)?.unwrap_or_default(),
            policy: set("group_policies")?
                .into_iter()
                .next()
                .unwrap_or_default(),
            rules: BTreeMap::new(),
            members: set("group_members")?,
            hosts: set("group_hosts")?,
        });
    }
    let to = member(given, "requested_destination", destination::destination)?;
    if let Some((to, cell)) = to {
        request.spec.requested_destination = Some(to);
        request.cell = cell;
    }
    request.retry = member(given, "retry", retry)?;
    Ok(())
}

/// The fields of a versioned object, if it is one.
fn object_data(value: &Value) -> Option<&Dict<Value>> {
    match value {
        Value::Dict(envelope) => match envelope.get("nova_object.data") {
            Some(Value::Dict(data)) => Some(data),
            _ => None,
        },
        _ => None,
    }
}

/// An image as Glance tells it, or an object. An empty dictionary is an image without properties.
fn image(value: &Value) -> Result<Image> {
    match object_data(value) {
        Some(_) => flavor::image(value),
        None => Image::read(value).map_err(ObjectError::refused),
    }
}

fn flavor_of(value: &Value) -> Result<Flavor> {
    if object_data(value).is_some() {
        return flavor::flavor(value);
    }
    let given = read::dict(value)?;
    let number = |name: &str| or_default(given, name, read::quantity);
    Ok(Flavor {
        name: member(given, "name", read::text)?.unwrap_or_default(),
        flavorid: member(given, "flavorid", read::text)?.unwrap_or_default(),
        vcpus: number("vcpus")?,
        memory_mb: number("memory_mb")?,
        root_gb: number("root_gb")?,
        ephemeral_gb: number("ephemeral_gb")?,
        swap: number("swap")?,
        extra_specs: member(given, "extra_specs", |specs| read::map(specs, read::text))?,
    })
}

/// `{"num_attempts": 2, "hosts": [["host", "node"]]}`.
fn retry(value: &Value) -> Result<Retry> {
    let given = read::dict(value)?;
    let pair = |value: &Value| match read::texts(value)?.as_slice() {
        [host, node] => Ok((host.clone(), node.clone())),
        _ => Err(ObjectError::value("is no pair of host and node")),
    };
    Ok(Retry {
        num_attempts: member(given, "num_attempts", read::integer)?.unwrap_or(0),
        hosts: member(given, "hosts", |hosts| read::list(hosts, pair))?.unwrap_or_default(),
    })
}
