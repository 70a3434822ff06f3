//! What a host state takes from its compute node's row (`HostState._update_from_compute_node`).

use super::row::ComputeRow;
use crate::fault::NovaException;
use crate::fields::{self, narrow, type_error, value_error, wide};
use crate::model::{HostState, Metric};
use crate::python::{Dict, Value, number};
use std::collections::BTreeMap;

/// Names that `MonitorMetric` takes.
const METRICS: [&str; 12] = [
    "cpu.frequency",
    "cpu.user.time",
    "cpu.kernel.time",
    "cpu.idle.time",
    "cpu.iowait.time",
    "cpu.user.percent",
    "cpu.kernel.percent",
    "cpu.idle.percent",
    "cpu.iowait.percent",
    "cpu.percent",
    "numa.membw.max",
    "numa.membw.current",
];

/// Takes a row in.
///
/// # Errors
/// NotImplementedError for statistics or supported instances that are NULL, ValueError or TypeError
/// for counters that are no numbers and for metrics that are none. All of them fail the whole
/// request.
pub fn update(state: &mut HostState, row: &ComputeRow) -> Result<(), NovaException> {
    let Some(free_disk_gb) = row.free_disk_gb else {
        return Ok(());
    };
    if let (Some(ours), Some(theirs)) = (state.updated_at, row.updated_at)
        && ours > theirs
    {
        return Ok(());
    }
    let free_gb = row
        .disk_available_least
        .map_or(free_disk_gb, |least| least.min(free_disk_gb));
    state.uuid = Some(row.uuid.clone());
    state.disk_mb_used = row.local_gb_used.saturating_mul(1024);
    state.free_ram_mb = row.free_ram_mb;
    state.total_usable_ram_mb = row.memory_mb;
    state.total_usable_disk_gb = row.local_gb;
    state.free_disk_mb = free_gb.saturating_mul(1024);
    state.vcpus_total = row.vcpus;
    state.vcpus_used = row.vcpus_used;
    state.updated_at = row.updated_at;
    state.numa_topology.clone_from(&row.numa_topology);
    let mut pools = row.pci_pools.clone();
    pools.sort_by_key(|pool| pool.tags.len());
    state.pci_pools = Some(pools);
    state.host_ip.clone_from(&row.host_ip);
    state.hypervisor_type = Some(row.hypervisor_type.clone());
    state.hypervisor_version = Some(row.hypervisor_version);
    state.cpu_info.clone_from(&row.cpu_info);
    state.supported_instances = Some(
        row.supported_instances
            .clone()
            .ok_or_else(|| unloaded("supported_hv_specs"))?,
    );
    let stats = row.stats.as_ref().ok_or_else(|| unloaded("stats"))?;
    state.num_instances = counter(stats, "num_instances")?;
    state.num_io_ops = counter(stats, "io_workload")?;
    state.metrics = Some(metrics(row.metrics.as_ref())?);
    state.cpu_allocation_ratio = Some(row.cpu_allocation_ratio);
    state.ram_allocation_ratio = Some(row.ram_allocation_ratio);
    state.disk_allocation_ratio = Some(row.disk_allocation_ratio);
    state.failed_builds = counter(stats, "failed_builds")?;
    state.stats = Some(stats.clone());
    Ok(())
}

/// A field that was NULL in the database is not set in the object, and cannot be loaded.
fn unloaded(field: &str) -> NovaException {
    NovaException::new("NotImplementedError", format!("{field} is NULL"))
}

fn counter(stats: &BTreeMap<String, Option<String>>, name: &str) -> Result<i64, NovaException> {
    match stats.get(name) {
        None => Ok(0),
        Some(None) => Err(type_error(format!("{name} in stats is null"))),
        Some(Some(text)) => number::int(text)
            .map(narrow)
            .ok_or_else(|| value_error(format!("{name} in stats is {text:?}"))),
    }
}

fn metrics(rows: Option<&Value>) -> Result<Vec<Metric>, NovaException> {
    match rows {
        None | Some(Value::None) => Ok(Vec::new()),
        Some(Value::List(rows)) => rows.iter().map(|row| metric(fields::dict(row)?)).collect(),
        Some(other) => Err(type_error(format!("metrics are a {}", other.class()))),
    }
}

/// `MonitorMetricList.from_json`: percentages come as fractions and are kept as whole numbers, cut
/// off and not rounded.
fn metric(row: &Dict<Value>) -> Result<Metric, NovaException> {
    let percent = match (row.get("value"), row.get("name")) {
        (Some(_), None) => return Err(NovaException::new("KeyError", "a metric has no name")),
        (Some(_), Some(Value::Str(name))) => name.starts_with("cpu.") && name.ends_with("percent"),
        _ => false,
    };
    let name = match row.get("name") {
        None => String::new(),
        Some(name) => fields::one_of(name, &METRICS)?,
    };
    let value = match row.get("value") {
        None => None,
        Some(value) if percent => Some(hundredfold(value)?),
        Some(Value::None) => return Err(value_error("a metric's value is null")),
        Some(value) => Some(whole(value)?),
    };
    for field in ["timestamp", "source"] {
        if matches!(
            row.get(field),
            Some(Value::None | Value::List(_) | Value::Dict(_))
        ) {
            return Err(value_error(format!("a metric's {field} is null")));
        }
    }
    if let Some(Value::Str(text)) = row.get("timestamp")
        && crate::python::datetime::read(text).is_none()
    {
        return Err(value_error(format!("{text:?} is no time")));
    }
    Ok(Metric { name, value })
}

/// A whole number of any length, as the nearest float: weighers multiply it with one.
fn whole(value: &Value) -> Result<f64, NovaException> {
    let number = wide(value)? as f64;
    Ok(match value {
        Value::Str(text) => number::float(text).unwrap_or(number),
        _ => number,
    })
}

fn hundredfold(value: &Value) -> Result<f64, NovaException> {
    match value {
        Value::Float(fraction) => fields::truncated(fraction * 100.0).map(|n| n as f64),
        Value::Int(n) => Ok(n.saturating_mul(100) as f64),
        Value::Bool(b) => Ok(f64::from(u8::from(*b)) * 100.0),
        // Python repeats text; a digit a hundred times over is a number still.
        Value::Str(text) => whole(&Value::Str(text.repeat(100))),
        // A list a hundred times over is a list still, and int() of one is a TypeError too.
        other => Err(type_error(format!(
            "a metric's value is a {}",
            other.class()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_cut_off_and_not_rounded() {
        assert_eq!(hundredfold(&Value::Float(0.29)), Ok(28.0));
        assert_eq!(hundredfold(&Value::Int(2)), Ok(200.0));
        assert_eq!(hundredfold(&Value::from("7")), Ok(7.777_777_777_777_778e99));
        assert_eq!(
            hundredfold(&Value::Float(f64::NAN)).map_err(|f| f.class),
            Err("ValueError")
        );
    }
}
