//! `compute_nodes.numa_topology` (`nova/objects/numa.py`).
//!
//! A field that an older compute did not write is not set in Nova, and raises when
//! NUMATopologyFilter touches it; here it is empty: such a host has no CPUs of that kind.

use super::primitive::fields;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{dict, get, integer, key, list, nullable_integer, string};
use ebbtide_nova::hosts::from_dict::integers;
use ebbtide_nova::image::cpu_spec;
use ebbtide_nova::model::{CpuSet, NetworkMetadata, NumaCell, NumaTopology, PagesTopology};
use ebbtide_nova::python::{Dict, Value, json};
use std::collections::BTreeSet;

/// Takes a column in.
///
/// # Errors
/// What Nova raises.
pub(crate) fn topology(text: &str) -> Result<NumaTopology, NovaException> {
    let value = json::loads(text)?;
    let cells = if text.contains("nova_object.name") {
        let data = fields(&value, "NUMATopology", (1, 2))?;
        or_empty(data, "cells", |cells| {
            list(cells, |value| cell(fields(value, "NUMACell", (1, 5))?))
        })?
    } else {
        // From before Liberty (`NUMATopology.from_legacy_object`).
        let Value::Dict(value) = &value else {
            return Err(NovaException::new(
                "AttributeError",
                format!("a {} is no object", value.class()),
            ));
        };
        or_empty(value, "cells", |cells| {
            list(cells, |value| legacy(dict(value)?))
        })?
    };
    Ok(NumaTopology { cells })
}

fn or_empty<T: Default>(
    data: &Dict<Value>,
    name: &str,
    read: impl Fn(&Value) -> Result<T, NovaException>,
) -> Result<T, NovaException> {
    data.get(name).map_or_else(|| Ok(T::default()), read)
}

fn or_zero(data: &Dict<Value>, name: &str) -> Result<i64, NovaException> {
    Ok(nullable_integer(data.get(name))?.unwrap_or(0))
}

fn cell(data: &Dict<Value>) -> Result<NumaCell, NovaException> {
    Ok(NumaCell {
        id: integer(key(data, "id")?)?,
        cpuset: or_empty(data, "cpuset", integers)?,
        pcpuset: or_empty(data, "pcpuset", integers)?,
        memory: or_empty(data, "memory", integer)?,
        cpu_usage: or_zero(data, "cpu_usage")?,
        memory_usage: or_zero(data, "memory_usage")?,
        pinned_cpus: or_empty(data, "pinned_cpus", integers)?,
        siblings: or_empty(data, "siblings", |sets| list(sets, integers))?,
        mempages: or_empty(data, "mempages", |pages| {
            list(pages, |value| {
                page(fields(value, "NUMAPagesTopology", (1, 1))?)
            })
        })?,
        socket: nullable_integer(data.get("socket"))?,
        network_metadata: match get(data, "network_metadata") {
            None => None,
            Some(value) => Some(networks(fields(value, "NetworkMetadata", (1, 0))?)?),
        },
    })
}

fn page(data: &Dict<Value>) -> Result<PagesTopology, NovaException> {
    Ok(PagesTopology {
        size_kb: or_empty(data, "size_kb", integer)?,
        total: or_empty(data, "total", integer)?,
        used: or_zero(data, "used")?,
        reserved: or_zero(data, "reserved")?,
    })
}

fn networks(data: &Dict<Value>) -> Result<NetworkMetadata, NovaException> {
    Ok(NetworkMetadata {
        physnets: or_empty(data, "physnets", |names| list(names, string))?
            .into_iter()
            .collect(),
        tunneled: get(data, "tunneled").is_some_and(Value::truth),
    })
}

fn legacy(cell: &Dict<Value>) -> Result<NumaCell, NovaException> {
    let memory = |name: &str| match get(cell, "mem") {
        None => Ok(0),
        Some(memory) => or_empty(dict(memory)?, name, integer),
    };
    let cpus: BTreeSet<i64> = match get(cell, "cpus") {
        None => BTreeSet::new(),
        Some(text) => cpu_spec(&text.text())?
            .into_iter()
            .map(|cpu| i64::try_from(cpu).unwrap_or(i64::MAX))
            .collect(),
    };
    Ok(NumaCell {
        id: integer(cell.get("id").unwrap_or(&Value::None))?,
        cpuset: cpus,
        pcpuset: CpuSet::default(),
        memory: memory("total")?,
        cpu_usage: or_zero(cell, "cpu_usage")?,
        memory_usage: memory("used")?,
        pinned_cpus: BTreeSet::new(),
        siblings: Vec::new(),
        mempages: Vec::new(),
        socket: None,
        network_metadata: None,
    })
}
