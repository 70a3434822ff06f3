//! How long it takes to read a large cell, and to hear what changed in it.
//!
//!     cargo run --release -p ebbtide-nova-db --example poll -- [HOSTS] [INSTANCES]
//!
//! Starts a MariaDB with the tables of Nova 34, 5,000 hosts with the columns of a KVM host and
//! 100,000 instances unless told otherwise. Heartbeats are ten seconds and reports of computes
//! sixty seconds apart, so that each poll finds the rows of the last seconds again, as in life.
//! Prints milliseconds of time, and of processor for us and for the server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use ebbtide_harness::MariaDb;
use ebbtide_nova::hosts::Ratios;
use ebbtide_nova_db::{FollowOptions, Follower, NovaDb, NovaDbConfig, PoolOptions, Secret};
use ebbtide_runtime::clock;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use std::fmt::Write as _;
use std::io::Read as _;

const CELL: &str = "11111111-1111-4111-8111-111111111111";
const NOW: i64 = 1_772_366_400_000_000;
const POLLS: u32 = 50;

async fn filled(url: &str, dump: &[u8]) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url.to_owned());
    options.max_connections(1).sqlx_logging(false);
    let connection = Database::connect(options).await.unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(dump)
        .read_to_string(&mut text)
        .unwrap();
    connection
        .execute_unprepared("SET FOREIGN_KEY_CHECKS = 0")
        .await
        .unwrap();
    for statement in text.split(";\n").filter(|s| !s.trim().is_empty()) {
        connection.execute_unprepared(statement).await.unwrap();
    }
    connection
}

/// Rows in statements of five hundred.
async fn insert(db: &DatabaseConnection, into: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.collect();
    for rows in rows.chunks(500) {
        let sql = format!("INSERT INTO {into} VALUES {}", rows.join(", "));
        db.execute_unprepared(&sql).await.unwrap();
    }
}

/// Milliseconds of processor that a process has used.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks * 10.0
}

fn numa(cells: usize) -> String {
    let mut all = String::new();
    for id in 0..cells {
        let cpus: Vec<String> = (id * 16..id * 16 + 16).map(|c| c.to_string()).collect();
        let pairs: Vec<String> = (id * 16..id * 16 + 8)
            .map(|c| format!("[{c}, {}]", c + 8))
            .collect();
        let comma = if id == 0 { "" } else { ", " };
        write!(
            all,
            r#"{comma}{{"nova_object.name": "NUMACell", "nova_object.namespace": "nova", "nova_object.version": "1.5", "nova_object.data": {{"id": {id}, "cpuset": [{}], "pcpuset": [], "memory": 65536, "cpu_usage": 3, "memory_usage": 4096, "pinned_cpus": [], "siblings": [{}], "mempages": [{{"nova_object.name": "NUMAPagesTopology", "nova_object.namespace": "nova", "nova_object.version": "1.1", "nova_object.data": {{"size_kb": 4, "total": 16777216, "used": 0, "reserved": 0}}}}], "socket": {id}}}}}"#,
            cpus.join(", "),
            pairs.join(", ")
        )
        .unwrap();
    }
    format!(
        r#"{{"nova_object.name": "NUMATopology", "nova_object.namespace": "nova", "nova_object.version": "1.2", "nova_object.data": {{"cells": [{all}]}}}}"#
    )
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|a| a.parse::<usize>().expect("a number"));
    let hosts = arguments.next().unwrap_or(5000);
    let instances = arguments.next().unwrap_or(100_000);
    let server = MariaDb::start().await.unwrap();
    let api_url = server.create_database("nova_api").await.unwrap();
    let cell_url = server.create_database("nova_cell1").await.unwrap();
    let api = filled(&api_url, include_bytes!("../schema/api-34.sql.gz")).await;
    let cell = filled(&cell_url, include_bytes!("../schema/cell-34.sql.gz")).await;
    let mapping = format!(
        "INSERT INTO cell_mappings (id, uuid, name, transport_url, database_connection, disabled) VALUES (1, '{CELL}', 'cell1', 'x', '{cell_url}', 0)"
    );
    api.execute_unprepared(&mapping).await.unwrap();
    let at = |ago: usize| format!("FROM_UNIXTIME({})", NOW / 1_000_000 - ago as i64);
    cell.execute_unprepared("SET time_zone = '+00:00'")
        .await
        .unwrap();
    let numa = numa(2);
    let cpu_info = format!(
        r#"{{"arch": "x86_64", "model": "Cascadelake-Server", "features": ["{}"]}}"#,
        vec!["feature"; 110].join("\", \"")
    );
    insert(
        &cell,
        "compute_nodes (created_at, updated_at, deleted, uuid, host, hypervisor_hostname, vcpus, memory_mb, local_gb, vcpus_used, memory_mb_used, local_gb_used, hypervisor_type, hypervisor_version, cpu_info, free_ram_mb, free_disk_gb, current_workload, running_vms, host_ip, supported_instances, stats, numa_topology, pci_stats, metrics, cpu_allocation_ratio, ram_allocation_ratio, disk_allocation_ratio, mapped)",
        (0..hosts).map(|n| {
            format!(
                "('2025-01-01', {}, 0, '00000000-0000-4000-8000-{n:012}', 'compute{n}', 'compute{n}', 32, 131072, 1000, 8, 32768, 100, 'QEMU', 8002000, '{cpu_info}', 98304, 900, 0, 20, '10.1.2.3', '[[\"x86_64\", \"kvm\", \"hvm\"], [\"i686\", \"kvm\", \"hvm\"]]', '{{\"num_instances\": \"20\", \"io_workload\": \"0\", \"failed_builds\": \"0\", \"num_vm_active\": \"20\", \"num_proj_p\": \"20\"}}', '{numa}', '{{\"nova_object.name\": \"PciDevicePoolList\", \"nova_object.namespace\": \"nova\", \"nova_object.version\": \"1.1\", \"nova_object.data\": {{\"objects\": []}}}}', '[]', 4.0, 1.0, 1.0, 1)",
                at(n % 60)
            )
        }),
    )
    .await;
    insert(
        &cell,
        "services (created_at, updated_at, deleted, uuid, host, `binary`, topic, report_count, disabled, forced_down, last_seen_up, version)",
        (0..hosts).map(|n| {
            let beat = at(n % 10);
            format!("('2025-01-01', {beat}, 0, '00000000-0000-4000-9000-{n:012}', 'compute{n}', 'nova-compute', 'compute', 1, 0, 0, {beat}, 74)")
        }),
    )
    .await;
    let flavor = r#"{"cur": {"nova_object.name": "Flavor", "nova_object.namespace": "nova", "nova_object.version": "1.2", "nova_object.data": {"id": 1, "name": "m1", "flavorid": "f1", "vcpus": 1, "memory_mb": 1024, "root_gb": 5, "ephemeral_gb": 0, "swap": 0, "extra_specs": {"ebbtide:preemptible": "true"}}}, "old": null, "new": null}"#;
    insert(
        &cell,
        "instances (created_at, updated_at, launched_at, deleted, hidden, uuid, host, node, project_id, user_id, vm_state, power_state, vcpus, memory_mb, root_gb, ephemeral_gb, locked)",
        (0..instances).map(|n| {
            let (host, at) = (n % hosts.max(1), at(n % 36_000));
            format!("('2025-01-01', {at}, {at}, 0, 0, '00000000-0000-4000-a000-{n:012}', 'compute{host}', 'compute{host}', 'p', 'u', 'active', 1, 1, 1024, 5, 0, 0)")
        }),
    )
    .await;
    insert(
        &cell,
        "instance_extra (deleted, instance_uuid, flavor, pci_requests)",
        (0..instances).map(|n| format!("(0, '00000000-0000-4000-a000-{n:012}', '{flavor}', '[]')")),
    )
    .await;
    let db = NovaDb::connect(&NovaDbConfig {
        api_url: Secret::new(api_url),
        main_url: Secret::new(cell_url),
        transport_url: None,
        ratios: Ratios {
            cpu: 4.0,
            ram: 1.0,
            disk: 1.0,
        },
        pool: PoolOptions::default(),
    })
    .await
    .unwrap();
    let (ours, theirs) = (std::process::id(), server.pid().unwrap());
    let mut follower = Follower::new(db.cell(CELL).unwrap(), FollowOptions::default());
    let (start, ours_before, theirs_before) = (clock::instant(), cpu(ours), cpu(theirs));
    let mut kept = Vec::new();
    let loaded = follower
        .load(NOW, |batch| kept.extend(batch))
        .await
        .unwrap();
    println!(
        "load: {} compute nodes, {} services, {} instances in {:.0} ms; CPU {:.0} ms ours, {:.0} ms MariaDB's",
        loaded.compute_nodes.len(),
        loaded.services.len(),
        kept.len(),
        start.elapsed().as_secs_f64() * 1000.0,
        cpu(ours) - ours_before,
        cpu(theirs) - theirs_before
    );
    for (what, step, touch) in [
        ("nothing changes", 0, false),
        ("one host changes", 0, true),
        ("with heartbeats", 10_000_000, false),
    ] {
        let mut times = Vec::new();
        let mut news = 0;
        let (ours_before, theirs_before) = (cpu(ours), cpu(theirs));
        for n in 0..POLLS {
            if touch {
                let sql = format!(
                    "UPDATE compute_nodes SET vcpus_used = {n}, updated_at = {} WHERE id = 7",
                    at(0)
                );
                cell.execute_unprepared(&sql).await.unwrap();
            }
            let start = clock::instant();
            let changes = follower.poll(NOW + i64::from(n) * step).await.unwrap();
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            news += changes.compute_nodes.len() + changes.services.len() + changes.instances.len();
        }
        times.sort_by(f64::total_cmp);
        println!(
            "poll, {what}: median {:.1} ms, 90 % {:.1} ms; CPU {:.1} ms ours, {:.1} ms MariaDB's; {news} rows handed out in {POLLS} polls",
            times[times.len() / 2],
            times[times.len() * 9 / 10],
            (cpu(ours) - ours_before) / f64::from(POLLS),
            (cpu(theirs) - theirs_before) / f64::from(POLLS)
        );
    }
}
