//! What a follower hands out.

use crate::cloud::{CloudDatabases, at, compute_uuid, instance_uuid};
use ebbtide_nova_db::{Changes, FollowOptions, Follower};

const START: &str = "2026-01-01 10:00:00";

fn now(second: i64) -> i64 {
    at(START) + second * 1_000_000
}

async fn followed(cloud: &CloudDatabases, options: FollowOptions) -> Follower {
    let mut follower = Follower::new(cloud.open_cell().await, options);
    let mut instances = Vec::new();
    let loaded = follower
        .load(now(0), |batch| instances.extend(batch))
        .await
        .unwrap();
    assert_eq!(loaded.instances, instances.len());
    follower
}

/// Ids of computes, services and instances, with a minus for deleted ones.
fn seen(changes: &Changes) -> (Vec<i64>, Vec<i64>, Vec<String>) {
    let sign = |id: i64, deleted: bool| if deleted { -id } else { id };
    (
        changes
            .compute_nodes
            .iter()
            .map(|c| sign(c.id, c.deleted))
            .collect(),
        changes
            .services
            .iter()
            .map(|s| sign(s.id, s.deleted))
            .collect(),
        changes
            .instances
            .iter()
            .map(|i| format!("{}{}", if i.deleted { "-" } else { "" }, &i.uuid[35..]))
            .collect(),
    )
}

async fn nothing_is_handed_out_twice_and_nothing_is_missed(cloud: CloudDatabases) {
    for id in 1..=3 {
        cloud.add_host(id, START).await;
        cloud.add_instance(id, "compute1", START).await;
    }
    let mut follower = followed(&cloud, FollowOptions::default()).await;
    for second in 0..3 {
        let changes = follower.poll(now(second)).await.unwrap();
        assert_eq!(seen(&changes), (vec![], vec![], vec![]), "nothing happened");
    }
    // Two changes within one second, with a look between them.
    for (used, second) in [(2, 3), (4, 3)] {
        cloud
            .cell
            .sql(&format!(
                "UPDATE compute_nodes SET vcpus_used = {used}, updated_at = '2026-01-01 10:00:03' WHERE id = 2"
            ))
            .await;
        let changes = follower.poll(now(second)).await.unwrap();
        assert_eq!(seen(&changes).0, [2]);
        assert_eq!(
            changes.compute_nodes[0].row.as_ref().unwrap().vcpus_used,
            used
        );
    }
    // A writer whose clock is two seconds behind.
    cloud.cell.sql("UPDATE compute_nodes SET vcpus_used = 7, updated_at = '2026-01-01 10:00:01' WHERE id = 1").await;
    assert_eq!(seen(&follower.poll(now(4)).await.unwrap()).0, [1]);
    // One that comes, one that goes: deleting does not touch updated_at.
    cloud.add_host(9, "2026-01-01 10:00:05").await;
    cloud.cell.sql("UPDATE compute_nodes SET deleted = id, deleted_at = '2026-01-01 10:00:05' WHERE id = 3").await;
    let changes = follower.poll(now(5)).await.unwrap();
    assert_eq!(seen(&changes).0, [-3, 9]);
    assert_eq!(changes.compute_nodes[0].uuid, Some(compute_uuid(3)));
    assert_eq!(seen(&changes).1, [9]);
    assert_eq!(
        seen(&follower.poll(now(5)).await.unwrap()),
        (vec![], vec![], vec![])
    );
}

async fn services_that_an_operator_touches_are_seen_at_once_and_heartbeats_now_and_then(
    cloud: CloudDatabases,
) {
    for id in 1..=3 {
        cloud.add_host(id, START).await;
    }
    // New services are handed out at every heartbeat; these are not new.
    cloud
        .cell
        .sql("UPDATE services SET created_at = '2025-01-01 00:00:00'")
        .await;
    let mut follower = followed(&cloud, FollowOptions::default()).await;
    let beat = async |id: i64, second: i64, more: &str| {
        let when = format!("'2026-01-01 10:00:{second:02}'");
        let sql = format!(
            "UPDATE services SET updated_at = {when}, last_seen_up = {when}{more} WHERE id = {id}"
        );
        cloud.cell.sql(&sql).await;
    };
    beat(1, 1, "").await;
    assert!(
        seen(&follower.poll(now(1)).await.unwrap()).1.is_empty(),
        "only a heartbeat"
    );
    beat(2, 2, ", disabled = TRUE, disabled_reason = 'why'").await;
    let changes = follower.poll(now(2)).await.unwrap();
    assert_eq!(seen(&changes).1, [2]);
    assert_eq!(
        changes.services[0].service.disabled_reason.as_deref(),
        Some("why")
    );
    beat(2, 3, ", disabled = FALSE, disabled_reason = NULL").await;
    let changes = follower.poll(now(3)).await.unwrap();
    assert_eq!(seen(&changes).1, [2]);
    assert!(!changes.services[0].service.disabled);
    beat(3, 3, ", forced_down = TRUE").await;
    assert_eq!(seen(&follower.poll(now(3)).await.unwrap()).1, [3]);
    // The time of heartbeats has come: service 1's is read, and nothing that was handed out
    // already.
    let changes = follower.poll(now(6)).await.unwrap();
    assert_eq!(seen(&changes).1, [1]);
    assert_eq!(changes.services[0].service.last_seen_up, Some(now(1)));
    cloud
        .cell
        .sql("UPDATE services SET deleted = id, deleted_at = '2026-01-01 10:00:07' WHERE id = 1")
        .await;
    assert_eq!(seen(&follower.poll(now(7)).await.unwrap()).1, [-1]);
}

async fn the_first_heartbeat_of_a_silent_service_is_seen_at_once(cloud: CloudDatabases) {
    for id in 1..=2 {
        cloud.add_host(id, START).await;
    }
    // Created long ago: a new service is handed out in any case.
    let silent = "created_at = '2025-01-01 00:00:00', updated_at = '2026-01-01 09:50:00', \
                  last_seen_up = '2026-01-01 09:50:00'";
    let beat = "updated_at = '2026-01-01 10:00:01', last_seen_up = '2026-01-01 10:00:01'";
    for (id, values) in [(1, silent), (2, silent), (2, beat)] {
        let sql = format!("UPDATE services SET {values} WHERE id = {id}");
        cloud.cell.sql(&sql).await;
    }
    let mut follower = followed(&cloud, FollowOptions::default()).await;
    // A second is far less than the interval of heartbeats, and nova-scheduler would know.
    let sql = format!("UPDATE services SET {beat} WHERE id = 1");
    cloud.cell.sql(&sql).await;
    let changes = follower.poll(now(1)).await.unwrap();
    assert_eq!(seen(&changes).1, [1]);
    assert_eq!(changes.services[0].service.last_seen_up, Some(now(1)));
    // From then on it is read as the others are.
    let later = "updated_at = '2026-01-01 10:00:02', last_seen_up = '2026-01-01 10:00:02'";
    let sql = format!("UPDATE services SET {later} WHERE id = 1");
    cloud.cell.sql(&sql).await;
    assert!(seen(&follower.poll(now(2)).await.unwrap()).1.is_empty());
}

async fn instances_are_followed_until_they_are_gone(cloud: CloudDatabases) {
    cloud.add_host(1, START).await;
    cloud.add_instance(1, "compute1", START).await;
    let mut follower = followed(&cloud, FollowOptions::default()).await;
    // A new one has no updated_at yet.
    cloud
        .add_instance(2, "compute1", "2026-01-01 10:00:02")
        .await;
    cloud
        .cell
        .sql("UPDATE instances SET updated_at = NULL WHERE id = 2")
        .await;
    let changes = follower.poll(now(2)).await.unwrap();
    assert_eq!(seen(&changes).2, ["2"]);
    let flavor = changes.instances[0].flavor.as_ref().unwrap();
    assert_eq!(flavor.current.flavorid, "f1");
    let set = async |what: &str| {
        cloud
            .cell
            .sql(&format!("UPDATE instances SET {what} WHERE id = 1"))
            .await
    };
    set("task_state = 'deleting', updated_at = '2026-01-01 10:00:03'").await;
    assert_eq!(seen(&follower.poll(now(3)).await.unwrap()).2, ["1"]);
    // The others go on, so that the time of its last change is long past when it is deleted.
    cloud
        .add_instance(3, "compute1", "2026-01-01 10:01:00")
        .await;
    assert_eq!(seen(&follower.poll(now(60)).await.unwrap()).2, ["3"]);
    assert!(seen(&follower.poll(now(61)).await.unwrap()).2.is_empty());
    set("deleted = id, deleted_at = '2026-01-01 10:02:00'").await;
    assert_eq!(seen(&follower.poll(now(120)).await.unwrap()).2, ["-1"]);
    assert!(seen(&follower.poll(now(121)).await.unwrap()).2.is_empty());
    let cell = cloud.open_cell().await;
    let hosts = cell.instance_hosts().await.unwrap();
    assert_eq!(hosts.len(), 2);
    assert!(hosts.contains(&(instance_uuid(2), "compute1".to_owned())));
}

on_every_database!(
    nothing_is_handed_out_twice_and_nothing_is_missed,
    services_that_an_operator_touches_are_seen_at_once_and_heartbeats_now_and_then,
    the_first_heartbeat_of_a_silent_service_is_seen_at_once,
    instances_are_followed_until_they_are_gone,
);
