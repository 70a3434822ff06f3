//! Azure's Scheduled Events, with acknowledgement: `StartRequests` is an early release.
//!
//! Source: "Azure Metadata Service: Scheduled Events for Linux VMs" in Azure's documentation.

use super::answer::{GuestReply, MetadataAnswer};
use super::{Document, MetadataRequest, PendingNotice};
use ebbtide_model::{EvacuationId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::format_description;

/// The documented API versions whose document has this form (`EventSource`, `DurationInSeconds`),
/// and older ones, which lack some fields.
const VERSIONS: [&str; 6] = [
    "2017-08-01",
    "2017-11-01",
    "2019-01-01",
    "2019-04-01",
    "2019-08-01",
    "2020-07-01",
];

/// Expected downtime of a guest at the end of a live migration, in seconds, rounded up.
const FREEZE_SECONDS: i64 = 5;

#[derive(Deserialize)]
struct StartRequests {
    #[serde(rename = "StartRequests")]
    start_requests: Vec<StartRequest>,
}

#[derive(Deserialize)]
struct StartRequest {
    #[serde(rename = "EventId")]
    event_id: String,
}

pub(super) fn answer(request: &MetadataRequest, document: &Document) -> MetadataAnswer {
    if !request.header_is("metadata", "true") {
        return bad("Bad request. Required metadata header not specified");
    }
    match request.query.get("api-version") {
        Some(version) if VERSIONS.contains(&version.as_str()) => {}
        _ => {
            let body = json!({
                "error": "Bad request. api-version was not specified or is not supported",
                "newest-versions": VERSIONS.iter().rev().take(3).collect::<Vec<_>>(),
            });
            return MetadataAnswer::Reply(GuestReply::new(
                400,
                "application/json",
                body.to_string(),
            ));
        }
    }
    match request.method.as_str() {
        "GET" | "HEAD" => MetadataAnswer::Reply(GuestReply::json(&events(document))),
        "POST" => start(request, document),
        _ => MetadataAnswer::Reply(GuestReply::not_allowed()),
    }
}

fn bad(problem: &str) -> MetadataAnswer {
    let body = json!({ "error": problem }).to_string();
    MetadataAnswer::Reply(GuestReply::new(400, "application/json", body))
}

fn start(request: &MetadataRequest, document: &Document) -> MetadataAnswer {
    let Ok(asked) = serde_json::from_slice::<StartRequests>(&request.body) else {
        return bad("Bad request. The body is not {\"StartRequests\":[{\"EventId\":\"...\"}]}");
    };
    let known = document.notice.as_ref().map(|notice| notice.evacuation_id);
    let mut release = None;
    for one in asked.start_requests {
        // Compares identifiers, not texts: Azure's tools write them in capitals.
        let event = one.event_id.parse().map(EvacuationId).ok();
        if event.is_none() || event != known {
            return bad("Bad request. There is no such event");
        }
        release = event;
    }
    let done = GuestReply::new(200, "application/json", "");
    match release {
        Some(evacuation_id) => MetadataAnswer::Release(evacuation_id, done),
        None => MetadataAnswer::Reply(done),
    }
}

fn events(document: &Document) -> Value {
    let events: Vec<Value> = document
        .notice
        .iter()
        .map(|notice| event(document, notice))
        .collect();
    json!({ "DocumentIncarnation": incarnation(document.notice.as_ref()), "Events": events })
}

/// A number that changes with the events. Some tools read it into 31 bits.
fn incarnation(notice: Option<&PendingNotice>) -> i64 {
    notice.map_or(1, |notice| {
        let seconds = notice.at.as_millis().div_euclid(1_000);
        (seconds + i64::from(notice.released)) & 0x7fff_ffff
    })
}

fn event(document: &Document, notice: &PendingNotice) -> Value {
    let (kind, duration, description) = if notice.interrupts() {
        (
            "Preempt",
            -1,
            "The virtual machine gives its capacity to another one.",
        )
    } else {
        (
            "Freeze",
            FREEZE_SECONDS,
            "The virtual machine moves to another host.",
        )
    };
    let status = if notice.released {
        "Started"
    } else {
        "Scheduled"
    };
    json!({
        "EventId": notice.evacuation_id.to_string(),
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": [document.name],
        "EventStatus": status,
        // Azure's document contains no event that has begun.
        "NotBefore": if notice.released { String::new() } else { http_date(notice.not_before) },
        "Description": description,
        "EventSource": "Platform",
        "DurationInSeconds": duration,
    })
}

/// For example `Mon, 19 Sep 2016 18:29:47 GMT`, rounded down.
fn http_date(at: Timestamp) -> String {
    let form = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let moment = OffsetDateTime::from_unix_timestamp(at.as_millis().div_euclid(1_000));
    // Timestamps of the model are within four-digit years.
    moment
        .ok()
        .and_then(|moment| moment.format(&form).ok())
        .unwrap_or_default()
}
