//! Ebbtide's own form, for guests that support it: the notice as on the virtio channel, and an
//! early release.

use super::answer::{Answer, Reply};
use super::{Document, Notice, Request};
use ebbtide_model::EvacuationId;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Release {
    evacuation_id: String,
}

pub(super) fn answer(request: &Request, path: &[&str], document: &Document) -> Answer {
    match (path, request.method.as_str()) {
        (["notice"], "GET" | "HEAD") => Answer::Reply(match &document.notice {
            Some(notice) => Reply::json(&told(notice)),
            None => Reply::not_found(),
        }),
        (["release"], "POST") => release(request, document),
        (["notice"] | ["release"], _) => Answer::Reply(Reply::not_allowed()),
        _ => Answer::Reply(Reply::not_found()),
    }
}

fn told(notice: &Notice) -> Value {
    json!({
        "evacuation_id": notice.evacuation_id.to_string(),
        "action": notice.behaviour.as_str(),
        "grace_seconds": notice.grace.0,
        "not_before": notice.not_before.to_string(),
        "released": notice.released,
    })
}

fn release(request: &Request, document: &Document) -> Answer {
    let asked = serde_json::from_slice::<Release>(&request.body).ok();
    let asked = asked.and_then(|asked| asked.evacuation_id.parse().ok().map(EvacuationId));
    let known = document.notice.as_ref().map(|notice| notice.evacuation_id);
    match asked {
        Some(evacuation_id) if Some(evacuation_id) == known => {
            Answer::Release(evacuation_id, Reply::new(204, "text/plain", ""))
        }
        Some(_) => Answer::Reply(Reply::not_found()),
        None => {
            let body =
                json!({ "error": "the body is not {\"evacuation_id\":\"...\"}" }).to_string();
            Answer::Reply(Reply::new(400, "application/json", body))
        }
    }
}
