//! GCE's metadata server: `instance/preempted` and `instance/maintenance-event`, with waiting for a
//! change.
//!
//! Source: "View and query VM metadata" and "Preemptible VM instances" in GCE's documentation.

use super::answer::{GuestReply, LongPollReply, MetadataAnswer};
use super::{Document, MetadataRequest};
use std::time::Duration;

const FLAVOR: &str = "metadata-flavor";

/// The maximum time for which a request is held, whatever the guest asks for.
const LONGEST_WAIT: u64 = 300;

pub(super) fn answer(
    request: &MetadataRequest,
    path: &[&str],
    document: &Document,
) -> MetadataAnswer {
    // Clients that only follow a link do not send this header. A request with `x-forwarded-for`
    // comes through a proxy.
    if !request.header_is(FLAVOR, "Google") || request.header("x-forwarded-for").is_some() {
        let body = "Missing Metadata-Flavor:Google header.\n";
        return MetadataAnswer::Reply(marked(GuestReply::new(403, "text/html", body)));
    }
    if !request.reads() {
        return MetadataAnswer::Reply(marked(GuestReply::not_allowed()));
    }
    let Some(value) = value(path, document) else {
        return MetadataAnswer::Reply(marked(GuestReply::not_found()));
    };
    let tag = tag(&value);
    let reply = marked(GuestReply::new(200, "application/text", value)).header("etag", tag.clone());
    let waits = request.query.get("wait_for_change");
    if !waits.is_some_and(|waits| waits.eq_ignore_ascii_case("true")) {
        return MetadataAnswer::Reply(reply);
    }
    // `last_etag=0` never matches a tag, so it returns the current value at once.
    let known = request
        .query
        .get("last_etag")
        .cloned()
        .unwrap_or_else(|| tag.clone());
    if known != tag {
        return MetadataAnswer::Reply(reply);
    }
    let seconds = match request
        .query
        .get("timeout_sec")
        .map(|text| text.parse::<u64>())
    {
        None => LONGEST_WAIT,
        Some(Ok(seconds)) => seconds.min(LONGEST_WAIT),
        Some(Err(_)) => {
            let body = "Invalid timeout_sec.\n";
            return MetadataAnswer::Reply(marked(GuestReply::new(400, "text/html", body)));
        }
    };
    MetadataAnswer::Hold(LongPollReply {
        tag,
        limit: Duration::from_secs(seconds),
        now: reply,
    })
}

fn marked(reply: GuestReply) -> GuestReply {
    reply.header(FLAVOR, "Google")
}

fn value(path: &[&str], document: &Document) -> Option<String> {
    let truth = |value| if value { "TRUE" } else { "FALSE" }.to_owned();
    let notice = document.notice.as_ref();
    match path {
        ["instance", "preempted"] => {
            Some(truth(notice.is_some_and(super::PendingNotice::interrupts)))
        }
        ["instance", "maintenance-event"] => Some(
            match notice.map(super::PendingNotice::interrupts) {
                None => "NONE",
                Some(true) => "TERMINATE_ON_HOST_MAINTENANCE",
                Some(false) => "MIGRATE_ON_HOST_MAINTENANCE",
            }
            .to_owned(),
        ),
        ["instance", "name" | "hostname"] => Some(document.name.clone()),
        // GCE's identifier is a number. Tools only need that it does not change.
        ["instance", "id"] => Some((document.server_id.0.as_u128() as u64 >> 1).to_string()),
        ["instance", "machine-type"] => Some(document.flavor.clone()),
        ["instance", "scheduling", "preemptible"] => Some(truth(document.preemptible)),
        _ => None,
    }
}

/// FNV-1a over the value: the same value has the same tag, also after a restart of the agent.
fn tag(value: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", value.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}
