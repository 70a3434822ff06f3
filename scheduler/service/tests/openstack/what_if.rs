//! What-ifs over both transports: what an operator is told, and what a tenant is not.

use super::kit::{HOST, NEWCOMER, OTHER_PROJECT, OpenStack, server};
use crate::curl::{HttpService, ask};
use crate::region::{Region, with};
use ebbtide_engine::Engine;
use ebbtide_model::{DecisionOutcome, PlacementRequest, ServerId};
use ebbtide_proto::v1;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_region::{CountingIds, RECORD_FORMAT, RegionRecord};
use serde_json::{Value, json};
use std::sync::Arc;
use tonic::Code;
use tonic::transport::Endpoint;

/// Nothing about the flavor.
const PLAIN: (&str, &str) = ("quota:cpu_shares", "1");
/// The four VCPUs of this flavor are there if servers 1 and 4 leave: 2 and 3 are leaving already.
const LARGE: &str = "large";

async fn cloud() -> OpenStack {
    let cloud = OpenStack::start("").await;
    cloud.sell(1, LARGE, 4, PLAIN).await;
    cloud.sell(2, "huge", 6, PLAIN).await;
    cloud.sell(3, "numa", 1, ("hw:numa_nodes", "2")).await;
    cloud
        .sell(4, "fpga", 1, ("accel:device_profile", "fpga"))
        .await;
    cloud
}

async fn asked(cloud: &impl HttpService, token: &str, question: &Value) -> (u16, Value) {
    let body = question.to_string();
    let answer = ask(cloud, token, "/v1/what-if", &["--json", &body]).await;
    (answer.status, answer.json())
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().unwrap_or_default())
}

/// Ids of victims in an answer.
fn victims(answer: &Value) -> Vec<&str> {
    let placement = &answer["decision"]["placements"][0];
    assert_eq!(placement["host"], json!(HOST), "{answer}");
    let victims = placement["victims"].as_array().unwrap();
    let mut ids: Vec<&str> = victims
        .iter()
        .map(|victim| victim["server_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn an_operator_is_told_the_host_the_victims_and_why() {
    let cloud = cloud().await;
    let admin = &cloud.keystone.admin;
    let project = &cloud.keystone.project;
    let question = json!({"request": {"flavor": LARGE, "project_id": project}});
    let (status, answer) = asked(&cloud, admin, &question).await;
    assert_eq!(status, 200, "{answer}");
    let [first, last] = [1, 4].map(|n| server(n).to_string());
    assert_eq!(victims(&answer), [first.as_str(), last.as_str()]);
    let notice = answer["notices"][0].as_str().unwrap();
    assert!(notice.starts_with("EB-SERVICE-015"), "{notice}");
    let steps = &answer["decision"]["explanation"]["instances"][0]["filters"];
    assert!(!steps.as_array().unwrap().is_empty(), "{answer}");
    // Nothing is kept of it.
    let list = ask(&cloud, admin, "/v1/decisions", &[]).await.json();
    assert_eq!(list["decisions"], json!([]));

    let question = json!({"request": {"flavor": "f2", "project_id": project}});
    let (_, answer) = asked(&cloud, admin, &question).await;
    let reason = answer["decision"]["no_valid_host"]["reason"].as_str();
    assert!(
        reason.unwrap().contains("no server can be preempted"),
        "{answer}"
    );

    let image = json!({"id": "i", "properties": {"hw_machine_type": "q35"}});
    let question = json!({"request": {"flavor": LARGE, "project_id": project}, "image": image});
    let (_, answer) = asked(&cloud, admin, &question).await;
    assert_eq!(answer["notices"], json!([]), "{answer}");
    for (question, wanted) in [
        (
            json!({"request": {"flavor": "none"}}),
            (404, "EB-SERVICE-001"),
        ),
        (
            json!({"request": {"flavor": "fpga"}}),
            (501, "EB-SERVICE-014"),
        ),
        (
            // Two cells of one CPU.
            json!({"request": {"flavor": "numa"}}),
            (400, "EB-SERVICE-002"),
        ),
        (
            json!({"request": {"flavor": LARGE, "group": "none"}}),
            (404, "EB-SERVICE-001"),
        ),
        (
            json!({"request": {"flavor": LARGE, "server_ids": [server(1).to_string()]}}),
            (400, "EB-SERVICE-002"),
        ),
        (
            json!({"request": {"flavor": LARGE}, "scheduler_hints": {"group": {"values": ["x"]}}}),
            (400, "EB-SERVICE-002"),
        ),
    ] {
        let answer = asked(&cloud, admin, &question).await;
        assert_eq!(code(&answer), wanted, "{question}: {}", answer.1);
    }
    cloud.end().await;
}

#[tokio::test]
async fn an_engine_decides_on_a_record_as_the_cloud_itself() {
    let cloud = cloud().await;
    let admin = &cloud.keystone.admin;
    let path = "/v1/region/record";
    let answer = ask(&cloud, admin, path, &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let record: RegionRecord = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(record.format, RECORD_FORMAT);
    let flavors = &record.state.flavors;
    let engine = || Arc::new(Engine::new(record.engine.clone()).unwrap());
    let region = record.region(engine()).unwrap();
    for name in [LARGE, "huge"] {
        let request = PlacementRequest {
            server_ids: vec![ServerId(NEWCOMER)],
            project_id: cloud.keystone.project.clone(),
            flavor: flavors.iter().find(|f| f.name == name).unwrap().clone(),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        };
        let decided = region.what_if(record.at, &mut CountingIds::after(0), &request);
        let on_record = match decided.unwrap().outcome {
            DecisionOutcome::Placed(placed) => {
                let mut victims: Vec<String> = placed[0]
                    .victims
                    .iter()
                    .map(|v| v.server_id.to_string())
                    .collect();
                victims.sort_unstable();
                Some(victims)
            }
            DecisionOutcome::NoValidHost(_) => None,
        };
        let question = json!({"request": {"flavor": name, "project_id": cloud.keystone.project}});
        let (_, answer) = asked(&cloud, admin, &question).await;
        let placed = answer["decision"]["placements"].as_array().unwrap();
        let there = (!placed.is_empty()).then(|| victims(&answer));
        let there = there.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(on_record, there, "{name}: {answer}");
    }
    let tenant = &cloud.keystone.token_of("ada").await;
    assert_eq!(ask(&cloud, tenant, path, &[]).await.status, 403);
    cloud.end().await;
}

#[tokio::test]
async fn a_tenant_asks_for_its_own_project_and_sees_no_other_server() {
    let cloud = cloud().await;
    let tenant = cloud.keystone.token_of("ada").await;
    let own_group = cloud.group(1, "db", &cloud.keystone.project).await;
    let other_group = cloud.group(2, "theirs", OTHER_PROJECT).await;
    let plain = json!({"request": {"flavor": LARGE}});
    let (status, answer) = asked(&cloud, &tenant, &plain).await;
    assert_eq!(status, 200, "{answer}");
    let own = server(1).to_string();
    let unnamed = "";
    let many = json!({"same_host": {"values": vec![server(1).to_string(); 33]}});
    let many = json!({"request": {"flavor": LARGE}, "scheduler_hints": many});
    let refused = asked(&cloud, &tenant, &many).await;
    assert_eq!(code(&refused), (400, "EB-SERVICE-002"), "{}", refused.1);
    let seen = victims(&answer);
    assert_eq!(seen, [unnamed, own.as_str()], "{answer}");
    let text = answer.to_string();
    for secret in [
        server(4).to_string(),
        "web-4".to_owned(),
        format!("\"{OTHER_PROJECT}\""),
    ] {
        assert!(!text.contains(&secret), "{secret} in {text}");
    }
    assert!(
        !text.contains("normalised"),
        "weights are for operators: {text}"
    );

    // The same over gRPC.
    let endpoint = Endpoint::new(format!("http://{}", cloud.address())).unwrap();
    let mut scheduler = SchedulerClient::new(endpoint.connect().await.unwrap());
    let mut grpc = async |project: &str| {
        let request = v1::WhatIfRequest {
            request: Some(v1::PlacementRequest {
                flavor: LARGE.to_owned(),
                project_id: project.to_owned(),
                ..v1::PlacementRequest::default()
            }),
            ..v1::WhatIfRequest::default()
        };
        scheduler.what_if(with(request, &tenant)).await
    };
    let decision = grpc("").await.unwrap().into_inner().decision.unwrap();
    let mut ids: Vec<String> = decision.placements[0]
        .victims
        .iter()
        .map(|victim| victim.server_id.clone())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [unnamed, own.as_str()]);
    let refused = grpc(OTHER_PROJECT).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    let with_hint = |name: &str, value: &str| {
        let hints = json!({name: {"values": [value]}});
        json!({"request": {"flavor": LARGE}, "scheduler_hints": hints})
    };
    let other = server(4).to_string();
    let in_group = |group: &str| json!({"request": {"flavor": LARGE, "group": group}});
    let other_project = json!({"request": {"flavor": LARGE, "project_id": OTHER_PROJECT}});
    for (question, wanted) in [
        (other_project, (403, "EB-ACCESS-005")),
        (with_hint("same_host", &other), (404, "EB-SERVICE-001")),
        (with_hint("query", "[]"), (403, "EB-ACCESS-006")),
        (with_hint("different_host", &own), (200, "")),
        (in_group(&own_group), (200, "")),
        (in_group("db"), (200, "")),
        (in_group(&other_group), (404, "EB-SERVICE-001")),
        (in_group("theirs"), (404, "EB-SERVICE-001")),
    ] {
        let answer = asked(&cloud, &tenant, &question).await;
        assert_eq!(code(&answer), wanted, "{question}: {}", answer.1);
    }
    let groups = ask(&cloud, &tenant, "/v1/server-groups", &[]).await.json();
    let groups = groups["groups"].as_array().unwrap().clone();
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["id"], json!(own_group));
    cloud.end().await;
}

#[tokio::test]
async fn a_standalone_region_says_that_it_has_no_images_and_no_hints() {
    let region = Region::start("").await;
    for (more, field) in [
        (json!({"image": {"id": "i"}}), "image"),
        (json!({"boot_from_volume": true}), "boot_from_volume"),
        (
            json!({"scheduler_hints": {"same_host": {"values": ["s"]}}}),
            "scheduler_hints",
        ),
    ] {
        let mut question = json!({"request": {"flavor": "small"}});
        let fields = question.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let answer = asked(&region, &region.operator, &question).await;
        assert_eq!(code(&answer), (400, "EB-SERVICE-002"), "{}", answer.1);
        let detail = answer.1["detail"].as_str().unwrap();
        assert!(detail.contains(field), "{detail}");
    }
    region.end().await;
}
