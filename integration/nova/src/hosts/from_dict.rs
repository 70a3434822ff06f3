//! A host of a case as the rows that Nova would find in its database; what its columns are taken in
//! with serves real rows, too.

use crate::fault::NovaException;
use crate::fields::{
    dict, float, get, integer, key, list, map, nullable, nullable_integer, nullable_string, string,
    type_error, value_error,
};
use crate::hosts::{ComputeRow, Ratios};
use crate::image;
use crate::model::{NetworkMetadata, NumaCell, NumaTopology, PagesTopology, PciPool, Service};
use crate::python::datetime;
use crate::python::{Dict, Value};
use std::collections::BTreeMap;

/// `ComputeNode._from_db_object`.
///
/// # Errors
/// What a field raises for a value that it does not take.
pub fn compute(host: &Dict<Value>, ratios: &Ratios) -> Result<ComputeRow, NovaException> {
    let numa_topology = nullable(host.get("numa_topology"), topology)?;
    let row = ComputeRow {
        host: string(key(host, "host")?)?,
        nodename: string(key(host, "nodename")?)?,
        uuid: string(key(host, "uuid")?)?,
        vcpus: integer(key(host, "vcpus")?)?,
        vcpus_used: integer(key(host, "vcpus_used")?)?,
        memory_mb: integer(key(host, "memory_mb")?)?,
        free_ram_mb: nullable_integer(host.get("free_ram_mb"))?,
        local_gb: integer(key(host, "local_gb")?)?,
        local_gb_used: integer(key(host, "local_gb_used")?)?,
        free_disk_gb: nullable_integer(host.get("free_disk_gb"))?,
        disk_available_least: nullable_integer(host.get("disk_available_least"))?,
        cpu_allocation_ratio: ratio(host, "cpu_allocation_ratio", 4.0, ratios.cpu)?,
        ram_allocation_ratio: ratio(host, "ram_allocation_ratio", 1.0, ratios.ram)?,
        disk_allocation_ratio: ratio(host, "disk_allocation_ratio", 1.0, ratios.disk)?,
        hypervisor_type: string(key(host, "hypervisor_type")?)?,
        hypervisor_version: integer(key(host, "hypervisor_version")?)?,
        cpu_info: nullable_string(host.get("cpu_info"))?,
        host_ip: nullable(host.get("host_ip"), address)?,
        stats: nullable(host.get("stats"), |stats| {
            map::<_, BTreeMap<_, _>>(stats, |value| nullable_string(Some(value)))
        })?,
        supported_instances: nullable(host.get("supported_instances"), |specs| {
            list(specs, hv_spec)
        })?,
        pci_pools: pools(host.get("pci_pools"))?,
        metrics: get(host, "metrics").cloned(),
        numa_topology,
        updated_at: moment_of(host, "updated_at")?,
    };
    integer(key(host, "memory_mb_used")?)?;
    Ok(row)
}

/// NULL and 0.0 mean that the node has none of its own.
fn ratio(host: &Dict<Value>, name: &str, absent: f64, unset: f64) -> Result<f64, NovaException> {
    match host.get(name) {
        None => Ok(absent),
        Some(Value::None) => Ok(unset),
        Some(value) => {
            let own = float(value)?;
            Ok(if own == 0.0 { unset } else { own })
        }
    }
}

/// An IPAddressField.
///
/// # Errors
/// ValueError for what is no address.
pub fn address(value: &Value) -> Result<String, NovaException> {
    match value {
        Value::Str(text) => text
            .parse::<std::net::IpAddr>()
            .map(|ip| ip.to_string())
            .map_err(|_| value_error(format!("{text:?} is no address"))),
        other => Err(value_error(format!("a {} is no address", other.class()))),
    }
}

fn moment_of(object: &Dict<Value>, name: &str) -> Result<Option<i64>, NovaException> {
    nullable(object.get(name), |value| match value {
        Value::Str(text) => {
            datetime::read(text).ok_or_else(|| value_error(format!("{text:?} is no time")))
        }
        other => Err(type_error(format!("a {} is no time", other.class()))),
    })
}

/// `HVSpec.from_list`: architecture, hypervisor type and VM mode, each under its canonical name.
///
/// # Errors
/// IndexError, ValueError, AttributeError or TypeError, as Nova raises them.
pub fn hv_spec(spec: &Value) -> Result<Vec<Option<String>>, NovaException> {
    let Value::List(parts) = spec else {
        return Err(type_error(format!("a {} is no triple", spec.class())));
    };
    let part = |at: usize| -> Result<String, NovaException> {
        match parts.get(at) {
            None => Err(NovaException::new("IndexError", "a triple is too short")),
            Some(Value::Str(text)) => Ok(text.clone()),
            Some(Value::None) => Err(value_error("a triple holds null")),
            Some(other) => Err(NovaException::new(
                "AttributeError",
                format!("a {} has no lower case", other.class()),
            )),
        }
    };
    let known = |name: Option<&'static str>, at: usize| {
        name.map(|name| Some(name.to_owned()))
            .ok_or_else(|| value_error(format!("part {at} of a triple is not known")))
    };
    Ok(vec![
        known(image::architecture(&part(0)?), 0)?,
        known(image::hv_type(&part(1)?), 1)?,
        known(image::vm_mode(&part(2)?), 2)?,
    ])
}

/// `PciDevicePool.from_dict`: everything that is not a field is a tag.
///
/// # Errors
/// KeyError for a missing field, TypeError for what is neither a list nor a dictionary.
pub fn pools(value: Option<&Value>) -> Result<Vec<PciPool>, NovaException> {
    match value {
        None | Some(Value::None) => Ok(Vec::new()),
        Some(Value::List(pools)) => pools.iter().map(|p| pool(dict(p)?)).collect(),
        Some(Value::Dict(one)) if one.is_empty() => Ok(Vec::new()),
        Some(Value::Dict(one)) => Ok(vec![pool(one)?]),
        Some(other) => Err(type_error(format!("PCI pools are a {}", other.class()))),
    }
}

fn pool(pool: &Dict<Value>) -> Result<PciPool, NovaException> {
    const FIELDS: [&str; 4] = ["vendor_id", "product_id", "numa_node", "count"];
    Ok(PciPool {
        vendor_id: string(key(pool, "vendor_id")?)?,
        product_id: string(key(pool, "product_id")?)?,
        numa_node: nullable_integer(pool.get("numa_node"))?,
        count: integer(key(pool, "count")?)?,
        tags: pool
            .iter()
            .filter(|(name, _)| !FIELDS.contains(&name.as_str()))
            .map(|(name, value)| {
                let text = nullable_string(Some(value))?;
                Ok((
                    name.clone(),
                    text.map_or(serde_json::Value::Null, Into::into),
                ))
            })
            .collect::<Result<_, NovaException>>()?,
    })
}

fn topology(value: &Value) -> Result<NumaTopology, NovaException> {
    let cells = key(dict(value)?, "cells")?;
    Ok(NumaTopology {
        cells: list(cells, |value| cell(dict(value)?))?,
    })
}

fn cell(cell: &Dict<Value>) -> Result<NumaCell, NovaException> {
    // Null takes the field's default, too.
    let or_zero = |name: &str| Ok(nullable_integer(cell.get(name))?.unwrap_or(0));
    Ok(NumaCell {
        id: integer(key(cell, "id")?)?,
        cpuset: integers(key(cell, "cpuset")?)?,
        pcpuset: integers(key(cell, "pcpuset")?)?,
        memory: integer(key(cell, "memory")?)?,
        cpu_usage: or_zero("cpu_usage")?,
        memory_usage: or_zero("memory_usage")?,
        pinned_cpus: cell
            .get("pinned_cpus")
            .map_or_else(|| Ok(Default::default()), integers)?,
        siblings: cell
            .get("siblings")
            .map_or(Ok(Vec::new()), |siblings| list(siblings, integers))?,
        mempages: cell
            .get("mempages")
            .map_or(Ok(Vec::new()), |pages| list(pages, |p| page(dict(p)?)))?,
        socket: nullable_integer(cell.get("socket"))?,
        network_metadata: nullable(cell.get("network_metadata"), networks)?,
    })
}

fn page(page: &Dict<Value>) -> Result<PagesTopology, NovaException> {
    let or_zero = |name: &str| Ok(nullable_integer(page.get(name))?.unwrap_or(0));
    Ok(PagesTopology {
        size_kb: integer(key(page, "size_kb")?)?,
        total: integer(key(page, "total")?)?,
        used: or_zero("used")?,
        reserved: or_zero("reserved")?,
    })
}

/// A set of numbers.
///
/// # Errors
/// Those of the elements; TypeError if it is no list.
pub fn integers<C: FromIterator<i64>>(value: &Value) -> Result<C, NovaException> {
    match value {
        Value::List(items) => items.iter().map(integer).collect(),
        other => Err(type_error(format!("a {} is no list", other.class()))),
    }
}

/// `NetworkMetadata`.
///
/// # Errors
/// KeyError for a missing part.
pub fn networks(value: &Value) -> Result<NetworkMetadata, NovaException> {
    let networks = dict(value)?;
    Ok(NetworkMetadata {
        physnets: list(key(networks, "physnets")?, string)?
            .into_iter()
            .collect(),
        tunneled: key(networks, "tunneled")?.truth(),
    })
}

/// `Service._from_db_object`.
///
/// # Errors
/// What a field raises for a value that it does not take.
pub fn service(service: &Dict<Value>) -> Result<Service, NovaException> {
    let flag = |name: &str| match service.get(name) {
        None => Ok(false),
        Some(Value::None) => Err(value_error(format!("{name} is null"))),
        Some(value) => Ok(value.truth()),
    };
    Ok(Service {
        disabled: flag("disabled")?,
        disabled_reason: nullable_string(service.get("disabled_reason"))?,
        forced_down: flag("forced_down")?,
        last_seen_up: moment_of(service, "last_seen_up")?,
        created_at: moment_of(service, "created_at")?,
    })
}
