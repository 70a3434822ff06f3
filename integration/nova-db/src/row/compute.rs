//! A row of `compute_nodes` (`nova/objects/compute_node.py`, `ComputeNode._from_db_object`).

use super::{numa, pci};
use crate::dialect::{Dialect, RowReader};
use crate::track::Mark;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{map, nullable_string, type_error, value_error};
use ebbtide_nova::hosts::from_dict::{address, hv_spec};
use ebbtide_nova::hosts::{ComputeRow, Ratios};
use ebbtide_nova::python::{Value, json};
use sea_orm::{DbErr, QueryResult};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct ComputeNode {
    /// Database id: what a row is known by. A UUID can come back under another id when a node is
    /// deleted and made again.
    pub id: i64,
    /// UUID, which is also its resource provider's; `None` only in rows that Nova cannot use.
    pub uuid: Option<String>,
    /// Service's host.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub nodename: Option<String>,
    /// Deleted; only changes report such rows.
    pub deleted: bool,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// The row as `ebbtide-nova` takes it, or what Nova raises for it: such a row fails every
    /// request of its cell.
    pub row: Result<Arc<ComputeRow>, NovaException>,
}

/// The columns of a row, not taken in yet: most changed rows were seen before. Times are
/// microseconds since 1970, UTC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ComputeColumns {
    /// Database id.
    pub id: i64,
    pub deleted: bool,
    /// When the row was made.
    pub created_at: Option<i64>,
    /// When it was changed last.
    pub updated_at: Option<i64>,
    /// When it was deleted.
    pub deleted_at: Option<i64>,
    pub uuid: Option<String>,
    /// Service's host.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub nodename: Option<String>,
    /// `vcpus`, `vcpus_used`, `memory_mb`, `free_ram_mb`, `local_gb`, `local_gb_used`,
    /// `free_disk_gb`, `disk_available_least`, `hypervisor_version`.
    pub numbers: [Option<i64>; 9],
    /// Of CPU, memory and disk.
    pub ratios: [Option<f64>; 3],
    /// `hypervisor_type`, `cpu_info`, `supported_instances`, `stats`, `metrics`, `numa_topology`,
    /// `pci_stats`, `host_ip`: most of them JSON.
    pub texts: [Option<String>; 8],
}

/// Whole numbers, in the order of [`ComputeColumns::numbers`].
const NUMBERS: [&str; 9] = [
    "vcpus",
    "vcpus_used",
    "memory_mb",
    "free_ram_mb",
    "local_gb",
    "local_gb_used",
    "free_disk_gb",
    "disk_available_least",
    "hypervisor_version",
];
const RATIOS: [&str; 3] = [
    "cpu_allocation_ratio",
    "ram_allocation_ratio",
    "disk_allocation_ratio",
];
/// Texts, in the order of [`ComputeColumns::texts`]; the address comes after them.
const TEXTS: [&str; 7] = [
    "hypervisor_type",
    "cpu_info",
    "supported_instances",
    "stats",
    "metrics",
    "numa_topology",
    "pci_stats",
];

/// What is selected of `compute_nodes AS cn`. Very old rows have their host in their service
/// (`_host_from_db_object`).
pub(crate) fn columns(dialect: Dialect) -> String {
    let of = |name: &str| format!("cn.{name}");
    let mut columns = vec![dialect.int("cn.id"), dialect.int("cn.deleted")];
    columns
        .extend(["created_at", "updated_at", "deleted_at"].map(|name| dialect.moment(&of(name))));
    columns.push("cn.uuid".to_owned());
    columns.push(
        "COALESCE(cn.host, (SELECT s.host FROM services s WHERE s.id = cn.service_id AND s.deleted = 0))".to_owned(),
    );
    columns.push("cn.hypervisor_hostname".to_owned());
    columns.extend(NUMBERS.map(|name| dialect.int(&of(name))));
    columns.extend(RATIOS.map(|name| dialect.float(&of(name))));
    columns.extend(TEXTS.map(of));
    columns.push(dialect.address("cn.host_ip"));
    columns.join(", ")
}

impl ComputeColumns {
    pub(crate) fn read(row: &QueryResult) -> Result<Self, DbErr> {
        let mut columns = RowReader::new(row);
        let id = columns.int()?.unwrap_or_default();
        let deleted = columns.truth()?;
        let (created_at, updated_at, deleted_at) =
            (columns.moment()?, columns.moment()?, columns.moment()?);
        let (uuid, host, nodename) = (columns.text()?, columns.text()?, columns.text()?);
        let mut raw = Self {
            id,
            deleted,
            created_at,
            updated_at,
            deleted_at,
            uuid,
            host,
            nodename,
            numbers: [None; 9],
            ratios: [None; 3],
            texts: Default::default(),
        };
        for number in &mut raw.numbers {
            *number = columns.int()?;
        }
        for ratio in &mut raw.ratios {
            *ratio = columns.float()?;
        }
        for text in &mut raw.texts {
            *text = columns.text()?;
        }
        Ok(raw)
    }

    pub(crate) fn mark(&self) -> Mark {
        let mut hasher = DefaultHasher::new();
        (
            self.deleted,
            self.updated_at,
            &self.uuid,
            &self.host,
            &self.nodename,
        )
            .hash(&mut hasher);
        self.numbers.hash(&mut hasher);
        self.ratios.map(|r| r.map(f64::to_bits)).hash(&mut hasher);
        self.texts.hash(&mut hasher);
        Mark {
            id: self.id,
            at: [self.created_at, self.updated_at, self.deleted_at]
                .into_iter()
                .flatten()
                .max()
                .unwrap_or_default(),
            digest: hasher.finish(),
        }
    }

    /// What Nova makes of the row; `ratios` are for nodes that have none of their own.
    #[must_use]
    pub fn take_in(self, ratios: &Ratios) -> ComputeNode {
        ComputeNode {
            id: self.id,
            uuid: self.uuid.clone(),
            host: self.host.clone(),
            nodename: self.nodename.clone(),
            deleted: self.deleted,
            updated_at: self.updated_at,
            row: self.object(ratios).map(Arc::new),
        }
    }

    fn object(self, ratios: &Ratios) -> Result<ComputeRow, NovaException> {
        let [cpu, ram, disk] = self.ratios;
        // NULL and 0.0 mean that the node has none of its own.
        let ratio = |own: Option<f64>, unset: f64| own.filter(|own| *own != 0.0).unwrap_or(unset);
        // Of a node that was never updated the host state takes nothing in, so that nothing in
        // these columns can be wrong.
        let was_updated = self.numbers[6].is_some();
        let null = |name: &str| value_error(format!("{name} is NULL"));
        let needed = |at: usize| self.numbers[at].ok_or_else(|| null(NUMBERS[at]));
        let (vcpus, vcpus_used, memory_mb) = (needed(0)?, needed(1)?, needed(2)?);
        let (local_gb, local_gb_used) = (needed(4)?, needed(5)?);
        let hypervisor_version = needed(8)?;
        let [
            hypervisor_type,
            cpu_info,
            supported_instances,
            stats,
            metrics,
            numa_topology,
            pci_stats,
            host_ip,
        ] = self.texts;
        Ok(ComputeRow {
            host: self.host.ok_or_else(|| null("host"))?,
            nodename: self.nodename.ok_or_else(|| null("hypervisor_hostname"))?,
            uuid: self.uuid.ok_or_else(|| null("uuid"))?,
            vcpus,
            vcpus_used,
            memory_mb,
            free_ram_mb: self.numbers[3],
            local_gb,
            local_gb_used,
            free_disk_gb: self.numbers[6],
            disk_available_least: self.numbers[7],
            cpu_allocation_ratio: ratio(cpu, ratios.cpu),
            ram_allocation_ratio: ratio(ram, ratios.ram),
            disk_allocation_ratio: ratio(disk, ratios.disk),
            hypervisor_type: hypervisor_type.ok_or_else(|| null("hypervisor_type"))?,
            hypervisor_version,
            cpu_info,
            host_ip: host_ip.map(|text| address(&Value::Str(text))).transpose()?,
            supported_instances: loaded(supported_instances.as_deref())?
                .map(|specs| supported(&specs))
                .transpose()?,
            stats: loaded(stats.as_deref())?
                .map(|stats| match stats {
                    Value::None => Ok(BTreeMap::new()),
                    stats => map(&stats, |value| nullable_string(Some(value))),
                })
                .transpose()?,
            metrics: if was_updated {
                listed(loaded(metrics.as_deref())?)?
            } else {
                None
            },
            numa_topology: numa_topology
                // What is older than versioned objects is converted in any case.
                .filter(|text| {
                    !text.is_empty() && (was_updated || !text.contains("nova_object.name"))
                })
                .map(|text| numa::topology(&text))
                .transpose()?,
            pci_pools: pci::pools(pci_stats.as_deref())?,
            updated_at: self.updated_at,
        })
    }
}

/// JSON, where neither NULL nor an empty text counts.
fn loaded(text: Option<&str>) -> Result<Option<Value>, NovaException> {
    text.filter(|text| !text.is_empty())
        .map(json::loads)
        .transpose()
}

/// Triples; Python walks a dictionary by its keys, and a text by its characters.
fn supported(specs: &Value) -> Result<Vec<Vec<Option<String>>>, NovaException> {
    let triple = |spec: &Value| match spec {
        Value::Str(text) => hv_spec(&Value::List(
            text.chars().map(|c| Value::Str(c.to_string())).collect(),
        )),
        spec => hv_spec(spec),
    };
    match specs {
        Value::List(specs) => specs.iter().map(triple).collect(),
        Value::Dict(specs) => specs
            .iter()
            .map(|(key, _)| triple(&Value::Str(key.clone())))
            .collect(),
        other => Err(type_error(format!(
            "a {} is no list of triples",
            other.class()
        ))),
    }
}

/// Metrics are walked when the host state is made: what cannot be walked fails there.
fn listed(metrics: Option<Value>) -> Result<Option<Value>, NovaException> {
    match metrics {
        Some(Value::Dict(metrics)) if metrics.is_empty() => Ok(None),
        Some(other @ (Value::None | Value::Dict(_))) => {
            Err(type_error(format!("metrics are a {}", other.class())))
        }
        metrics => Ok(metrics),
    }
}
