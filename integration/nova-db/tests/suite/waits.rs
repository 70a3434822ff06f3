//! Whether anybody waits for the answer to a request.

use crate::cloud::{CloudDatabases, instance_uuid};
use ebbtide_nova_db::CallerWait;

const START: &str = "2026-01-01 10:00:00";

async fn a_caller_waits_while_its_build_request_or_its_task_state_says_so(cloud: CloudDatabases) {
    let db = cloud.open().await;
    let uuid = instance_uuid(1);
    let text = format!("'{uuid}'");
    assert!(
        !db.caller_waits(&uuid).await.unwrap().waits(),
        "it is unknown"
    );
    cloud
        .api
        .insert(
            "instance_mappings",
            &[("instance_uuid", &text), ("project_id", "'p'")],
        )
        .await;
    assert!(
        !db.caller_waits(&uuid).await.unwrap().waits(),
        "it is in no cell"
    );
    cloud
        .api
        .insert(
            "build_requests",
            &[("instance_uuid", &text), ("project_id", "'p'")],
        )
        .await;
    assert_eq!(db.caller_waits(&uuid).await.unwrap(), CallerWait::Build);
    assert!(db.build_request_exists(&uuid).await.unwrap());
    cloud.api.sql("DELETE FROM build_requests").await;
    cloud
        .api
        .sql("UPDATE instance_mappings SET cell_id = 1")
        .await;
    let CallerWait::Gone(why) = db.caller_waits(&uuid).await.unwrap() else {
        panic!("it is buried");
    };
    assert!(why.contains("cell0"), "{why}");
    cloud
        .api
        .sql("UPDATE instance_mappings SET cell_id = 2")
        .await;
    assert!(
        !db.caller_waits(&uuid).await.unwrap().waits(),
        "it is not in its cell"
    );
    cloud.add_instance(1, "compute1", START).await;
    let states = [
        ("'scheduling'", true),
        ("'resize_prep'", true),
        ("'migrating'", true),
        ("'rebuilding'", true),
        ("'unshelving'", true),
        ("NULL", false),
        ("'spawning'", false),
        ("'deleting'", false),
        ("'resize_migrating'", false),
    ];
    for (state, waits) in states {
        cloud
            .cell
            .sql(&format!("UPDATE instances SET task_state = {state}"))
            .await;
        let found = db.caller_waits(&uuid).await.unwrap();
        assert_eq!(found.waits(), waits, "{state}: {found:?}");
    }
    cloud
        .cell
        .sql("UPDATE instances SET task_state = 'migrating', deleted = id")
        .await;
    assert!(
        !db.caller_waits(&uuid).await.unwrap().waits(),
        "it was deleted"
    );
}

on_every_database!(a_caller_waits_while_its_build_request_or_its_task_state_says_so);
