//! EC2's instance metadata, versions 1 and 2 (with a session token): the part about interruptions.
//!
//! Sources: "Spot Instance interruption notices" and "EC2 instance rebalance recommendations" in
//! the EC2 user guide. A guest that will be live-migrated finds no interruption there: EC2's tools
//! would stop its work without need.

use super::answer::{GuestReply, MetadataAnswer};
use super::{Document, MetadataRequest, PendingNotice, Tokens};
use ebbtide_model::{InterruptionBehaviour, Timestamp};
use serde_json::json;

/// EC2's maximum lifetime of a token, in seconds.
const LONGEST_TTL: u32 = 21_600;

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

pub(super) fn answer(
    request: &MetadataRequest,
    path: &[&str],
    document: &Document,
    now: Timestamp,
    tokens: &mut Tokens,
) -> MetadataAnswer {
    MetadataAnswer::Reply(match path {
        ["api", "token"] => token(request, now, tokens),
        _ if !request.reads() => GuestReply::not_allowed(),
        // A request without a token uses version 1, which needs none.
        _ if request
            .header(TOKEN)
            .is_some_and(|token| !tokens.is_good(token, now)) =>
        {
            GuestReply::new(401, "text/plain", "401 - Unauthorized\n")
        }
        _ => read(path, document),
    })
}

fn token(request: &MetadataRequest, now: Timestamp, tokens: &mut Tokens) -> GuestReply {
    if request.method != "PUT" {
        return GuestReply::not_allowed();
    }
    // The request was forwarded by a proxy in the guest. As EC2, the listener refuses it, so that
    // an open proxy does not reveal the guest's identity.
    if request.header("x-forwarded-for").is_some() {
        return GuestReply::new(403, "text/plain", "403 - Forbidden\n");
    }
    let ttl = request.header(TTL).and_then(|ttl| ttl.trim().parse().ok());
    match ttl.filter(|ttl| (1..=LONGEST_TTL).contains(ttl)) {
        Some(ttl) => GuestReply::text(tokens.issue(now, ttl)).header(TTL, ttl.to_string()),
        None => GuestReply::new(400, "text/plain", "400 - Bad Request\n"),
    }
}

fn read(path: &[&str], document: &Document) -> GuestReply {
    let notice = document
        .notice
        .as_ref()
        .filter(|notice| notice.interrupts());
    let found = match path {
        [] => Some("meta-data\n".to_owned()),
        ["meta-data"] => Some(listing(notice)),
        ["meta-data", "instance-id"] => Some(document.server_id.to_string()),
        ["meta-data", "hostname" | "local-hostname"] => Some(document.name.clone()),
        ["meta-data", "instance-type"] => Some(document.flavor.clone()),
        ["meta-data", "instance-life-cycle"] => Some(
            if document.preemptible {
                "spot"
            } else {
                "on-demand"
            }
            .to_owned(),
        ),
        ["meta-data", "spot", "instance-action"] => notice.map(action),
        // The time of the shutdown signal; a guest that is hibernated gets none.
        ["meta-data", "spot", "termination-time"] => notice
            .filter(|notice| notice.behaviour != InterruptionBehaviour::Hibernate)
            .map(|notice| seconds(notice.not_before)),
        ["meta-data", "events", "recommendations", "rebalance"] => {
            notice.map(|notice| json!({ "noticeTime": seconds(notice.at) }).to_string())
        }
        _ => None,
    };
    match found {
        Some(body) if body.starts_with('{') => GuestReply::new(200, "application/json", body),
        Some(body) => GuestReply::text(body),
        None => GuestReply::not_found(),
    }
}

fn listing(notice: Option<&PendingNotice>) -> String {
    let mut names = vec![
        "hostname",
        "instance-id",
        "instance-life-cycle",
        "instance-type",
        "local-hostname",
    ];
    if notice.is_some() {
        names.extend(["events/", "spot/"]);
        names.sort_unstable();
    }
    names.join("\n")
}

fn action(notice: &PendingNotice) -> String {
    json!({ "action": notice.behaviour.as_str(), "time": seconds(notice.not_before) }).to_string()
}

/// EC2's times have whole seconds. Rounded down, so that the guest is rather a second early than
/// late.
fn seconds(at: Timestamp) -> String {
    Timestamp::from_millis(at.as_millis().div_euclid(1_000) * 1_000).to_string()
}
