//! When servers ran that are gone.

use crate::cloud::{CloudDatabases, at, flavor_json, instance_uuid, quote};
use ebbtide_nova_db::{CellDb, GoneMark, PowerChange, ServerHistory};

const START: &str = "2026-01-01 10:00:00";

/// What Nova does to the rows of an instance that is deleted.
async fn delete(cloud: &CloudDatabases, id: i64, terminated: &str) {
    let uuid = instance_uuid(id);
    cloud
        .cell
        .sql(&format!(
            "UPDATE instances SET deleted = {id}, deleted_at = '{terminated}', vm_state = 'deleted', \
             terminated_at = '{terminated}' WHERE id = {id}"
        ))
        .await;
    cloud
        .cell
        .sql(&format!(
            "UPDATE instance_extra SET deleted = 1 WHERE instance_uuid = '{uuid}'"
        ))
        .await;
}

async fn act(cloud: &CloudDatabases, uuid: &str, action: &str, at: &str) {
    let (uuid, action, at) = (
        format!("'{uuid}'"),
        format!("'{action}'"),
        format!("'{at}'"),
    );
    let row = [
        ("instance_uuid", uuid.as_str()),
        ("action", &action),
        ("start_time", &at),
        ("deleted", "0"),
    ];
    cloud.cell.insert("instance_actions", &row).await;
}

async fn pages(cell: &CellDb, since: &str, limit: u32) -> Vec<ServerHistory> {
    let mut all = Vec::new();
    let mut mark: Option<GoneMark> = None;
    loop {
        let page = cell.gone_servers(at(since), mark.as_ref(), limit).await;
        let (found, next) = page.unwrap();
        assert!(found.len() <= limit as usize);
        all.extend(found);
        mark = next;
        if mark.is_none() {
            return all;
        }
    }
}

async fn preemptible_servers_that_are_gone_have_flavor_times_and_what_was_done_to_them(
    cloud: CloudDatabases,
) {
    let uuid = cloud.add_instance(1, "compute1", START).await;
    // A normal one, one that never came up, the other end of a move between cells, and one that is
    // there.
    for id in 2..=5 {
        cloud.add_instance(id, "compute1", START).await;
    }
    let normal = quote(
        &cloud.cell,
        &flavor_json("true").replace("ebbtide:preemptible", "other"),
    );
    for change in [
        format!(
            "UPDATE instance_extra SET flavor = {normal} WHERE instance_uuid = '{}'",
            instance_uuid(2)
        ),
        "UPDATE instances SET launched_at = NULL WHERE id = 3".to_owned(),
        "UPDATE instances SET hidden = TRUE WHERE id = 4".to_owned(),
        "UPDATE instances SET availability_zone = 'nova' WHERE id = 1".to_owned(),
    ] {
        cloud.cell.sql(&change).await;
    }
    for id in 1..=4 {
        delete(&cloud, id, &format!("2026-01-0{} 10:00:00", id + 3)).await;
    }
    for (action, at) in [
        ("create", "2026-01-01 09:59:00"),
        ("stop", "2026-01-02 10:00:00"),
        ("pause", "2026-01-02 11:00:00"),
        ("start", "2026-01-03 10:00:00"),
        // Within one second.
        ("stop", "2026-01-03 12:00:00"),
        ("start", "2026-01-03 12:00:00"),
        ("delete", "2026-01-04 09:59:58"),
    ] {
        act(&cloud, &uuid, action, at).await;
    }
    let cell = cloud.open_cell().await;
    let found = pages(&cell, START, 100).await;
    let uuids: Vec<&str> = found.iter().map(|h| h.uuid.as_str()).collect();
    assert_eq!(uuids, [instance_uuid(3).as_str(), &uuid]);
    assert_eq!(found[0].launched_at, None);
    let gone = &found[1];
    assert_eq!(
        (gone.launched_at, gone.gone_at),
        (Some(at(START)), Some(at("2026-01-04 10:00:00")))
    );
    assert_eq!(
        gone.changes,
        [
            (at("2026-01-02 10:00:00"), PowerChange::Stops),
            (at("2026-01-03 10:00:00"), PowerChange::Starts),
            (at("2026-01-03 12:00:00"), PowerChange::Stops),
            (at("2026-01-03 12:00:00"), PowerChange::Starts),
            (at("2026-01-04 09:59:58"), PowerChange::Deletes),
        ]
    );
    let flavor = gone.flavor.as_ref().unwrap();
    assert!(flavor.current.is_preemptible() && flavor.current.name == "m1.small");
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    assert_eq!(
        [
            of(&gone.project_id),
            of(&gone.host),
            of(&gone.availability_zone),
            of(&gone.display_name)
        ],
        ["p1", "compute1", "nova", "a server"]
    );
    // By id, whether they are gone or not; the hidden one has its row in another cell.
    let uuids: Vec<String> = (1..=6).map(instance_uuid).collect();
    let mut known = cell.server_histories(&uuids).await.unwrap();
    known.sort_by(|a, b| a.uuid.cmp(&b.uuid));
    let known: Vec<(&str, bool)> = known
        .iter()
        .map(|h| (h.uuid.as_str(), h.gone_at.is_some()))
        .collect();
    let expected = [(0, true), (1, true), (2, true), (4, false)];
    assert_eq!(
        known,
        expected.map(|(place, gone): (usize, bool)| (uuids[place].as_str(), gone))
    );
    assert_eq!(cell.server_histories(&[]).await.unwrap(), []);
}

async fn pages_of_servers_that_are_gone_put_together_are_all_of_them(cloud: CloudDatabases) {
    // Several of one second, and some from before.
    let mut expected = Vec::new();
    for id in 1..=23 {
        let uuid = cloud.add_instance(id, "compute1", START).await;
        let day = 2 + id / 4;
        delete(&cloud, id, &format!("2026-01-{day:02} 10:00:00")).await;
        if day >= 4 {
            expected.push(uuid);
        }
    }
    let cell = cloud.open_cell().await;
    for limit in [1, 2, 5, 16, 23, 1000] {
        let found = pages(&cell, "2026-01-04 10:00:00", limit).await;
        let times: Vec<_> = found.iter().map(|h| h.gone_at).collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{limit}: {times:?}");
        let mut uuids: Vec<String> = found.into_iter().map(|h| h.uuid).collect();
        uuids.sort();
        assert_eq!(uuids, expected, "{limit}");
    }
}

on_every_database!(
    preemptible_servers_that_are_gone_have_flavor_times_and_what_was_done_to_them,
    pages_of_servers_that_are_gone_put_together_are_all_of_them,
);
