//! `compute_nodes.pci_stats` (`nova/objects/pci_device_pool.py`, `from_pci_stats`).

use super::primitive::fields;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{integer, key, list, map, nullable_integer, nullable_string, string};
use ebbtide_nova::hosts::from_dict;
use ebbtide_nova::model::PciPool;
use ebbtide_nova::python::{Dict, Value, json};
use std::collections::BTreeMap;

/// Takes a column in. What is no JSON means no devices, as in Nova.
///
/// # Errors
/// What Nova raises.
pub(crate) fn pools(text: Option<&str>) -> Result<Vec<PciPool>, NovaException> {
    let Some(value) = text.and_then(|text| json::loads(text).ok()) else {
        return Ok(Vec::new());
    };
    if !value.truth() {
        return Ok(Vec::new());
    }
    if let Value::Dict(primitive) = &value
        && primitive.get("nova_object.namespace").is_some()
    {
        let data = fields(&value, "PciDevicePoolList", (1, 1))?;
        return match data.get("objects") {
            None => Ok(Vec::new()),
            Some(pools) => list(pools, |value| pool(fields(value, "PciDevicePool", (1, 1))?)),
        };
    }
    if let Value::Str(_) = value {
        return Err(NovaException::new("AttributeError", "PCI pools are a text"));
    }
    from_dict::pools(Some(&value))
}

fn pool(data: &Dict<Value>) -> Result<PciPool, NovaException> {
    Ok(PciPool {
        vendor_id: string(key(data, "vendor_id")?)?,
        product_id: string(key(data, "product_id")?)?,
        numa_node: nullable_integer(data.get("numa_node"))?,
        count: integer(key(data, "count")?)?,
        tags: match data.get("tags") {
            None => BTreeMap::new(),
            Some(tags) => map(tags, |tag| {
                let text = nullable_string(Some(tag))?;
                Ok(text.map_or(serde_json::Value::Null, Into::into))
            })?,
        },
    })
}
