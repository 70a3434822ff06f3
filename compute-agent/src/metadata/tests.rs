//! The forms that tools poll, to the letter, and what a guest cannot do with them.

use super::*;
use ebbtide_model::InterruptionBehaviour as How;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

/// A guest that is told at 08:00:00.500 that it has two minutes.
fn guest(behaviour: Option<How>) -> Document {
    let notice = behaviour.map(|behaviour| PendingNotice {
        evacuation_id: evacuation(),
        behaviour,
        grace: Seconds(120),
        not_before: Timestamp::from_millis(1_800_000_120_500),
        at: Timestamp::from_millis(1_800_000_000_500),
        released: false,
    });
    Document {
        server_id: ServerId(Uuid::from_u128(0xabc)),
        name: "web-1".to_owned(),
        flavor: "m1.spot".to_owned(),
        preemptible: true,
        notice,
    }
}

fn evacuation() -> EvacuationId {
    EvacuationId(Uuid::from_u128(0xe1))
}

fn tokens() -> Tokens {
    Tokens::new(|| "secret".to_owned())
}

fn ask(request: &MetadataRequest, document: &Document) -> MetadataAnswer {
    answer(request, document, now(), &mut tokens())
}

fn reply(request: &MetadataRequest, document: &Document) -> GuestReply {
    match ask(request, document) {
        MetadataAnswer::Reply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn get(target: &str, document: &Document) -> (u16, String) {
    let reply = reply(&MetadataRequest::new("GET", target), document);
    (reply.status, reply.body)
}

fn body_json(reply: &GuestReply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

const ACTION: &str = "/latest/meta-data/spot/instance-action";
const TERMINATION: &str = "/latest/meta-data/spot/termination-time";
const REBALANCE: &str = "/latest/meta-data/events/recommendations/rebalance";

#[test]
fn ec2s_tools_find_an_interruption_and_nothing_before() {
    for path in [ACTION, TERMINATION, REBALANCE] {
        assert_eq!(get(path, &guest(None)).0, 404, "{path}");
        // A guest that is moved alive is not interrupted.
        assert_eq!(get(path, &guest(Some(How::LiveMigrate))).0, 404, "{path}");
    }
    for (how, action) in [
        (How::Terminate, "terminate"),
        (How::Stop, "stop"),
        (How::Hibernate, "hibernate"),
    ] {
        let (status, body) = get(ACTION, &guest(Some(how)));
        let told: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status, told),
            (
                200,
                json!({ "action": action, "time": "2027-01-15T08:02:00Z" })
            )
        );
    }
    let stopped = guest(Some(How::Stop));
    assert_eq!(
        get(TERMINATION, &stopped),
        (200, "2027-01-15T08:02:00Z".to_owned())
    );
    assert_eq!(get(TERMINATION, &guest(Some(How::Hibernate))).0, 404);
    let told: Value = serde_json::from_str(&get(REBALANCE, &stopped).1).unwrap();
    assert_eq!(told, json!({ "noticeTime": "2027-01-15T08:00:00Z" }));
    assert_eq!(
        get("/latest/meta-data/instance-life-cycle", &stopped).1,
        "spot"
    );
    assert!(get("/latest/meta-data/", &stopped).1.contains("spot/"));
    assert!(!get("/latest/meta-data/", &guest(None)).1.contains("spot/"));
    assert_eq!(get("/latest/user-data", &stopped).0, 404);
}

#[test]
fn ec2_tokens_are_optional_and_checked_if_they_are_given() {
    let (document, mut tokens) = (guest(Some(How::Stop)), tokens());
    let mut say =
        |request: MetadataRequest, now| match answer(&request, &document, now, &mut tokens) {
            MetadataAnswer::Reply(reply) => reply,
            other => panic!("{other:?}"),
        };
    let put = || MetadataRequest::new("PUT", "/latest/api/token");
    let ttl = "X-aws-ec2-metadata-token-ttl-seconds";
    for bad in ["0", "21601", "-1", "x", "99999999999999999999"] {
        assert_eq!(say(put().with_header(ttl, bad), now()).status, 400, "{bad}");
    }
    assert_eq!(say(put(), now()).status, 400);
    assert_eq!(
        say(MetadataRequest::new("GET", "/latest/api/token"), now()).status,
        405
    );
    let proxied = put()
        .with_header(ttl, "60")
        .with_header("X-Forwarded-For", "10.0.0.1");
    assert_eq!(say(proxied, now()).status, 403);
    let issued = say(put().with_header(ttl, "60"), now());
    assert_eq!((issued.status, issued.body.as_str()), (200, "secret"));
    let with = |token: &str| {
        MetadataRequest::new("GET", ACTION).with_header("X-aws-ec2-metadata-token", token)
    };
    assert_eq!(say(with("secret"), now()).status, 200);
    assert_eq!(say(with("guess"), now()).status, 401);
    assert_eq!(
        say(with("secret"), now().plus(Seconds(60))).status,
        401,
        "it has expired"
    );
    assert_eq!(say(MetadataRequest::new("POST", ACTION), now()).status, 405);
}

#[test]
fn a_guest_that_asks_for_token_after_token_takes_no_more_memory() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut tokens = Tokens::new(|| NEXT.fetch_add(1, Ordering::Relaxed).to_string());
    for _ in 0..10_000 {
        tokens.issue(now(), 21_600);
    }
    let good = (0..10_000).filter(|n: &u32| tokens.is_good(&n.to_string(), now()));
    assert_eq!(good.count(), 256);
}

const PREEMPTED: &str = "/computeMetadata/v1/instance/preempted";

fn google(target: &str) -> MetadataRequest {
    MetadataRequest::new("GET", target).with_header("Metadata-Flavor", "Google")
}

#[test]
fn gces_tools_see_whether_they_are_preempted() {
    assert_eq!(
        reply(&MetadataRequest::new("GET", PREEMPTED), &guest(None)).status,
        403
    );
    let proxied = google(PREEMPTED).with_header("X-Forwarded-For", "10.0.0.1");
    assert_eq!(reply(&proxied, &guest(None)).status, 403);
    for (how, preempted, maintenance) in [
        (None, "FALSE", "NONE"),
        (
            Some(How::Terminate),
            "TRUE",
            "TERMINATE_ON_HOST_MAINTENANCE",
        ),
        (
            Some(How::Hibernate),
            "TRUE",
            "TERMINATE_ON_HOST_MAINTENANCE",
        ),
        (
            Some(How::LiveMigrate),
            "FALSE",
            "MIGRATE_ON_HOST_MAINTENANCE",
        ),
    ] {
        let said = reply(&google(PREEMPTED), &guest(how));
        assert_eq!((said.status, said.body.as_str()), (200, preempted));
        for header in ["metadata-flavor", "etag", "content-type"] {
            assert!(
                said.headers.iter().any(|(name, _)| *name == header),
                "{header}: {said:?}"
            );
        }
        let said = reply(
            &google("/computeMetadata/v1/instance/maintenance-event"),
            &guest(how),
        );
        assert_eq!(said.body, maintenance);
    }
    assert_eq!(
        reply(
            &google("/computeMetadata/v1/instance/attributes/x"),
            &guest(None)
        )
        .status,
        404
    );
}

#[test]
fn gces_tools_wait_for_a_change_as_long_as_they_want_and_not_for_ever() {
    let waiting = |query: &str| google(&format!("{PREEMPTED}?wait_for_change=true{query}"));
    let held = |query: &str| match ask(&waiting(query), &guest(None)) {
        MetadataAnswer::Hold(held) => held,
        other => panic!("{query}: {other:?}"),
    };
    let first = held("");
    assert_eq!(
        (first.limit, first.now.body.as_str()),
        (Duration::from_secs(300), "FALSE")
    );
    assert_eq!(held("&timeout_sec=7").limit, Duration::from_secs(7));
    assert_eq!(
        held("&timeout_sec=99999999999").limit,
        Duration::from_secs(300)
    );
    assert_eq!(
        reply(&waiting("&timeout_sec=soon"), &guest(None)).status,
        400
    );
    assert_eq!(held(&format!("&last_etag={}", first.tag)).tag, first.tag);
    // What has changed since is said at once.
    assert_eq!(reply(&waiting("&last_etag=0"), &guest(None)).body, "FALSE");
    let preempted = guest(Some(How::Stop));
    let since = waiting(&format!("&last_etag={}", first.tag));
    assert_eq!(reply(&since, &preempted).body, "TRUE");
}

const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

fn azure(method: &str) -> MetadataRequest {
    MetadataRequest::new(method, EVENTS).with_header("Metadata", "true")
}

#[test]
fn azures_tools_find_the_document_of_scheduled_events() {
    assert_eq!(
        reply(&MetadataRequest::new("GET", EVENTS), &guest(None)).status,
        400
    );
    let unversioned =
        MetadataRequest::new("GET", "/metadata/scheduledevents").with_header("Metadata", "true");
    let refused = reply(&unversioned, &guest(None));
    assert_eq!(refused.status, 400);
    assert_eq!(body_json(&refused)["newest-versions"][0], "2020-07-01");
    let none = body_json(&reply(&azure("GET"), &guest(None)));
    assert_eq!(none, json!({ "DocumentIncarnation": 1, "Events": [] }));

    let mut document = guest(Some(How::Terminate));
    let some = body_json(&reply(&azure("GET"), &document));
    assert_eq!(
        some["Events"],
        json!([{
            "EventId": evacuation().to_string(),
            "EventType": "Preempt",
            "ResourceType": "VirtualMachine",
            "Resources": ["web-1"],
            "EventStatus": "Scheduled",
            "NotBefore": "Fri, 15 Jan 2027 08:02:00 GMT",
            "Description": "The virtual machine gives its capacity to another one.",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
        }])
    );
    document.notice.as_mut().unwrap().released = true;
    let started = body_json(&reply(&azure("GET"), &document));
    assert_eq!(started["Events"][0]["EventStatus"], "Started");
    assert_eq!(started["Events"][0]["NotBefore"], "");
    let numbers = [none, some, started].map(|d| d["DocumentIncarnation"].as_i64().unwrap());
    assert!(
        numbers[0] != numbers[1] && numbers[1] != numbers[2],
        "{numbers:?}"
    );
    assert!(
        numbers.iter().all(|n| i32::try_from(*n).is_ok()),
        "{numbers:?}"
    );
    let moving = body_json(&reply(&azure("GET"), &guest(Some(How::LiveMigrate))));
    assert_eq!(moving["Events"][0]["EventType"], "Freeze");
}

#[test]
fn azures_acknowledgement_is_an_early_release_of_this_event_only() {
    let document = guest(Some(How::Terminate));
    let post = |body: &str| ask(&azure("POST").with_body(body), &document);
    let body = |id: &str| json!({ "StartRequests": [{ "EventId": id }] }).to_string();
    let id = evacuation().to_string();
    for spelling in [id.clone(), id.to_uppercase()] {
        match post(&body(&spelling)) {
            MetadataAnswer::Release(released, reply) => {
                assert_eq!((released, reply.status), (evacuation(), 200))
            }
            other => panic!("{other:?}"),
        }
    }
    for bad in [
        "",
        "{}",
        "[]",
        "{\"StartRequests\":7}",
        &body("x"),
        &body(&Uuid::nil().to_string()),
    ] {
        match post(bad) {
            MetadataAnswer::Reply(reply) => assert_eq!(reply.status, 400, "{bad}"),
            other => panic!("{bad}: {other:?}"),
        }
    }
    match ask(&azure("POST").with_body(body(&id)), &guest(None)) {
        MetadataAnswer::Reply(reply) => assert_eq!(reply.status, 400),
        other => panic!("nothing is scheduled: {other:?}"),
    }
}

#[test]
fn our_own_form_tells_all_and_takes_a_release() {
    assert_eq!(get("/ebbtide/v1/notice", &guest(None)).0, 404);
    let document = guest(Some(How::Hibernate));
    let told: Value = serde_json::from_str(&get("/ebbtide/v1/notice", &document).1).unwrap();
    assert_eq!(told["action"], "hibernate");
    assert_eq!(told["not_before"], "2027-01-15T08:02:00.5Z");
    let post = |body: String| {
        ask(
            &MetadataRequest::new("POST", "/ebbtide/v1/release").with_body(body),
            &document,
        )
    };
    let id = json!({ "evacuation_id": told["evacuation_id"] }).to_string();
    assert!(
        matches!(post(id), MetadataAnswer::Release(id, reply) if id == evacuation() && reply.status == 204)
    );
    for (body, status) in [
        ("{}".to_owned(), 400),
        (json!({ "evacuation_id": Uuid::nil() }).to_string(), 404),
    ] {
        assert!(matches!(post(body), MetadataAnswer::Reply(reply) if reply.status == status));
    }
    for path in [
        "/",
        "/latest",
        "/nothing",
        "//latest//meta-data/instance-id",
        "/latest/../etc/passwd",
    ] {
        let (status, body) = get(path, &document);
        assert!(
            matches!(status, 200 | 404) && !body.contains("root:"),
            "{path}: {status} {body}"
        );
    }
}
