//! What the API database offers to projects: flavors and server groups.

use crate::cloud::CloudDatabases;

async fn add_flavor(cloud: &CloudDatabases, id: &str, name: &str, public: &str, disabled: &str) {
    let (flavorid, name) = (format!("'f{id}'"), format!("'{name}'"));
    let row = [
        ("id", id),
        ("name", name.as_str()),
        ("flavorid", &flavorid),
        ("memory_mb", "2000"),
        ("vcpus", "3"),
        ("swap", "512"),
        ("root_gb", "20"),
        ("ephemeral_gb", "5"),
        ("disabled", disabled),
        ("is_public", public),
    ];
    cloud.api.insert("flavors", &row).await;
}

async fn a_flavor_is_found_by_id_and_name_with_those_who_may_use_it(cloud: CloudDatabases) {
    add_flavor(&cloud, "1", "small", "TRUE", "FALSE").await;
    add_flavor(&cloud, "2", "secret", "FALSE", "FALSE").await;
    add_flavor(&cloud, "3", "old", "TRUE", "TRUE").await;
    // Its name is the id of another one.
    add_flavor(&cloud, "4", "f1", "TRUE", "FALSE").await;
    for (id, key, value) in [("1", "'b'", "'1'"), ("2", "'a'", "'2'")] {
        let row = [
            ("id", id),
            ("flavor_id", "1"),
            ("key", key),
            ("value", value),
        ];
        cloud.api.insert("flavor_extra_specs", &row).await;
    }
    let row = [("id", "1"), ("flavor_id", "2"), ("project_id", "'p1'")];
    cloud.api.insert("flavor_projects", &row).await;
    let nova = cloud.open().await;
    let found = nova.flavors_called("f1").await.unwrap();
    let names: Vec<&str> = found.iter().map(|f| f.flavor.name.as_str()).collect();
    assert_eq!(names, ["small", "f1"], "the one with the id is first");
    let flavor = &found[0].flavor;
    let amounts = [
        flavor.vcpus,
        flavor.memory_mb,
        flavor.root_gb,
        flavor.ephemeral_gb,
        flavor.swap,
    ];
    assert_eq!(amounts, [3, 2000, 20, 5, 512]);
    let specs = flavor.extra_specs.as_ref().unwrap().iter();
    let specs: Vec<(&str, &str)> = specs.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        specs,
        [("b", "1"), ("a", "2")],
        "in the order of Nova's rows"
    );
    for (name, project, may) in [
        ("small", "p2", true),
        ("secret", "p1", true),
        ("secret", "p2", false),
        ("old", "p1", false),
    ] {
        let found = nova.flavors_called(name).await.unwrap();
        assert_eq!(found[0].is_for(project), may, "{name} {project}");
    }
    assert!(nova.flavors_called("none").await.unwrap().is_empty());
    // All at once, without those of which no servers are built.
    let sold = nova.flavors_for_sale().await.unwrap();
    let each = async |name: &str| nova.flavors_called(name).await.unwrap().remove(0);
    assert_eq!(
        sold,
        [each("small").await, each("secret").await, {
            let mut both = nova.flavors_called("f1").await.unwrap();
            both.remove(1)
        }]
    );
}

async fn hints_of_servers_are_read_by_their_name(cloud: CloudDatabases) {
    let uuid = |n: u8| format!("66666666-6666-4666-8666-66666666666{n}");
    let specs = [
        (
            1,
            r#"{"scheduler_hints": {"ebbtide:max_price": ["0.03"], "group": ["g"]}}"#,
        ),
        (2, r#"{"scheduler_hints": {"group": ["g"]}}"#),
        (3, r#"{"scheduler_hints": null}"#),
        (
            4,
            r#"{"scheduler_hints": {"ebbtide:max_price": ["1", "2"]}}"#,
        ),
    ];
    for (n, data) in specs {
        let spec =
            format!(r#"'{{"nova_object.name": "RequestSpec", "nova_object.data": {data}}}'"#);
        let (id, text) = (n.to_string(), format!("'{}'", uuid(n)));
        let row = [
            ("id", id.as_str()),
            ("instance_uuid", &text),
            ("spec", &spec),
        ];
        cloud.api.insert("request_specs", &row).await;
    }
    let nova = cloud.open().await;
    // One more than a statement takes; most of them do not exist.
    let asked: Vec<String> = (1..=4)
        .map(uuid)
        .chain((0..200).map(|n| format!("77777777-7777-4777-8777-{n:012}")))
        .collect();
    let hints = nova.hints_of("ebbtide:max_price", &asked).await.unwrap();
    assert_eq!(hints.len(), 2);
    assert_eq!(hints[&uuid(1)], ["0.03"]);
    assert_eq!(hints[&uuid(4)], ["1", "2"]);
    assert!(nova.hints_of("group", &[]).await.unwrap().is_empty());
}

async fn server_groups_are_listed_with_their_owners_and_policies(cloud: CloudDatabases) {
    let uuid = |n: u8| format!("55555555-5555-4555-8555-55555555555{n}");
    for (id, project) in [("1", "'p1'"), ("2", "'p2'"), ("3", "'p1'")] {
        let uuid = format!("'{}'", uuid(id.parse().unwrap()));
        let row = [
            ("id", id),
            ("uuid", uuid.as_str()),
            ("name", "'db'"),
            ("project_id", project),
        ];
        cloud.api.insert("instance_groups", &row).await;
    }
    let rules = "'{\"max_server_per_host\": \"2\"}'";
    for (id, group, policy, rules) in [
        ("1", "1", "'anti-affinity'", rules),
        ("2", "1", "'affinity'", "NULL"),
        ("3", "3", "'affinity'", "NULL"),
    ] {
        let row = [
            ("id", id),
            ("group_id", group),
            ("policy", policy),
            ("rules", rules),
        ];
        cloud.api.insert("instance_group_policy", &row).await;
    }
    let nova = cloud.open().await;
    let all = nova.groups().await.unwrap();
    let seen: Vec<(String, &str, Option<&str>)> = all
        .iter()
        .map(|g| (g.uuid.clone(), g.project_id.as_str(), g.policy.as_deref()))
        .collect();
    let wanted = [
        (uuid(1), "p1", Some("anti-affinity")),
        (uuid(2), "p2", None),
        (uuid(3), "p1", Some("affinity")),
    ];
    assert_eq!(seen, wanted, "of several policies the first counts");
    assert_eq!(
        all[0].rules.as_deref(),
        Some(r#"{"max_server_per_host": "2"}"#)
    );
    let one = nova.group(&uuid(1)).await.unwrap().unwrap();
    assert_eq!(one, all[0]);
}

on_every_database!(
    a_flavor_is_found_by_id_and_name_with_those_who_may_use_it,
    hints_of_servers_are_read_by_their_name,
    server_groups_are_listed_with_their_owners_and_policies,
);
