//! What a guest asks its metadata service. The first lines of the input are method and target, then
//! headers; after an empty line comes the body. Nothing but the notice of this guest is ever
//! released, and what is answered can be sent.

use ebbtide_agent::metadata::{
    Document, GuestReply, MetadataAnswer, MetadataRequest, PendingNotice, Tokens, answer,
};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd);

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let (method, target) = (lines.next().unwrap_or("GET"), lines.next().unwrap_or("/"));
    let mut request = MetadataRequest::new(method, target).with_body(body.as_bytes());
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        request = request.with_header(name.trim(), value.trim());
    }
    let at = Timestamp::from_millis(1_767_225_600_000);
    let notice = |behaviour, released| PendingNotice {
        evacuation_id: EvacuationId(ID),
        behaviour,
        grace: Seconds(30),
        not_before: at.plus(Seconds(30)),
        at,
        released,
    };
    for notice in [
        None,
        Some(notice(InterruptionBehaviour::Terminate, false)),
        Some(notice(InterruptionBehaviour::Hibernate, true)),
        Some(notice(InterruptionBehaviour::LiveMigrate, false)),
    ] {
        let document = Document {
            server_id: ServerId(ID),
            name: "name\"<>\n".to_owned(),
            flavor: "flavor".to_owned(),
            preemptible: true,
            notice,
        };
        let mut tokens = Tokens::new(|| "token".to_owned());
        for _ in 0..2 {
            match answer(&request, &document, at, &mut tokens) {
                MetadataAnswer::Reply(reply) => check(&reply),
                MetadataAnswer::Hold(held) => {
                    assert!(held.limit.as_secs() <= 300, "held for {:?}", held.limit);
                    check(&held.now);
                }
                MetadataAnswer::Release(id, reply) => {
                    assert_eq!(Some(id), document.notice.as_ref().map(|n| n.evacuation_id));
                    assert_eq!(
                        request.method, "POST",
                        "a GET request must not release the server"
                    );
                    check(&reply);
                }
            }
        }
    }
}

fn check(reply: &GuestReply) {
    assert!(
        (200..500).contains(&reply.status),
        "status {}",
        reply.status
    );
    for (name, value) in &reply.headers {
        let printable = |c: char| c == ' ' || c.is_ascii_graphic();
        assert!(value.chars().all(printable), "{name}: {value:?}");
    }
    let json =
        |(name, value): &(&str, String)| *name == "content-type" && value == "application/json";
    if reply.headers.iter().any(json) && !reply.body.is_empty() {
        serde_json::from_str::<serde_json::Value>(&reply.body).expect("JSON");
    }
    // What the guest sends does not come back: there is nothing to reflect.
    assert!(reply.body.len() < 2_000);
}
