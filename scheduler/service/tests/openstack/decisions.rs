//! Recorded decisions, found by what an operator or a tenant knows of them.

use super::kit::{OTHER_PROJECT, OpenStack, server};
use crate::curl::{Events, ask};
use ebbtide_model::decision::FOR_OPERATORS;
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Explanation, Flavor, FlavorId, NoValidHost, PartTime,
    PlacementRequest, RefusedClaim, RequestTrace, Timestamp,
};
use ebbtide_store::DecisionStore;
use serde_json::{Value, json};
use uuid::Uuid;

/// Placement's words about what others use.
const SECRET: &str = "VCPU: 6 of 8 in use";

/// The `n`-th decision, of the `n`-th second: NoValidHost after a refused claim.
fn decision(n: i64, project: &str) -> Decision {
    Decision {
        id: DecisionId(Uuid::from_u128(u128::try_from(n).unwrap())),
        at: Timestamp::from_millis(n * 1000),
        request: PlacementRequest {
            server_ids: vec![server(n)],
            project_id: project.to_owned(),
            flavor: Flavor {
                id: FlavorId(Uuid::from_u128(1)),
                name: "m1.small".to_owned(),
                vcpus: 1,
                ram_mb: 1024,
                disk_gb: 1,
                extra_specs: Default::default(),
            },
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        },
        outcome: DecisionOutcome::NoValidHost(NoValidHost {
            reason: "no host has room".to_owned(),
            placed_before: 0,
            dropped: Vec::new(),
            hosts: 1,
        }),
        explanation: Explanation::default(),
        trace: RequestTrace {
            request_id: format!("req-{n}"),
            user_id: "user".to_owned(),
            scheduler: "scheduler1".to_owned(),
            runs: 1,
            comparison: None,
            refused_claims: vec![RefusedClaim {
                server_id: server(n),
                host: "compute1".to_owned(),
                reason: SECRET.to_owned(),
            }],
            times: vec![PartTime {
                part: "whole".to_owned(),
                micros: 1500,
            }],
        },
    }
}

async fn get(cloud: &OpenStack, token: &str, path: &str) -> (u16, Value) {
    let answer = ask(cloud, token, path, &[]).await;
    (answer.status, answer.json())
}

fn requests(list: &Value) -> Vec<String> {
    let rows = list["decisions"].as_array();
    let rows = rows.unwrap_or_else(|| panic!("{list}"));
    let id = |row: &Value| row["request_id"].as_str().unwrap().to_owned();
    rows.iter().map(id).collect()
}

#[tokio::test]
async fn decisions_are_found_by_request_server_project_and_time() {
    let cloud = OpenStack::start("").await;
    let store = DecisionStore::open(&cloud.database).await.unwrap();
    let own = cloud.keystone.project.clone();
    let all = [
        decision(1, &own),
        decision(2, OTHER_PROJECT),
        decision(3, &own),
    ];
    assert!(store.put(&all).await.unwrap().is_empty());
    let admin = cloud.keystone.admin.clone();

    let found = [
        ("", vec!["req-3", "req-2", "req-1"]),
        ("?request_id=req-2", vec!["req-2"]),
        (&format!("?server_id={}", server(1)), vec!["req-1"]),
        (&format!("?project_id={OTHER_PROJECT}"), vec!["req-2"]),
        (
            "?from=1970-01-01T00:00:02Z&before=1970-01-01T00:00:03Z",
            vec!["req-2"],
        ),
        ("?refused_only=true&limit=1", vec!["req-3"]),
        ("?request_id=req-4", vec![]),
    ];
    for (query, wanted) in found {
        let (status, list) = get(&cloud, &admin, &format!("/v1/decisions{query}")).await;
        assert_eq!(
            (status, requests(&list)),
            (200, wanted.into_iter().map(str::to_owned).collect()),
            "{query}"
        );
    }

    // Page by page, each once and no other.
    let mut next = Some("/v1/decisions?limit=2".to_owned());
    let mut seen = Vec::new();
    while let Some(path) = next {
        let (status, page) = get(&cloud, &admin, &path).await;
        assert_eq!(status, 200, "{page}");
        seen.extend(requests(&page));
        next = page["links"][0]["href"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, ["req-3", "req-2", "req-1"]);

    let (status, one) = get(&cloud, &admin, "/v1/decisions/req-2").await;
    assert_eq!(status, 200, "{one}");
    assert_eq!(one["decision"]["scheduler"], "scheduler1");
    assert_eq!(one["decision"]["refused_claims"][0]["reason"], SECRET);
    assert_eq!(one["decision"]["times"][0]["part"], "whole");
    let (status, problem) = get(&cloud, &admin, "/v1/decisions/req-4").await;
    assert_eq!((status, &problem["code"]), (404, &json!("EB-SERVICE-001")));
    store.close().await;
    cloud.end().await;
}

#[tokio::test]
async fn a_watcher_is_told_of_new_decisions_of_its_project_without_what_others_use() {
    let cloud = OpenStack::start("").await;
    let store = DecisionStore::open(&cloud.database).await.unwrap();
    let own = cloud.keystone.project.clone();
    let tenant = cloud.keystone.token_of("ada").await;
    let now = ebbtide_runtime::clock::now();
    let made = |n: i64, project: &str| Decision {
        at: now,
        ..decision(n, project)
    };
    // Decisions come, of both projects in turns, until one has been told: a reader is told of those
    // after the first look.
    let decisions = async {
        for n in 10.. {
            let project = if n % 2 == 0 { OTHER_PROJECT } else { &own };
            assert!(store.put(&[made(n, project)]).await.unwrap().is_empty());
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let told = async |token: &str, wanted: usize| {
        let mut events = Events::of(&cloud, token, "/v1/events");
        let mut told: Vec<Value> = Vec::new();
        while told.len() < wanted {
            let event = events.next().await;
            assert!(!event.is_empty(), "the stream has ended");
            let data = event.iter().find_map(|line| line.strip_prefix("data: "));
            let data: Value = serde_json::from_str(data.unwrap_or("null")).unwrap();
            if data["decision"].is_object() {
                told.push(data["decision"].clone());
            }
        }
        told
    };
    let both = async { tokio::join!(told(&tenant, 3), told(&cloud.keystone.admin, 6)) };
    let both = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        tokio::select! {
            both = both => both,
            () = decisions => unreachable!("decisions go on"),
        }
    });
    let (of_tenant, of_admin) = both.await.unwrap();
    let number = |decision: &Value| -> i64 {
        let id: Uuid = decision["id"].as_str().unwrap().parse().unwrap();
        i64::try_from(id.as_u128()).unwrap()
    };
    let numbers: Vec<i64> = of_admin.iter().map(number).collect();
    let first = numbers[0];
    assert_eq!(
        numbers,
        (first..first + 6).collect::<Vec<_>>(),
        "all, each once, in order"
    );
    let numbers: Vec<i64> = of_tenant.iter().map(number).collect();
    assert!(
        numbers.iter().all(|n| n % 2 == 1) && numbers.is_sorted(),
        "{numbers:?}"
    );
    let text = format!("{of_tenant:?}");
    assert!(
        !text.contains(SECRET) && !text.contains(OTHER_PROJECT),
        "{text}"
    );
    store.close().await;
    cloud.end().await;
}

#[tokio::test]
async fn a_tenant_finds_its_own_decisions_without_what_others_use() {
    let cloud = OpenStack::start("").await;
    let store = DecisionStore::open(&cloud.database).await.unwrap();
    let own = cloud.keystone.project.clone();
    let all = [decision(1, &own), decision(2, OTHER_PROJECT)];
    assert!(store.put(&all).await.unwrap().is_empty());
    let tenant = cloud.keystone.token_of("ada").await;

    let (status, list) = get(&cloud, &tenant, "/v1/decisions").await;
    assert_eq!((status, requests(&list)), (200, vec!["req-1".to_owned()]));
    let other = format!("/v1/decisions?server_id={}", server(2));
    let (status, list) = get(&cloud, &tenant, &other).await;
    assert_eq!((status, requests(&list)), (200, Vec::new()));
    let other = format!("/v1/decisions?project_id={OTHER_PROJECT}");
    let (status, problem) = get(&cloud, &tenant, &other).await;
    assert_eq!((status, &problem["code"]), (403, &json!("EB-ACCESS-005")));

    let (status, one) = get(&cloud, &tenant, "/v1/decisions/req-1").await;
    assert_eq!(status, 200, "{one}");
    assert!(!one.to_string().contains(SECRET), "{one}");
    assert_eq!(
        one["decision"]["refused_claims"][0]["reason"],
        FOR_OPERATORS
    );
    let (status, problem) = get(&cloud, &tenant, "/v1/decisions/req-2").await;
    assert_eq!((status, &problem["code"]), (404, &json!("EB-SERVICE-001")));
    store.close().await;
    cloud.end().await;
}
