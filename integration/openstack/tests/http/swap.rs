//! Claims and the swap: bodies, retries, and what a lost race looks like.

use crate::server::{Reply, Seen, Server, placement};
use ebbtide_openstack::placement::Generation;
use ebbtide_openstack::{
    AllocationResult, ConflictCode, NewClaim, OpenStackError, ReleasedConsumer, Resources,
};
use serde_json::{Value, json};
use uuid::Uuid;

const HOST: &str = "37122ca0-1254-44aa-b936-cc46ebf0f221";
const OTHER_HOST: &str = "5db9bd83-b72d-4a2a-aea6-1a2d1c9d4a3f";

pub(crate) fn newcomer(generation: Option<u64>) -> NewClaim {
    let allocations = json!({HOST: {"resources": {"VCPU": 4}}});
    NewClaim {
        consumer: Uuid::from_u128(7),
        resources: Resources::new(allocations, Some(json!({"": [HOST]}))).unwrap(),
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        generation: generation.map(Generation),
    }
}

fn victim(number: u128) -> ReleasedConsumer {
    ReleasedConsumer {
        consumer: Uuid::from_u128(number),
        generation: Generation(3),
        project_id: "vp".to_owned(),
        user_id: "vu".to_owned(),
    }
}

fn conflict(code: &str, detail: &str) -> Reply {
    Reply::json(
        409,
        &json!({"errors": [{"status": 409, "title": "Conflict", "detail": detail, "code": code}]}),
    )
}

fn provider_conflict() -> Reply {
    conflict(
        "placement.concurrent_update",
        "Another thread concurrently updated the data. Please retry your update",
    )
}

fn consumer_conflict() -> Reply {
    conflict(
        "placement.concurrent_update",
        "conflict.\n\n consumer generation conflict - expected 1 but got None  ",
    )
}

fn nothing_held() -> Reply {
    Reply::json(200, &json!({"allocations": {}}))
}

fn methods(server: &Server) -> Vec<String> {
    server.seen().into_iter().map(|seen| seen.method).collect()
}

#[tokio::test]
async fn the_swap_empties_the_victims_and_fills_the_newcomer_in_one_request() {
    let server = Server::start(|_, _| Reply::empty(204)).await;
    placement(&server.url)
        .post_allocations(&[victim(1), victim(2)], &[newcomer(None)])
        .await
        .unwrap();
    let emptied =
        json!({"allocations": {}, "project_id": "vp", "user_id": "vu", "consumer_generation": 3});
    let filled = json!({
        "allocations": {HOST: {"resources": {"VCPU": 4}}}, "mappings": {"": [HOST]},
        "project_id": "p", "user_id": "u", "consumer_generation": null,
    });
    let body = json!({
        Uuid::from_u128(1).to_string(): emptied, Uuid::from_u128(2).to_string(): emptied, Uuid::from_u128(7).to_string(): filled,
    });
    let seen: Seen = server.seen().remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/allocations")
    );
    assert_eq!(seen.headers["openstack-api-version"], "placement 1.36");
    assert_eq!(seen.body, body);
}

#[tokio::test]
async fn a_lost_race_is_a_conflict_with_its_code() {
    for (code, expected) in [
        (
            "placement.concurrent_update",
            ConflictCode::ConcurrentUpdate,
        ),
        ("placement.undefined_code", ConflictCode::Undefined),
        (
            "placement.something_new",
            ConflictCode::Other("placement.something_new".to_owned()),
        ),
    ] {
        let server = Server::start(move |_, _| conflict(code, "no")).await;
        match placement(&server.url)
            .post_allocations(&[victim(1)], &[newcomer(None)])
            .await
            .unwrap_err()
        {
            OpenStackError::Conflict { code, .. } => assert_eq!(code, expected),
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn a_swap_that_names_a_victim_twice_or_none_is_not_sent() {
    let server = Server::start(|_, _| Reply::empty(204)).await;
    let placement = placement(&server.url);
    for (victims, claims) in [
        (vec![victim(1), victim(1)], vec![]),
        (vec![victim(7)], vec![newcomer(None)]),
        (vec![], vec![]),
    ] {
        assert!(placement.post_allocations(&victims, &claims).await.is_err());
    }
    assert!(server.seen().is_empty());
}

#[test]
fn resources_are_never_nothing() {
    let uuid_less = json!({"host1": {"resources": {"VCPU": 1}}});
    for wrong in [
        json!({}),
        json!([]),
        Value::Null,
        json!({HOST: {}}),
        json!({HOST: {"resources": {}}}),
        json!({HOST: {"resources": {"VCPU": 0}}}),
        json!({HOST: {"resources": {"VCPU": -1}}}),
        json!({HOST: {"resources": {"VCPU": 1.5}}}),
        uuid_less,
    ] {
        assert!(Resources::new(wrong.clone(), None).is_err(), "{wrong}");
    }
    assert!(Resources::from_amounts(&std::collections::BTreeMap::new()).is_err());
}

#[tokio::test]
async fn a_claim_that_meets_another_writer_is_tried_four_times_and_reads_anew_each_time() {
    let server = Server::start(|_, seen| {
        if seen.method == "GET" {
            nothing_held()
        } else {
            provider_conflict()
        }
    })
    .await;
    let claimed = placement(&server.url).claim(&newcomer(None)).await.unwrap();
    assert!(
        matches!(
            claimed,
            AllocationResult::No {
                status: 409,
                code: ConflictCode::ConcurrentUpdate,
                ..
            }
        ),
        "{claimed:?}"
    );
    assert_eq!(
        methods(&server),
        ["GET", "PUT", "GET", "PUT", "GET", "PUT", "GET", "PUT"]
    );
}

#[tokio::test]
async fn a_claim_that_meets_another_writer_once_is_had_at_the_second_try() {
    let server = Server::start(|number, _| {
        if number == 0 {
            provider_conflict()
        } else {
            Reply::empty(204)
        }
    })
    .await;
    assert_eq!(
        placement(&server.url)
            .claim_new(&newcomer(None))
            .await
            .unwrap(),
        AllocationResult::Yes
    );
    assert_eq!(methods(&server), ["PUT", "PUT"]);
}

#[tokio::test]
async fn a_consumer_that_was_changed_during_the_claim_is_an_error_as_in_nova() {
    let server = Server::start(|_, seen| {
        if seen.method == "GET" {
            nothing_held()
        } else {
            consumer_conflict()
        }
    })
    .await;
    let error = placement(&server.url)
        .claim(&newcomer(None))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-HTTP-011");
    assert_eq!(methods(&server), ["GET", "PUT"]);
}

#[tokio::test]
async fn the_quick_claim_goes_the_exact_way_when_the_consumer_is_known() {
    let held = json!({
        "allocations": {
            OTHER_HOST: {"resources": {"VCPU": 2}, "generation": 9},
            HOST: {"resources": {"VCPU": 1}, "generation": 4},
        },
        "consumer_generation": 1, "project_id": "p", "user_id": "u",
    });
    let server = Server::start(move |number, _| match number {
        0 => consumer_conflict(),
        1 => Reply::json(200, &held),
        _ => Reply::empty(204),
    })
    .await;
    assert_eq!(
        placement(&server.url)
            .claim_new(&newcomer(None))
            .await
            .unwrap(),
        AllocationResult::Yes
    );
    assert_eq!(methods(&server), ["PUT", "GET", "PUT"]);
    // What it has on a provider of both stays as it was; there are no mappings.
    let doubled = json!({
        "allocations": {OTHER_HOST: {"resources": {"VCPU": 2}}, HOST: {"resources": {"VCPU": 1}}},
        "project_id": "p", "user_id": "u", "consumer_generation": 1,
    });
    assert_eq!(server.seen()[2].body, doubled);
}

#[tokio::test]
async fn a_full_host_is_no_claim_and_no_error() {
    let full = "Unable to allocate inventory: The requested amount would exceed the capacity.";
    let server = Server::start(move |number, _| {
        if number == 0 {
            Reply::empty(404)
        } else {
            conflict("placement.undefined_code", full)
        }
    })
    .await;
    match placement(&server.url).claim(&newcomer(None)).await.unwrap() {
        AllocationResult::No { status, code, text } => {
            assert_eq!((status, code), (409, ConflictCode::Undefined));
            assert!(text.contains("exceed the capacity"));
        }
        AllocationResult::Yes => panic!("it was not claimed"),
    }
    assert_eq!(
        methods(&server),
        ["GET", "PUT"],
        "a read that finds nothing is as an empty one"
    );
}

#[tokio::test]
async fn the_consumers_of_a_provider_come_with_their_generations() {
    let body = json!({
        "allocations": {"6afd8c1c-665e-43e1-8227-dd2896b3cadf": {"resources": {"VCPU": 8}, "consumer_generation": 1}},
        "resource_provider_generation": 6,
    });
    let server = Server::start(move |_, _| Reply::json(200, &body)).await;
    let found = placement(&server.url)
        .provider_allocations(HOST.parse().unwrap())
        .await
        .unwrap();
    assert_eq!(found.generation, Generation(6));
    let consumer = &found.consumers[&"6afd8c1c-665e-43e1-8227-dd2896b3cadf".parse().unwrap()];
    assert_eq!(
        (consumer.resources["VCPU"], consumer.consumer_generation),
        (8, Generation(1))
    );
    assert_eq!(
        server.seen()[0].path,
        format!("/resource_providers/{HOST}/allocations")
    );
}

/// As Placement treats a consumer that it has left behind when it died: at generation 0, without
/// allocations.
async fn with_one_left_behind() -> Server {
    Server::start(|_, seen| {
        if seen.method == "GET" {
            return nothing_held();
        }
        let entry = seen.body.get(Uuid::from_u128(7).to_string());
        match &entry.unwrap_or(&seen.body)["consumer_generation"] {
            Value::Null => conflict(
                "placement.concurrent_update",
                "conflict.\n\n consumer generation conflict - expected 0 but got None  ",
            ),
            _ => Reply::empty(204),
        }
    })
    .await
}

#[tokio::test]
async fn a_consumer_that_a_dying_placement_left_behind_gets_its_claim() {
    let server = with_one_left_behind().await;
    let claimed = placement(&server.url).claim_new(&newcomer(None)).await;
    assert_eq!(claimed.unwrap(), AllocationResult::Yes);
    // Six times it might be the consumer of a write that is under way.
    assert_eq!(methods(&server), ["PUT"; 7]);
}

#[tokio::test]
async fn a_newcomer_that_a_dying_placement_left_behind_takes_its_victims_place() {
    let server = with_one_left_behind().await;
    placement(&server.url)
        .post_allocations(&[victim(1)], &[newcomer(None)])
        .await
        .unwrap();
    let newcomer = Uuid::from_u128(7).to_string();
    let generations: Vec<Value> = server
        .seen()
        .into_iter()
        .map(|seen| seen.body[&newcomer]["consumer_generation"].clone())
        .collect();
    let (last, first) = generations.split_last().unwrap();
    assert_eq!(*last, json!(0));
    assert_eq!(first.len(), 6);
    assert!(first.iter().all(Value::is_null), "{first:?}");
}

/// As Placement treats a newcomer whose first write is under way and then fails: for two more
/// writes there is an empty consumer, then there is none.
async fn with_a_write_under_way() -> Server {
    let writes = std::sync::atomic::AtomicUsize::new(0);
    Server::start(move |_, seen| {
        if seen.method == "GET" {
            return nothing_held();
        }
        let entry = seen.body.get(Uuid::from_u128(7).to_string());
        let before = writes.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        match &entry.unwrap_or(&seen.body)["consumer_generation"] {
            Value::Null if before < 2 => conflict(
                "placement.concurrent_update",
                "conflict.\n\n consumer generation conflict - expected 0 but got None  ",
            ),
            Value::Null => Reply::empty(204),
            _ => panic!("a claim at generation 0 loses its consumer: {}", seen.body),
        }
    })
    .await
}

#[tokio::test]
async fn a_claim_waits_for_a_write_that_is_under_way() {
    let server = with_a_write_under_way().await;
    let claimed = placement(&server.url).claim_new(&newcomer(None)).await;
    assert_eq!(claimed.unwrap(), AllocationResult::Yes);
    assert_eq!(methods(&server), ["PUT"; 3]);
    let server = with_a_write_under_way().await;
    placement(&server.url)
        .post_allocations(&[victim(1)], &[newcomer(None)])
        .await
        .unwrap();
    assert_eq!(methods(&server), ["POST"; 3]);
}
