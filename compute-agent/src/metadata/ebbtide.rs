//! Ebbtide's own form, for guests that support it: the notice as on the virtio channel, and an
//! early release.

use super::answer::{GuestReply, MetadataAnswer};
use super::{Document, MetadataRequest, PendingNotice};
use ebbtide_model::EvacuationId;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Release {
    evacuation_id: String,
}

pub(super) fn answer(
    request: &MetadataRequest,
    path: &[&str],
    document: &Document,
) -> MetadataAnswer {
    match (path, request.method.as_str()) {
        (["notice"], "GET" | "HEAD") => MetadataAnswer::Reply(match &document.notice {
            Some(notice) => GuestReply::json(&notice_json(notice)),
            None => GuestReply::not_found(),
        }),
        (["release"], "POST") => release(request, document),
        (["notice"] | ["release"], _) => MetadataAnswer::Reply(GuestReply::not_allowed()),
        _ => MetadataAnswer::Reply(GuestReply::not_found()),
    }
}

fn notice_json(notice: &PendingNotice) -> Value {
    json!({
        "evacuation_id": notice.evacuation_id.to_string(),
        "action": notice.behaviour.as_str(),
        "grace_seconds": notice.grace.0,
        "not_before": notice.not_before.to_string(),
        "released": notice.released,
    })
}

fn release(request: &MetadataRequest, document: &Document) -> MetadataAnswer {
    let asked = serde_json::from_slice::<Release>(&request.body).ok();
    let asked = asked.and_then(|asked| asked.evacuation_id.parse().ok().map(EvacuationId));
    let known = document.notice.as_ref().map(|notice| notice.evacuation_id);
    match asked {
        Some(evacuation_id) if Some(evacuation_id) == known => {
            MetadataAnswer::Release(evacuation_id, GuestReply::new(204, "text/plain", ""))
        }
        Some(_) => MetadataAnswer::Reply(GuestReply::not_found()),
        None => {
            let body =
                json!({ "error": "the body is not {\"evacuation_id\":\"...\"}" }).to_string();
            MetadataAnswer::Reply(GuestReply::new(400, "application/json", body))
        }
    }
}
