//! What weighers read of Nova's host states.

use crate::fault::NovaException;
use crate::filters::PreemptibleHold;
use crate::model::{HostState, Image, ImageProps, InstanceFacts, Options, RequestSpec};
use crate::python::{Dict, Value};
use ebbtide_model::GroupPolicy;
use ebbtide_weigher_api::{Column, MetricColumn, MetricValue, PropertyColumn};
use std::collections::{BTreeMap, BTreeSet};

/// Fills the columns that a weigher needs.
///
/// # Errors
/// TypeError where Nova would calculate with None.
pub(super) fn fill(
    needs: &[Column],
    hosts: &[&HostState],
    spec: &RequestSpec,
) -> Result<[Vec<f64>; Column::COUNT], NovaException> {
    let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
    for column in needs {
        columns[column.index()] = one(*column, hosts, spec)?;
    }
    Ok(columns)
}

/// Turns columns of h_f into those of h_n: what preemptible instances hold is free.
pub(super) fn hide(columns: &mut [Vec<f64>; Column::COUNT], hidden: &[PreemptibleHold]) {
    let mut add = |column: Column, more: fn(&PreemptibleHold) -> f64| {
        for (value, held) in columns[column.index()].iter_mut().zip(hidden) {
            *value += more(held);
        }
    };
    add(Column::FreeVcpus, |held| held.vcpus as f64);
    add(Column::FreeRamMb, |held| held.memory_mb as f64);
    add(Column::FreeDiskMb, |held| held.disk_gb as f64 * 1024.0);
    add(Column::NumInstances, |held| -(held.instances as f64));
}

fn one(
    column: Column,
    hosts: &[&HostState],
    spec: &RequestSpec,
) -> Result<Vec<f64>, NovaException> {
    if column == Column::GroupMembers {
        return Ok(group_members(hosts, spec));
    }
    hosts
        .iter()
        .map(|host| of_host(column, host, spec))
        .collect()
}

fn of_host(column: Column, host: &HostState, spec: &RequestSpec) -> Result<f64, NovaException> {
    Ok(match column {
        Column::FreeRamMb => free_ram_mb(host)?,
        Column::FreeVcpus => free_vcpus(host)?,
        Column::FreeDiskMb => host.free_disk_mb as f64,
        Column::NumInstances => host.num_instances as f64,
        Column::NumIoOps => host.num_io_ops as f64,
        Column::FailedBuilds => host.failed_builds as f64,
        Column::HypervisorVersion => host.hypervisor_version.unwrap_or(0) as f64,
        Column::FreePciDevices => free_devices(host),
        Column::CellPreference => cell_preference(host, spec),
        // Nova knows no preemptible instances.
        Column::GroupMembers
        | Column::NumPreemptible
        | Column::PreemptionNeeded
        | Column::EvictionCost
        | Column::EvictionVictims
        | Column::NormalRoom => 0.0,
    })
}

/// # Errors
/// TypeError: `max(None, 0)`.
pub(crate) fn free_ram_mb(host: &HostState) -> Result<f64, NovaException> {
    host.free_ram_mb.map(|free| free as f64).ok_or_else(|| {
        NovaException::new("TypeError", format!("free_ram_mb of {} is NULL", host.host))
    })
}

/// # Errors
/// TypeError: `int * None`. A node that was never updated has no ratio.
pub(crate) fn free_vcpus(host: &HostState) -> Result<f64, NovaException> {
    let ratio = host.cpu_allocation_ratio.ok_or_else(|| {
        NovaException::new(
            "TypeError",
            format!("{} has no CPU allocation ratio", host.host),
        )
    })?;
    Ok(host.vcpus_total as f64 * ratio - host.vcpus_used as f64)
}

pub(crate) fn free_devices(host: &HostState) -> f64 {
    let pools = host.pci_pools.iter().flatten();
    pools.map(|pool| i128::from(pool.count)).sum::<i128>() as f64
}

/// Whether hosts of one cell are preferred for this request.
pub(crate) fn prefers_a_cell(spec: &RequestSpec) -> bool {
    preferred_cell(spec).is_some()
}

fn preferred_cell(spec: &RequestSpec) -> Option<&String> {
    let destination = spec.requested_destination.as_ref();
    destination
        .filter(|destination| destination.allow_cross_cell_move == Some(true))
        .and_then(|destination| destination.cell.as_ref())
}

pub(crate) fn cell_preference(host: &HostState, spec: &RequestSpec) -> f64 {
    match preferred_cell(spec) {
        None => 0.0,
        Some(cell) if *cell == host.cell_uuid => 1.0,
        Some(_) => -1.0,
    }
}

/// The policy of the request's group, if a weigher cares for it.
pub(crate) fn soft_policy(spec: &RequestSpec) -> Option<GroupPolicy> {
    match spec.instance_group.as_ref()?.policy.as_str() {
        "soft-affinity" => Some(GroupPolicy::SoftAffinity),
        "soft-anti-affinity" => Some(GroupPolicy::SoftAntiAffinity),
        _ => None,
    }
}

/// The policy of the request's group, for filters of the operator's.
pub(super) fn policy(spec: &RequestSpec) -> Option<GroupPolicy> {
    match spec.instance_group.as_ref()?.policy.as_str() {
        "affinity" => Some(GroupPolicy::Affinity),
        "anti-affinity" => Some(GroupPolicy::AntiAffinity),
        _ => soft_policy(spec),
    }
}

/// Members on each host; counted only where a weigher would use the number.
fn group_members(hosts: &[&HostState], spec: &RequestSpec) -> Vec<f64> {
    match soft_policy(spec) {
        Some(_) => members(hosts, spec),
        None => vec![0.0; hosts.len()],
    }
}

/// Members of the request's group on each host.
pub(super) fn members(hosts: &[&HostState], spec: &RequestSpec) -> Vec<f64> {
    let group = spec.instance_group.iter();
    let members: BTreeSet<&String> = group.flat_map(|group| &group.members).collect();
    hosts
        .iter()
        .map(|host| {
            members
                .iter()
                .filter(|m| host.instances.contains_key(**m))
                .count() as f64
        })
        .collect()
}

/// The metrics that the setting names. Of two of the same name on a host the last counts.
pub(super) fn metrics(hosts: &[&HostState], options: &Options) -> Vec<MetricColumn> {
    let names: BTreeSet<&String> = options
        .metrics_weight_setting
        .iter()
        .map(|(n, _)| n)
        .collect();
    let value = |host: &HostState, name: &str| {
        let mut metrics = host.metrics.iter().flatten().rev();
        match metrics.find(|metric| metric.name == name) {
            None => MetricValue::Missing,
            Some(metric) => metric.value.map_or(MetricValue::Unset, MetricValue::Known),
        }
    };
    names
        .into_iter()
        .map(|name| MetricColumn {
            name: name.clone(),
            values: hosts.iter().map(|host| value(host, name)).collect(),
        })
        .collect()
}

/// How often each property of the request's image, with its value as text, is found on the
/// instances of each host.
///
/// # Errors
/// ValueError for an instance whose image has a property that Nova does not take.
pub(super) fn image_properties(
    hosts: &[&HostState],
    spec: &RequestSpec,
    options: &Options,
) -> Result<Vec<PropertyColumn>, NovaException> {
    // Nova does not look at instances at all while the configured multiplier is 0, whatever
    // aggregates say.
    if options.image_props_weight_multiplier == Some(0.0) {
        return Ok(Vec::new());
    }
    let wanted = match &spec.image {
        None => BTreeMap::new(),
        Some(image) => as_text(&image.properties),
    };
    let mut columns: Vec<PropertyColumn> = wanted
        .keys()
        .map(|name| PropertyColumn {
            name: (*name).to_owned(),
            counts: vec![0.0; hosts.len()],
        })
        .collect();
    for (at, host) in hosts.iter().enumerate() {
        for instance in host.instances.values() {
            let present = as_text(&instance_image(instance)?.properties);
            for (column, (name, value)) in columns.iter_mut().zip(&wanted) {
                if present.get(name) == Some(value) {
                    column.counts[at] += 1.0;
                }
            }
        }
    }
    Ok(columns)
}

fn as_text(properties: &ImageProps) -> BTreeMap<&'static str, String> {
    properties
        .iter()
        .map(|(name, value)| (name, value.text()))
        .collect()
}

/// Keys of an instance's system metadata that belong to the image itself (`SM_INHERITABLE_KEYS`).
const INHERITED: [&str; 4] = ["min_ram", "min_disk", "disk_format", "container_format"];
/// Keys that are left out (`SM_SKIP_KEYS`).
const SKIPPED: [&str; 3] = [
    "signature_verified",
    "img_mappings",
    "img_block_device_mapping",
];

/// The image of which an instance was made (`ImageMeta.from_instance`).
fn instance_image(instance: &InstanceFacts) -> Result<Image, NovaException> {
    if instance.orphan {
        return Err(NovaException::new(
            "OrphanedObjectError",
            "the metadata of an instance that was just placed cannot be loaded",
        ));
    }
    let mut image: Dict<Value> = Dict::default();
    let mut properties: Dict<Value> = Dict::default();
    for (name, value) in &instance.image_properties {
        // Metadata are text or null.
        let value = match Value::from(value) {
            Value::None => continue,
            value @ Value::Str(_) => value,
            value => Value::Str(value.text()),
        };
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if INHERITED.contains(&name.as_str()) {
            image.insert(name, value);
        } else {
            properties.insert(name, value);
        }
    }
    image.insert("properties", Value::Dict(properties));
    Image::read(&Value::Dict(image))
}
