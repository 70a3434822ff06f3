//! The scheduler's own record, and the versions of the computes.

use crate::cloud::{CELL0, CloudDatabases};
use ebbtide_nova_db::{NovaRelease, OldComputePolicy, OwnService};

const START: &str = "'2026-01-01 10:00:00'";

async fn the_record_is_made_once_and_beats(cloud: CloudDatabases) {
    cloud.add_service(1000, "compute", START, 64).await;
    let db = cloud.open().await;
    let shown = db.shown_release().await.unwrap();
    let release = shown.after(None).unwrap();
    assert_eq!(
        release,
        NovaRelease {
            service_version: 64,
            oldest_compute: 61
        }
    );
    let own = OwnService::start(&db, "controller", release, OldComputePolicy::Refuse)
        .await
        .unwrap();
    let first = own.beat().await.unwrap();
    let second = own.beat().await.unwrap();
    assert_eq!((first.report_count, second.report_count), (1, 2));
    assert_eq!((second.version, second.disabled), (64, false));
    assert_eq!(second.uuid.as_ref().map(String::len), Some(36));
    // A restart finds it, and an operator's word in it.
    cloud
        .cell
        .sql("UPDATE services SET disabled = TRUE WHERE topic = 'scheduler'")
        .await;
    let newer = NovaRelease {
        service_version: 74,
        oldest_compute: 61,
    };
    let again = OwnService::start(&db, "controller", newer, OldComputePolicy::Refuse)
        .await
        .unwrap();
    let third = again.beat().await.unwrap();
    assert_eq!(
        (third.id, third.report_count, third.disabled, third.version),
        (second.id, 3, true, 74)
    );
    assert_eq!(third.uuid, second.uuid);
    let other = OwnService::start(&db, "controller2", release, OldComputePolicy::Refuse)
        .await
        .unwrap();
    assert_ne!(other.beat().await.unwrap().id, second.id);
    cloud
        .cell
        .sql("UPDATE services SET deleted = id WHERE host = 'controller'")
        .await;
    let gone = own.beat().await.unwrap_err();
    assert_eq!(gone.code(), "EB-NOVADB-007");
    // Started again, it makes a new one.
    let new = OwnService::start(&db, "controller", release, OldComputePolicy::Refuse)
        .await
        .unwrap();
    assert_eq!(new.beat().await.unwrap().report_count, 1);
}

async fn a_first_start_in_an_empty_cloud_follows_the_release_that_services_show_later(
    cloud: CloudDatabases,
) {
    let db = cloud.open().await;
    let nothing = db.shown_release().await.unwrap();
    assert_eq!(nothing.newest, None, "no service has a record yet");
    // The record exists before any other, with a version that keeps no nova-scheduler from
    // starting.
    let unknown = NovaRelease::of_version(0);
    let own = OwnService::start(&db, "controller", unknown, OldComputePolicy::Refuse)
        .await
        .unwrap();
    assert_eq!(own.beat().await.unwrap().version, 64);
    let still = db.shown_release().await.unwrap();
    assert_eq!(still.newest, None, "our own record tells nothing");
    cloud.add_service(1000, "conductor", START, 74).await;
    let seen = db.shown_release().await.unwrap().after(None).unwrap();
    assert_eq!((seen.service_version, seen.major()), (74, 34));
    own.set_release(seen).await.unwrap();
    assert_eq!(own.beat().await.unwrap().version, 74);
}

async fn computes_that_are_too_old_keep_us_from_starting(cloud: CloudDatabases) {
    let db = cloud.open().await;
    let release = NovaRelease::of_version(64);
    assert_eq!(db.min_compute_version().await.unwrap(), 0);
    OwnService::start(&db, "fresh", release, OldComputePolicy::Refuse)
        .await
        .unwrap();
    for (id, version) in [(1001, 64), (1002, 60), (1003, 0), (1004, 40)] {
        cloud.add_service(id, "compute", START, version).await;
    }
    cloud.add_service(1005, "conductor", START, 30).await;
    cloud
        .cell
        .sql("UPDATE services SET forced_down = TRUE WHERE id = 1004")
        .await;
    // A cell that does not answer is left out; that is cell0 here, whose database has no such
    // table.
    assert!(db.cell(CELL0).is_ok());
    // One service without a version hides the others of its cell, as Nova has it.
    assert_eq!(db.min_compute_version().await.unwrap(), 0);
    cloud
        .cell
        .sql("UPDATE services SET deleted = id WHERE id = 1003")
        .await;
    assert_eq!(db.min_compute_version().await.unwrap(), 60);
    let error = OwnService::start(&db, "c", release, OldComputePolicy::Refuse)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-NOVADB-006");
    assert!(
        error.to_string().contains("60") && error.to_string().contains("61"),
        "{error}"
    );
    OwnService::start(&db, "c", release, OldComputePolicy::Warn)
        .await
        .unwrap();
}

async fn new_hosts_are_mapped_to_their_cell_once(cloud: CloudDatabases) {
    cloud.add_host(1, "2026-01-01 10:00:00").await;
    cloud.add_host(2, "2026-01-01 10:00:00").await;
    cloud.api.sql("DELETE FROM host_mappings").await;
    cloud.cell.sql("UPDATE compute_nodes SET mapped = 0").await;
    let (one, other) = (cloud.open().await, cloud.open().await);
    let (found, too) = tokio::join!(one.discover_hosts(), other.discover_hosts());
    let mut found = found.unwrap();
    found.extend(too.unwrap());
    found.sort_by(|a, b| a.host.cmp(&b.host));
    assert_eq!(found.len(), 2, "{found:?}");
    let mut mapped = one.host_mappings().await.unwrap();
    mapped.sort_by(|a, b| a.host.cmp(&b.host));
    assert_eq!(mapped, found);
    // Nothing is left to be done, and a node that lost its mark is no new host.
    cloud
        .cell
        .sql("UPDATE compute_nodes SET mapped = 0 WHERE id = 1")
        .await;
    assert_eq!(one.discover_hosts().await.unwrap(), []);
}

on_every_database!(
    new_hosts_are_mapped_to_their_cell_once,
    the_record_is_made_once_and_beats,
    a_first_start_in_an_empty_cloud_follows_the_release_that_services_show_later,
    computes_that_are_too_old_keep_us_from_starting,
);
