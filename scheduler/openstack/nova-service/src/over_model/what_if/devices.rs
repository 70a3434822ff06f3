//! What-ifs for cells and devices: the request is nova-api's, and its answer is the request's.

use super::{Clouds, Flavor, ServerRequest, outcome, places_of_answer};
use crate::WhatIfError;
use crate::over_model::newcomer;
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::{instance_uuid, quote};
use ebbtide_nova_objects::{SelectDestinations, Value as Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

const ALIAS: &str = r#"{"name": "gpu", "vendor_id": "10de", "product_id": "20b0",
    "device_type": "type-PCI", "numa_policy": "required"}"#;

fn object(name: &str, version: &str, data: &Value) -> Value {
    json!({"nova_object.name": name, "nova_object.namespace": "nova",
        "nova_object.version": version, "nova_object.data": data})
}

fn options() -> Options {
    let mut options = Options::default();
    for filter in ["NUMATopologyFilter", "PciPassthroughFilter"] {
        options.enabled_filters.push(filter.to_owned());
    }
    options.pci_alias = vec![ALIAS.to_owned()];
    options
}

impl Clouds {
    /// A host of one cell, whose only GPU, beside the cell, a preemptible server holds.
    async fn has_gpu(&self, n: i64, hour: u32) {
        self.runs(n, n, 1, true, hour).await;
        let cell = object(
            "NUMACell",
            "1.5",
            &json!({"id": 0, "cpuset": [0, 1, 2, 3], "pcpuset": [4, 5, 6, 7], "memory": 16_000,
                "cpu_usage": 0, "memory_usage": 0, "pinned_cpus": [],
                "siblings": [[4], [5], [6], [7]], "socket": 0, "mempages": []}),
        );
        let topology = object("NUMATopology", "1.2", &json!({"cells": [cell]}));
        let pools = object("PciDevicePoolList", "1.1", &json!({"objects": []}));
        let nova = &self.bench.nova;
        let [topology, pools] = [topology, pools].map(|text| quote(&nova.cell, &text.to_string()));
        let sql = format!(
            "UPDATE compute_nodes SET numa_topology = {topology}, pci_stats = {pools} \
             WHERE host = 'compute{n}'"
        );
        nova.cell.sql(&sql).await;
        let uuid = instance_uuid(n);
        let requests = quote(&nova.cell, r#"[{"count": 1}]"#);
        let sql = format!(
            "UPDATE instance_extra SET pci_requests = {requests} WHERE instance_uuid = '{uuid}'"
        );
        nova.cell.sql(&sql).await;
        let (id, uuid) = (n.to_string(), format!("'{uuid}'"));
        let address = format!("'0000:0{n}:00.0'");
        let row = [
            ("compute_node_id", id.as_str()),
            ("deleted", "0"),
            ("address", &address),
            ("vendor_id", "'10de'"),
            ("product_id", "'20b0'"),
            ("dev_type", "'type-PCI'"),
            ("label", "'label_10de_20b0'"),
            ("status", "'allocated'"),
            ("instance_uuid", &uuid),
            ("numa_node", "0"),
        ];
        nova.cell.insert("pci_devices", &row).await;
    }
}

/// The arguments that Nova's conductor sends for a flavor of one pinned CPU and one GPU.
fn arguments(wanted: &ServerRequest, specs: &[(&str, &str)]) -> oslo_messaging::Map {
    let mut arguments = wanted.arguments();
    let spec = &mut arguments["spec_obj"]["nova_object.data"];
    for (key, value) in specs {
        spec["flavor"]["nova_object.data"]["extra_specs"][*key] = json!(value);
    }
    let cell = object(
        "InstanceNUMACell",
        "1.6",
        &json!({"id": 0, "cpuset": [], "pcpuset": [0], "cpuset_reserved": null, "memory": 2000,
            "pagesize": null, "cpu_pinning_raw": null, "cpu_policy": "dedicated",
            "cpu_thread_policy": null}),
    );
    spec["numa_topology"] = object(
        "InstanceNUMATopology",
        "1.3",
        &json!({"cells": [cell], "emulator_threads_policy": null}),
    );
    let request = object(
        "InstancePCIRequest",
        "1.3",
        &json!({"count": 1, "alias_name": "gpu", "numa_policy": "required",
            "request_id": "00000000-0000-4000-8000-000000000001", "requester_id": null,
            "spec": [{"vendor_id": "10de", "product_id": "20b0", "dev_type": "type-PCI"}]}),
    );
    spec["pci_requests"] = object(
        "InstancePCIRequests",
        "1.1",
        &json!({"requests": [request]}),
    );
    arguments
}

#[tokio::test]
async fn a_what_if_for_a_gpu_and_a_pinned_cpu_is_told_what_the_request_gets() {
    // Placement's model counts VCPU for a pinned CPU, too: the second query of Nova finds the host.
    let cloud = Clouds::with_options(2, options()).await;
    cloud.has_gpu(1, 9).await;
    cloud.has_gpu(2, 3).await;
    cloud.bench.look().await;
    let wanted = ServerRequest::normal(newcomer(1), 1);
    cloud.sells(&wanted.flavor()).await;
    let specs = [
        ("hw:cpu_policy", "dedicated"),
        ("pci_passthrough:alias", "gpu:1"),
    ];
    for (key, value) in specs {
        cloud.bench.sells_with(key, value).await;
    }
    let args = arguments(&wanted, &specs);

    // The request is the conductor's.
    let read = SelectDestinations::read(&Wire::from(&Value::Object(args.clone()))).unwrap();
    let mut sent = read.request.spec;
    sent.user_id = None;
    sent.image.as_mut().unwrap().name = Some(String::new());
    let facts = &cloud.bench.selector.facts;
    let options = facts.nova_options();
    let asked = wanted
        .question()
        .request(facts.database.nova(), &options)
        .await;
    assert_eq!(asked.unwrap(), sent);

    // So is the answer: the younger of the two leaves for its GPU.
    let told = cloud.what_if(&wanted.question()).await.unwrap();
    let (places, victims) = outcome(&told).unwrap_or_else(|| panic!("{told:#?}"));
    let younger: Uuid = instance_uuid(1).parse().unwrap();
    assert_eq!(victims, BTreeSet::from([younger]));
    let answer = cloud.asks_with(&[newcomer(1)], args).await.unwrap();
    assert_eq!(places_of_answer(&answer)[0][0], places[0][0]);
    assert_eq!(cloud.victims().await, victims);
}

#[tokio::test]
async fn what_nova_refuses_of_devices_is_refused_with_its_exception() {
    let cloud = Clouds::with_options(1, options()).await;
    let flavor = Flavor {
        vcpus: 2,
        preemptible: false,
    };
    let wanted = ServerRequest::normal(newcomer(1), 2);
    for (key, value, class) in [
        (
            "pci_passthrough:alias",
            "fpga:1",
            "PciRequestAliasNotDefined",
        ),
        ("pci_passthrough:alias", "gpu", "ValueError"),
        (
            "hw:cpu_thread_policy",
            "isolate",
            "CPUThreadPolicyConfigurationInvalid",
        ),
        ("hw:mem_page_size", "huge", "MemoryPageSizeInvalid"),
    ] {
        cloud.sells(&flavor).await;
        cloud.bench.sells_with(key, value).await;
        match cloud.what_if(&wanted.question()).await {
            Err(WhatIfError::Field { field, problem }) => {
                let wanted = format!("Nova refuses flavor and image with {class}: ");
                assert_eq!(field, "flavor");
                assert!(problem.starts_with(&wanted), "{problem}");
            }
            other => panic!("{key}={value}: {other:?}"),
        }
    }
    cloud.sells(&flavor).await;
    cloud.bench.sells_with("accel:device_profile", "fpga").await;
    let unknown = cloud.what_if(&wanted.question()).await;
    assert!(
        matches!(unknown, Err(WhatIfError::Unknown(_))),
        "{unknown:?}"
    );
}

#[tokio::test]
async fn a_server_whose_device_vanished_or_whose_rows_are_malformed_is_no_victim() {
    let [first, second]: [Uuid; 2] = [1, 2].map(|n| instance_uuid(n).parse().unwrap());
    let at = instance_uuid(1);
    for (sql, victim) in [
        // Nova lets go of a device that its host has no more.
        (
            "UPDATE pci_devices SET status = 'removed' WHERE instance_uuid = '{at}'",
            second,
        ),
        (
            "UPDATE pci_devices SET deleted = id WHERE instance_uuid = '{at}'",
            second,
        ),
        (
            "UPDATE pci_devices SET extra_info = 'no json' WHERE instance_uuid = '{at}'",
            second,
        ),
        (
            "UPDATE instance_extra SET numa_topology = 'no json' WHERE instance_uuid = '{at}'",
            second,
        ),
        (
            "UPDATE instance_extra SET numa_topology = '{}' WHERE instance_uuid = '{at}'",
            second,
        ),
        // Nova takes this for no devices at all, and the device comes back to a new pool.
        (
            "UPDATE compute_nodes SET pci_stats = 'no json' WHERE id = 1",
            first,
        ),
        ("SELECT 1", first),
    ] {
        let cloud = Clouds::with_options(2, options()).await;
        cloud.has_gpu(1, 9).await;
        cloud.has_gpu(2, 3).await;
        cloud.bench.nova.cell.sql(&sql.replace("{at}", &at)).await;
        cloud.bench.look().await;
        let wanted = ServerRequest::normal(newcomer(1), 1);
        cloud.sells(&wanted.flavor()).await;
        cloud
            .bench
            .sells_with("pci_passthrough:alias", "gpu:1")
            .await;
        let told = cloud.what_if(&wanted.question()).await.unwrap();
        let (_, victims) = outcome(&told).unwrap_or_else(|| panic!("{sql}: {told:#?}"));
        assert_eq!(victims, BTreeSet::from([victim]), "{sql}");
    }
}
