//! Rows of compute nodes are taken in as Nova takes them in: against host states that Nova 34 made
//! (`oracle/compute_rows.py`).

use crate::cloud::{CloudDatabases, compute_uuid, quote};
use ebbtide_nova::hosts;
use ebbtide_nova::model::{HostState, NumaCell, PciPool};
use serde_json::{Map, Value, json};
use std::io::{BufRead as _, BufReader};

/// The first so many rows have one oddity each, so that it is certain which error Nova meets first.
const SINGLE: usize = 116;

fn vectors() -> Vec<Value> {
    let bytes: &[u8] = include_bytes!("../vectors/compute_rows.jsonl.gz");
    BufReader::new(flate2::read::GzDecoder::new(bytes))
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect()
}

fn cell(cell: &NumaCell) -> Value {
    let sets: Vec<Vec<i64>> = cell
        .siblings
        .iter()
        .map(|set| set.iter().collect())
        .collect();
    json!({
        "id": cell.id, "cpuset": cell.cpuset, "pcpuset": cell.pcpuset.iter().collect::<Vec<i64>>(), "memory": cell.memory,
        "cpu_usage": cell.cpu_usage, "memory_usage": cell.memory_usage, "pinned_cpus": cell.pinned_cpus, "siblings": sets,
        "socket": cell.socket,
        "mempages": cell.mempages.iter().map(|p| json!([p.size_kb, p.total, p.used, p.reserved])).collect::<Vec<_>>(),
        "networks": cell.network_metadata.as_ref().map(|n| json!([n.physnets, n.tunneled])),
    })
}

fn pool(pool: &PciPool) -> Value {
    let mut out: Map<String, Value> = pool.tags.clone().into_iter().collect();
    out.insert("vendor_id".to_owned(), json!(pool.vendor_id));
    out.insert("product_id".to_owned(), json!(pool.product_id));
    out.insert("numa_node".to_owned(), json!(pool.numa_node));
    out.insert("count".to_owned(), json!(pool.count));
    Value::Object(out)
}

/// What the oracle writes of a host state.
fn state(s: &HostState) -> Value {
    json!({
        "host": s.host, "nodename": s.nodename, "uuid": s.uuid, "free_ram_mb": s.free_ram_mb,
        "total_usable_ram_mb": s.total_usable_ram_mb, "free_disk_mb": s.free_disk_mb,
        "total_usable_disk_gb": s.total_usable_disk_gb, "disk_mb_used": s.disk_mb_used, "vcpus_total": s.vcpus_total,
        "vcpus_used": s.vcpus_used, "cpu_allocation_ratio": s.cpu_allocation_ratio,
        "ram_allocation_ratio": s.ram_allocation_ratio, "disk_allocation_ratio": s.disk_allocation_ratio,
        "hypervisor_type": s.hypervisor_type, "hypervisor_version": s.hypervisor_version, "cpu_info": s.cpu_info,
        "supported_instances": s.supported_instances, "num_instances": s.num_instances, "num_io_ops": s.num_io_ops,
        "failed_builds": s.failed_builds, "host_ip": s.host_ip, "stats": s.stats,
        "metrics": s.metrics.as_ref().map(|m| m.iter().map(|m| json!([m.name, m.value.map(|v| v as i64)])).collect::<Vec<_>>()),
        "numa_topology": s.numa_topology.as_ref().map(|t| t.cells.iter().map(cell).collect::<Vec<_>>()),
        "pci_pools": s.pci_pools.as_ref().map(|pools| pools.iter().map(pool).collect::<Vec<_>>()),
        "updated": s.updated_at.map(|at| at / 1_000_000),
    })
}

async fn taken_in_as_nova_does(cloud: CloudDatabases, addresses_are_checked: bool) {
    let vectors = vectors();
    let mut checked = Vec::new();
    for vector in &vectors {
        let row = vector["row"].as_object().unwrap();
        // PostgreSQL does not take in what is no address.
        if addresses_are_checked && row["host_ip"] == "no address" {
            continue;
        }
        let values: Vec<(&str, String)> = row
            .iter()
            .map(|(name, value)| {
                let value = match value {
                    Value::String(text) => quote(&cloud.cell, text),
                    Value::Null => "NULL".to_owned(),
                    other => other.to_string(),
                };
                (name.as_str(), value)
            })
            .collect();
        let values: Vec<(&str, &str)> = values
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        cloud.cell.insert("compute_nodes", &values).await;
        checked.push(vector);
    }
    let nodes = cloud.open_cell().await.compute_nodes().await.unwrap();
    assert_eq!(nodes.len(), checked.len());
    let mut bad = Vec::new();
    for (node, vector) in nodes.iter().zip(checked) {
        assert_eq!(
            node.uuid,
            Some(compute_uuid(vector["row"]["id"].as_i64().unwrap()))
        );
        let ours = node.row.clone().and_then(|row| {
            let mut state = hosts::new_state(&row.host, &row.nodename, "cell");
            hosts::update(&mut state, &row).map(|()| state)
        });
        let same = match (&ours, vector.get("error")) {
            (Ok(ours), None) => state(ours) == vector["state"],
            (Err(fault), Some(class)) => node.id as usize > SINGLE || fault.class == class,
            _ => false,
        };
        if !same {
            let ours = ours
                .map(|ours| state(&ours).to_string())
                .map_err(|fault| fault.to_string());
            let theirs = vector.get("error").unwrap_or_else(|| &vector["state"]);
            bad.push(format!(
                "{}:
  Nova: {theirs}
  ours: {ours:?}",
                node.id
            ));
        }
    }
    assert!(
        bad.is_empty(),
        "{} of {}:\n{}",
        bad.len(),
        nodes.len(),
        bad[..bad.len().min(4)].join("\n")
    );
}

#[tokio::test]
async fn compute_nodes_in_mariadb_are_taken_in_as_nova_does() {
    taken_in_as_nova_does(CloudDatabases::mariadb(crate::cloud::NOVA_34).await, false).await;
}

#[tokio::test]
async fn compute_nodes_in_postgres_are_taken_in_as_nova_does() {
    taken_in_as_nova_does(CloudDatabases::postgres().await, true).await;
}

#[tokio::test]
async fn compute_nodes_in_sqlite_are_taken_in_as_nova_does() {
    taken_in_as_nova_does(CloudDatabases::sqlite().await, false).await;
}
