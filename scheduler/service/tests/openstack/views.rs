//! What an operator of an OpenStack reads, and what OpenStack does itself.

use super::kit::{HOST, OpenStack, server};
use crate::curl::{Events, ask};
use serde_json::{Value, json};
use std::time::Duration;

async fn read(cloud: &OpenStack, path: &str) -> Value {
    let answer = ask(cloud, &cloud.keystone.admin, path, &[]).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

fn vcpus(resources: &Value) -> Value {
    let all = resources.as_array().unwrap();
    let found = all.iter().find(|one| one["resource_class"] == "VCPU");
    found.unwrap_or_else(|| panic!("{resources}")).clone()
}

#[tokio::test]
async fn an_operator_sees_both_states_and_the_deadlines() {
    let cloud = OpenStack::start("").await;
    let hosts = read(&cloud, "/v1/hosts").await;
    let host = &hosts["hosts"][0];
    assert_eq!(
        (&host["name"], &host["health"], &host["preemptible_servers"]),
        (&json!(HOST), &json!("up"), &json!(4)),
        "{host}"
    );
    // Four servers of two VCPUs on eight; the two that are leaving cannot be evicted once more.
    let seen = vcpus(&host["resources"]);
    let figures = ["capacity", "free_full", "free_normal", "preemptible"];
    let figures = figures.map(|name| seen[name].to_string().replace('"', ""));
    assert_eq!(figures, ["8", "0", "4", "4"], "{seen}");

    let one = read(&cloud, &format!("/v1/hosts/{HOST}")).await;
    let servers = one["servers"].as_array().unwrap();
    let status = |n: i64| {
        let id = json!(server(n).to_string());
        let found = servers.iter().find(|server| server["id"] == id).unwrap();
        (found["status"].clone(), found["deadline_at"].clone())
    };
    let deadline = json!(cloud.deadline.to_string());
    assert_eq!(status(1), (json!("active"), json!("")));
    assert_eq!(status(2), (json!("evacuating"), deadline));

    let region = read(&cloud, "/v1/region").await;
    assert_eq!(
        region["servers"],
        json!({"active": 2, "evacuating": 2}),
        "{region}"
    );
    assert_eq!(
        vcpus(&region["resources"])["total"]
            .to_string()
            .replace('"', ""),
        "8"
    );
    assert_eq!(region["database"], "SQLite");

    let paged = read(&cloud, "/v1/servers?limit=3").await;
    assert_eq!(paged["servers"].as_array().unwrap().len(), 3);
    let named = read(&cloud, "/v1/servers/web-4").await;
    assert_eq!(named["server"]["id"], json!(server(4).to_string()));
    let decisions = read(&cloud, "/v1/decisions").await;
    assert_eq!(decisions["decisions"], json!([]));
    cloud.end().await;
}

#[tokio::test]
async fn what_openstack_does_itself_is_named() {
    let cloud = OpenStack::start("").await;
    let admin = &cloud.keystone.admin;
    let id = server(1);
    let server = format!("/v1/servers/{id}");
    let create = json!({"name": "a", "request": {"flavor": "m1.small"}}).to_string();
    let delete = ["--request", "DELETE"];
    for (path, options, code, words) in [
        (
            "/v1/servers",
            &["--json", &create][..],
            "EB-SERVICE-012",
            "openstack server create",
        ),
        (
            &server,
            &delete,
            "EB-SERVICE-012",
            "openstack server delete",
        ),
        (
            "/v1/flavors/m1.small",
            &delete,
            "EB-SERVICE-012",
            "openstack flavor delete",
        ),
        ("/v1/audit", &[], "EB-SERVICE-012", "ebbtide-manage audit"),
    ] {
        let answer = ask(&cloud, admin, path, options).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["code"]),
            (501, &json!(code)),
            "{problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{path}: {detail}");
    }
    cloud.end().await;
}

/// How they reach all schedulers is tested with databases, in `over_model/plugins.rs`.
#[tokio::test]
async fn plugins_are_the_operators_and_need_a_database_to_be_changed() {
    let cloud = OpenStack::start("").await;
    let admin = &cloud.keystone.admin;
    let listed = read(&cloud, "/v1/plugins").await;
    assert_eq!(listed["plugins"], json!([]));
    let add = json!({"name": "far", "address": "http://127.0.0.1:9"}).to_string();
    let refused = ask(&cloud, admin, "/v1/plugins", &["--json", &add]).await;
    let problem = refused.json();
    assert_eq!(problem["code"], json!("EB-PLUGIN-011"), "{problem}");
    let member = &cloud.keystone.token_of("ada").await;
    for options in [&[][..], &["--json", &add]] {
        let refused = ask(&cloud, member, "/v1/plugins", options).await;
        assert_eq!(refused.status, 403, "{}", refused.json());
    }
    cloud.end().await;
}

#[tokio::test]
async fn a_tenant_releases_its_own_leaving_server_and_no_other() {
    let cloud = OpenStack::start("").await;
    let member = &cloud.keystone.token_of("ada").await;
    let reader = &cloud.keystone.token_of("rita").await;
    let release = async |token: &str, n: i64| {
        let path = format!("/v1/servers/{}/release", server(n));
        ask(&cloud, token, &path, &["--json", "{}"]).await
    };
    let own = release(member, 2).await;
    let evacuation = &own.json()["evacuation"];
    assert_eq!(own.status, 200, "{evacuation}");
    assert_eq!(evacuation["id"], json!(cloud.evacuations[0].to_string()));
    assert_eq!(evacuation["preemptor_id"], json!(""), "{evacuation}");
    let stays = release(member, 1).await;
    assert_eq!(stays.status, 409, "{}", stays.json());
    let detail = stays.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("openstack server delete"), "{detail}");
    assert_eq!(release(member, 3).await.status, 404, "another tenant's");
    assert_eq!(release(reader, 2).await.status, 403, "a reader");
    assert_eq!(release(&cloud.keystone.admin, 3).await.status, 200);
    cloud.end().await;
}

/// Without requests for hosts, only the call itself reads Nova's databases.
#[tokio::test]
async fn an_answer_is_as_novas_databases_are_now() {
    let cloud = OpenStack::start("").await;
    let count = async || {
        let all = read(&cloud, "/v1/servers").await;
        all["servers"].as_array().unwrap().len()
    };
    assert_eq!(count().await, 4);
    cloud.server_goes(4).await;
    assert_eq!(count().await, 3);
    let region = read(&cloud, "/v1/region").await;
    assert_eq!(region["servers"]["active"], 1, "{region}");
    cloud.end().await;
}

#[tokio::test]
async fn a_watcher_is_told_of_a_server_that_begins_to_leave() {
    let cloud = OpenStack::start("").await;
    let tenant = cloud.keystone.token_of("ada").await;
    let mut events = Events::of(&cloud, &tenant, "/v1/events");
    // A reader is told of what changes once the first look is taken. So changes go on until it is.
    let changes = async {
        for vm_state in ["stopped", "active"].into_iter().cycle() {
            cloud.servers_become(vm_state).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    let told = async {
        loop {
            let event = events.next().await;
            assert!(!event.is_empty(), "the stream has ended");
            let data = event.iter().find_map(|line| line.strip_prefix("data: "));
            let Some(data) = data else { continue };
            let data: Value = serde_json::from_str(data).unwrap();
            if data["server"].is_object() {
                return data["server"].clone();
            }
        }
    };
    let told = tokio::time::timeout(Duration::from_secs(30), async {
        tokio::select! {
            told = told => told,
            () = changes => unreachable!("changes go on"),
        }
    });
    let server = told.await.unwrap();
    // Servers 3 and 4, which change as well, are another project's.
    assert_eq!(
        server["project_id"],
        json!(cloud.keystone.project),
        "{server}"
    );
    cloud.end().await;
}
