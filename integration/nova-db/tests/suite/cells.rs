//! Cells, aggregates, host mappings, groups.

use crate::cloud::{CELL0, CELL1, CloudDatabases, at};
use ebbtide_nova_db::{HostMapping, NovaDb, Secret};

async fn cells_are_read_with_their_templates_filled_in(cloud: CloudDatabases) {
    cloud
        .map_cell(
            7,
            "77777777-7777-4777-8777-777777777777",
            "templated",
            "{scheme}://{hostname}/x",
        )
        .await;
    cloud
        .api
        .sql("UPDATE cell_mappings SET disabled = TRUE WHERE id = 7")
        .await;
    cloud.api.sql("UPDATE cell_mappings SET transport_url = 'rabbit://{username}:{password}@other:{port}/{path}' WHERE id = 7").await;
    cloud
        .map_cell(
            8,
            "88888888-8888-4888-8888-888888888888",
            "bad",
            "mysql://nova:hidden@h",
        )
        .await;
    let mut config = cloud.config();
    config.main_url = Secret::new("mysql+pymysql://nova:main-secret@db.example/nova_cell1");
    let db = NovaDb::connect(&config).await.unwrap();
    let cells = db.known_cells();
    let names: Vec<_> = cells
        .iter()
        .map(|cell| cell.name.as_deref().unwrap())
        .collect();
    assert_eq!(names, ["cell0", "cell1", "templated", "bad"]);
    assert!(cells[0].is_cell0() && cells[0].uuid == CELL0 && !cells[1].is_cell0());
    assert!(cells[2].disabled && !cells[1].disabled);
    assert_eq!(
        cells[2].database_connection.expose(),
        "mysql+pymysql://db.example/x"
    );
    assert_eq!(
        cells[2].transport_url.expose(),
        "rabbit://conf:conf-secret@other:5672/nova"
    );
    let shown = format!("{cells:?} {db:?} {:?}", db.cell(CELL1).unwrap());
    for secret in ["main-secret", "conf-secret", "rabbit-secret", "hidden"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    // Neither cell0, nor disabled, nor one that cannot be used.
    let enabled = db.enabled_cells();
    assert_eq!(
        enabled.iter().map(|cell| cell.uuid()).collect::<Vec<_>>(),
        [CELL1]
    );
    assert_eq!(enabled[0].label(), "cell cell1");
    let bad = db.cell("88888888-8888-4888-8888-888888888888").unwrap_err();
    assert_eq!(bad.code(), "EB-NOVADB-004");
    assert!(
        bad.to_string().contains("cell bad") && !bad.to_string().contains("hidden"),
        "{bad}"
    );
    assert_eq!(db.cell("x").unwrap_err().code(), "EB-NOVADB-005");
}

async fn cells_that_come_and_go_are_noticed_when_they_are_read_again(cloud: CloudDatabases) {
    let db = cloud.open().await;
    let before = db.cell(CELL1).unwrap();
    cloud
        .api
        .sql("UPDATE cell_mappings SET disabled = TRUE WHERE id = 2")
        .await;
    assert_eq!(db.enabled_cells().len(), 1);
    db.cells().await.unwrap();
    assert!(db.enabled_cells().is_empty());
    // Nothing of its connections changed.
    before.ping().await.unwrap();
    cloud
        .api
        .sql("DELETE FROM cell_mappings WHERE id = 2")
        .await;
    db.cells().await.unwrap();
    assert_eq!(db.cell(CELL1).unwrap_err().code(), "EB-NOVADB-005");
    assert_eq!(before.ping().await.unwrap_err().code(), "EB-NOVADB-001");
}

async fn aggregates_come_with_their_hosts_and_metadata(cloud: CloudDatabases) {
    for (id, name) in [("3", "'b'"), ("1", "'a'")] {
        let uuid = format!("'44444444-4444-4444-8444-00000000000{id}'");
        cloud
            .api
            .insert("aggregates", &[("id", id), ("uuid", &uuid), ("name", name)])
            .await;
    }
    for (aggregate, host) in [("1", "'h2'"), ("1", "'h1'"), ("3", "'h2'")] {
        cloud
            .api
            .insert(
                "aggregate_hosts",
                &[("aggregate_id", aggregate), ("host", host)],
            )
            .await;
    }
    for (aggregate, key, value) in [
        ("3", "'availability_zone'", "'az1'"),
        ("3", "'ssd'", "'true'"),
    ] {
        let row = [("aggregate_id", aggregate), ("key", key), ("value", value)];
        cloud.api.insert("aggregate_metadata", &row).await;
    }
    let db = cloud.open().await;
    let all = db.aggregates().await.unwrap();
    assert_eq!(
        all.iter()
            .map(|a| (a.id, a.name.as_str()))
            .collect::<Vec<_>>(),
        [(1, "a"), (3, "b")]
    );
    assert_eq!(all[0].hosts, ["h2", "h1"]);
    assert_eq!(
        all[1].metadata.get("availability_zone").map(String::as_str),
        Some("az1")
    );
    assert_eq!(all[1].uuid, "44444444-4444-4444-8444-000000000003");
    assert_eq!(db.aggregates_of_host("h1").await.unwrap(), all[..1]);
    assert_eq!(db.aggregates_of_host("h2").await.unwrap(), all);
    assert!(db.aggregates_of_host("h3").await.unwrap().is_empty());
}

async fn flavors_come_with_their_extra_specs(cloud: CloudDatabases) {
    let db = cloud.open().await;
    assert_eq!(db.flavors().await.unwrap(), []);
    for (id, name) in [("2", "'spot'"), ("1", "'plain'")] {
        let flavorid = format!("'id-{id}'");
        let row = [
            ("id", id),
            ("name", name),
            ("flavorid", &flavorid),
            ("memory_mb", "512"),
            ("vcpus", "1"),
            ("swap", "0"),
        ];
        cloud.api.insert("flavors", &row).await;
    }
    for (key, value) in [("'ebbtide:preemptible'", "'true'"), ("'empty'", "NULL")] {
        let row = [("flavor_id", "2"), ("key", key), ("value", value)];
        cloud.api.insert("flavor_extra_specs", &row).await;
    }
    let [plain, spot] = db.flavors().await.unwrap().try_into().unwrap();
    assert_eq!((plain.name.as_str(), plain.extra_specs.len()), ("plain", 0));
    assert_eq!(
        (spot.name.as_str(), spot.flavorid.as_str()),
        ("spot", "id-2")
    );
    let specs: Vec<_> = spot.extra_specs.iter().collect();
    let said = |text: &str| text.to_owned();
    assert_eq!(
        specs,
        [
            (&said("ebbtide:preemptible"), &said("true")),
            (&said("empty"), &said(""))
        ]
    );
}

async fn records_of_schedulers_are_those_of_no_other_service(cloud: CloudDatabases) {
    let db = cloud.open().await;
    let seen = "'2026-01-01 00:00:10'";
    cloud.add_service(1, "scheduler", seen, 64).await;
    cloud.add_service(2, "conductor", seen, 65).await;
    let [record] = db.schedulers().await.unwrap().try_into().unwrap();
    assert_eq!((record.host.as_str(), record.version), ("scheduler1", 64));
    assert_eq!(record.last_seen_up, Some(at("2026-01-01 00:00:10")));
}

async fn hosts_are_mapped_to_cells_and_new_ones_are_seen(cloud: CloudDatabases) {
    let db = cloud.open().await;
    for (host, when) in [
        ("'h1'", "'2026-01-01 00:00:00'"),
        ("'h2'", "'2026-01-01 00:00:10'"),
    ] {
        let row = [("cell_id", "2"), ("host", host), ("created_at", when)];
        cloud.api.insert("host_mappings", &row).await;
    }
    let mapping = |host: &str| HostMapping {
        host: host.to_owned(),
        cell_uuid: CELL1.to_owned(),
    };
    assert_eq!(db.host_mapping("h2").await.unwrap(), Some(mapping("h2")));
    assert_eq!(db.host_mapping("h3").await.unwrap(), None);
    assert_eq!(
        db.host_mappings().await.unwrap(),
        [mapping("h1"), mapping("h2")]
    );
    let since = at("2026-01-01 00:00:10.900000");
    assert_eq!(
        db.host_mappings_changed(since).await.unwrap(),
        [mapping("h2")]
    );
    cloud
        .api
        .sql("UPDATE host_mappings SET updated_at = '2026-01-02 00:00:00' WHERE host = 'h1'")
        .await;
    let since = at("2026-01-02 00:00:00");
    assert_eq!(
        db.host_mappings_changed(since).await.unwrap(),
        [mapping("h1")]
    );
}

async fn groups_are_found_by_their_members(cloud: CloudDatabases) {
    let uuid = "'55555555-5555-4555-8555-555555555555'";
    cloud
        .api
        .insert(
            "instance_groups",
            &[("id", "4"), ("uuid", uuid), ("name", "'g'")],
        )
        .await;
    for instance in ["'i1'", "'i2'"] {
        cloud
            .api
            .insert(
                "instance_group_member",
                &[("group_id", "4"), ("instance_uuid", instance)],
            )
            .await;
    }
    let rules = "'{\"max_server_per_host\": 3}'";
    let policy = [
        ("group_id", "4"),
        ("policy", "'anti-affinity'"),
        ("rules", rules),
    ];
    cloud.api.insert("instance_group_policy", &policy).await;
    let db = cloud.open().await;
    let group = db.group_of("i2").await.unwrap().unwrap();
    assert_eq!(group.policy.as_deref(), Some("anti-affinity"));
    assert_eq!(group.members, ["i1", "i2"]);
    assert_eq!(group.rules.as_deref(), Some("{\"max_server_per_host\": 3}"));
    assert_eq!(db.group_of("i3").await.unwrap(), None);
    assert_eq!(db.group("x").await.unwrap(), None);
    let names = ["i1", "i3"].map(str::to_owned);
    let found = db.group_uuids(&names).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found["i1"], group.uuid);
}

on_every_database!(
    cells_are_read_with_their_templates_filled_in,
    cells_that_come_and_go_are_noticed_when_they_are_read_again,
    aggregates_come_with_their_hosts_and_metadata,
    flavors_come_with_their_extra_specs,
    records_of_schedulers_are_those_of_no_other_service,
    hosts_are_mapped_to_cells_and_new_ones_are_seen,
    groups_are_found_by_their_members,
);
