//! `compute_nodes.pci_stats` (`nova/objects/pci_device_pool.py`, `from_pci_stats`) and
//! `pci_devices` (`nova/objects/pci_device.py`).

use super::primitive::fields;
use crate::dialect::{Dialect, RowReader};
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{integer, key, list, map, nullable_integer, nullable_string, string};
use ebbtide_nova::hosts::from_dict;
use ebbtide_nova::model::{PciDevice, PciPool};
use ebbtide_nova::python::{Dict, Value, json};
use sea_orm::{DbErr, QueryResult};
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

/// What is selected of `pci_devices AS p`.
pub(crate) fn device_columns(dialect: Dialect) -> String {
    let node = dialect.int("p.numa_node");
    format!(
        "p.instance_uuid, p.address, p.parent_addr, p.vendor_id, p.product_id, p.dev_type, {node}, p.extra_info"
    )
}

/// The instance that holds a device, and the device or what is wrong with its row.
pub(crate) type HeldDevice = (String, Result<PciDevice, String>);

/// Reads a row of [`device_columns`].
pub(crate) fn device(row: &QueryResult) -> Result<HeldDevice, DbErr> {
    let mut columns = RowReader::new(row);
    let mut text = || Ok::<_, DbErr>(columns.text()?.unwrap_or_default());
    let (instance, address) = (text()?, text()?);
    let parent_addr = Some(text()?).filter(|address| !address.is_empty());
    let (vendor_id, product_id, dev_type) = (text()?, text()?, text()?);
    let numa_node = columns.int()?;
    let extra_info = columns.text()?;
    let parent_ifname = match extra_info.as_deref().map(json::loads) {
        None => Ok(None),
        Some(Ok(Value::Dict(info))) => {
            nullable_string(info.get("parent_ifname")).map_err(|fault| fault.to_string())
        }
        Some(Ok(other)) => Err(format!("its extra_info is a {}", other.class())),
        Some(Err(fault)) => Err(format!("its extra_info: {fault}")),
    };
    let named = address.clone();
    let device = parent_ifname.map(|parent_ifname| PciDevice {
        address,
        parent_addr,
        vendor_id,
        product_id,
        dev_type,
        numa_node,
        parent_ifname,
    });
    let wrong = |problem| format!("the row of PCI device {named} cannot be read: {problem}");
    Ok((instance, device.map_err(wrong)))
}
