//! Instances with what belongs to them.

use crate::cloud::{CloudDatabases, at, flavor_json, instance_uuid, quote};
use ebbtide_nova_db::InstanceDetail;
use serde_json::json;

const START: &str = "2026-01-01 10:00:00";

async fn an_instance_comes_with_flavor_metadata_image_and_group(cloud: CloudDatabases) {
    let uuid = cloud.add_instance(1, "compute1", START).await;
    let uuid_text = format!("'{uuid}'");
    let images = [
        ("'image_hw_disk_bus'", "'virtio'", "0"),
        ("'imageX'", "'no'", "0"),
        ("'image_gone'", "'x'", "1"),
        ("'other'", "'x'", "0"),
    ];
    for (key, value, deleted) in images {
        let row = [
            ("instance_uuid", uuid_text.as_str()),
            ("key", key),
            ("value", value),
            ("deleted", deleted),
        ];
        cloud.cell.insert("instance_system_metadata", &row).await;
    }
    for (key, value, deleted) in [
        ("'ebbtide:price'", "'3'", "0"),
        ("'mine'", "'x'", "0"),
        ("'ebbtide:old'", "'x'", "1"),
    ] {
        let row = [
            ("instance_uuid", uuid_text.as_str()),
            ("key", key),
            ("value", value),
            ("deleted", deleted),
        ];
        cloud.cell.insert("instance_metadata", &row).await;
    }
    let of = async |key: &str| {
        let cells = cloud.open().await.enabled_cells();
        cells[0].servers_with_metadata(key).await.unwrap()
    };
    assert_eq!(of("ebbtide:price").await, std::slice::from_ref(&uuid));
    assert_eq!(of("ebbtide:old").await, [""; 0]);
    let group = "'55555555-5555-4555-8555-555555555555'";
    cloud
        .api
        .insert("instance_groups", &[("id", "4"), ("uuid", group)])
        .await;
    cloud
        .api
        .insert(
            "instance_group_member",
            &[("group_id", "4"), ("instance_uuid", &uuid_text)],
        )
        .await;
    let cell = cloud.open_cell().await;
    let detail = InstanceDetail {
        image_properties: true,
    };
    let found = cell
        .host_instances(&["compute1".to_owned(), "x".to_owned()], detail)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    let instance = &found[0];
    assert_eq!(
        (
            instance.vcpus,
            instance.memory_mb,
            instance.root_gb,
            instance.ephemeral_gb
        ),
        (2, 1024, 10, 1)
    );
    assert_eq!(
        (instance.launched_at, instance.created_at),
        (Some(at(START)), Some(at(START)))
    );
    assert_eq!(instance.project_id.as_deref(), Some("p1"));
    assert_eq!(instance.vm_state.as_deref(), Some("active"));
    assert_eq!(
        (
            instance.numa_topology.as_deref(),
            instance.has_pci_requests,
            instance.locked
        ),
        (None, false, false)
    );
    let specs = instance
        .flavor
        .as_ref()
        .unwrap()
        .current
        .extra_specs
        .as_ref()
        .unwrap();
    assert_eq!(
        specs.get("ebbtide:preemptible").map(String::as_str),
        Some("true")
    );
    assert_eq!(
        instance.metadata.iter().collect::<Vec<_>>(),
        [(&"ebbtide:price".to_owned(), &"3".to_owned())]
    );
    assert_eq!(
        instance.image_properties.iter().collect::<Vec<_>>(),
        [(&"hw_disk_bus".to_owned(), &json!("virtio"))]
    );
    assert_eq!(
        instance.server_group.as_deref(),
        Some("55555555-5555-4555-8555-555555555555")
    );
    let plain = cell.instance(&uuid).await.unwrap().unwrap();
    assert!(plain.image_properties.is_empty() && plain.metadata.len() == 1);
    assert_eq!(cell.instance("x").await.unwrap(), None);
}

async fn all_live_instances_come_in_batches_and_nothing_else(cloud: CloudDatabases) {
    cloud.add_instance(1, "compute1", START).await;
    let flavor = quote(&cloud.cell, &flavor_json("false"));
    let columns = "id, uuid, host, node, created_at, updated_at, deleted, hidden, vm_state, vcpus, memory_mb, root_gb, ephemeral_gb";
    let (mut instances, mut extras) = (Vec::new(), Vec::new());
    for id in 2..=1203 {
        let uuid = instance_uuid(id);
        // Every hundredth is deleted, one is hidden, one is of no use any more.
        let deleted = if id % 100 == 0 { id } else { 0 };
        let hidden = if id == 1201 { "TRUE" } else { "FALSE" };
        let state = if id == 1202 { "deleted" } else { "active" };
        instances.push(format!("({id}, '{uuid}', 'h', 'n', '{START}', '{START}', {deleted}, {hidden}, '{state}', 1, 1, 1, -1)"));
        extras.push(format!("('{uuid}', {deleted}, {flavor})"));
    }
    cloud
        .cell
        .sql(&format!(
            "INSERT INTO instances ({columns}) VALUES {}",
            instances.join(", ")
        ))
        .await;
    cloud
        .cell
        .sql(&format!(
            "INSERT INTO instance_extra (instance_uuid, deleted, flavor) VALUES {}",
            extras.join(", ")
        ))
        .await;
    let cell = cloud.open_cell().await;
    let mut batches = Vec::new();
    let count = cell
        .instances(InstanceDetail::default(), |batch| batches.push(batch))
        .await
        .unwrap();
    let all: Vec<_> = batches.iter().flatten().collect();
    assert_eq!((count, all.len(), batches.len()), (1189, 1189, 3));
    assert!(all.iter().all(|instance| !instance.deleted
        && instance.flavor.is_some()
        && instance.ephemeral_gb >= 0));
    let deleted = cell.instance(&instance_uuid(100)).await.unwrap().unwrap();
    assert!(deleted.deleted && deleted.flavor.is_none());
    let uuids: Vec<String> = (1..=1203).map(instance_uuid).collect();
    assert_eq!(
        cell.instances_by_uuid(&uuids, InstanceDetail::default())
            .await
            .unwrap()
            .len(),
        1203
    );
}

async fn the_last_start_of_an_instance_is_found_among_its_actions(cloud: CloudDatabases) {
    let cell = cloud.open_cell().await;
    let uuid = cloud
        .add_instance(1, "compute1", "2026-01-01 10:00:00")
        .await;
    assert_eq!(cell.last_start(&uuid).await.unwrap(), None);
    let text = format!("'{uuid}'");
    for (action, at) in [
        ("'create'", "'2026-01-01 10:00:00'"),
        ("'start'", "'2026-01-02 10:00:00'"),
        ("'start'", "'2026-01-03 10:00:00'"),
        ("'stop'", "'2026-01-04 10:00:00'"),
    ] {
        let row = [
            ("instance_uuid", text.as_str()),
            ("action", action),
            ("start_time", at),
            ("deleted", "0"),
        ];
        cloud.cell.insert("instance_actions", &row).await;
    }
    let last = cell.last_start(&uuid).await.unwrap();
    assert_eq!(last, Some(at("2026-01-03 10:00:00")));
}

on_every_database!(
    an_instance_comes_with_flavor_metadata_image_and_group,
    all_live_instances_come_in_batches_and_nothing_else,
    the_last_start_of_an_instance_is_found_among_its_actions,
);
