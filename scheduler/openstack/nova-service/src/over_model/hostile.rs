//! A tenant that puts into its requests whatever Nova's API lets through: each is answered, holds
//! no more than it got, and the next tenant notices nothing.

use super::{Bench, host, newcomer, place};
use ebbtide_nova::model::Options;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a page, a shell, a query, a table or a terminal might take for its own.
const MARKUP: [&str; 8] = [
    "<script>alert(1)</script>",
    "'; DROP TABLE instances; --",
    "${jndi:ldap://example.org/a}",
    "=HYPERLINK(\"http://example.org\")",
    "\u{1b}[2J\u{7}",
    "\u{202e}txt.exe\u{2066}",
    "../../../../etc/passwd\0",
    "{{7*7}} %s %n `id` $(id)",
];

/// 255 characters, each of which takes four bytes.
fn emoji() -> String {
    "\u{1f525}".repeat(255)
}

/// Every filter that reads hints.
fn filters() -> Options {
    let mut options = Options::default();
    for name in [
        "SameHostFilter",
        "DifferentHostFilter",
        "SimpleCIDRAffinityFilter",
        "JsonFilter",
    ] {
        if !options.enabled_filters.iter().any(|known| known == name) {
            options.enabled_filters.push(name.to_owned());
        }
    }
    options
}

/// Tenants after one another, on hosts that are large enough for all.
struct Tenants {
    bench: Bench,
    next: AtomicU64,
}

impl Tenants {
    async fn new() -> Self {
        Self {
            bench: Bench::with_options(2, filters()).await,
            next: AtomicU64::new(1),
        }
    }

    /// Checks that the scheduler answers the hostile request and that the request holds allocations
    /// only if it got a host. Then another request for one VCPU must succeed.
    async fn attack(&self, what: &str, change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let instance = newcomer(u128::from(self.next.fetch_add(2, Ordering::Relaxed)));
        let before = self.bench.used(1) + self.bench.used(2);
        let answer = self.bench.ask_for(instance, change, false).await;
        let held = self.bench.holds(instance);
        match &answer {
            Ok(answer) => {
                place(answer);
                assert_eq!(held.len(), 1, "{what}: {held:?}");
            }
            Err(_) => assert_eq!(held, [], "{what}"),
        }
        let used: u64 = held.iter().map(|(_, vcpus)| vcpus).sum();
        assert_eq!(self.bench.used(1) + self.bench.used(2), before + used);
        let modest = newcomer(u128::from(self.next.fetch_add(2, Ordering::Relaxed)) + 1);
        let next = self.bench.ask(modest, 1).await;
        place(&next.unwrap_or_else(|error| panic!("after {what}: {error:?}")));
        // Both leave again, so that there is room for the next attack.
        self.bench.placement.model(|model| {
            for consumer in [instance, modest] {
                let path = format!("/allocations/{consumer}");
                model.ask(ebbtide_placement_model::ModelRequest {
                    method: "DELETE",
                    path: &path,
                    version: (1, 36),
                    body: None,
                });
            }
        });
        self.bench.look().await;
        answer.map_err(|error| error.class)
    }
}

#[tokio::test]
async fn hints_full_of_markup_and_ten_thousand_of_them_cost_no_other_request_anything() {
    let tenants = Tenants::new().await;
    for text in MARKUP
        .iter()
        .map(|text| (*text).to_owned())
        .chain([emoji()])
    {
        let answer = tenants
            .attack("a hint", |spec| {
                spec["scheduler_hints"] = json!({ text.clone(): [text.clone()] });
            })
            .await;
        assert!(answer.is_ok(), "no filter reads it: {answer:?}");
        // Filters read these. What is no identifier of an instance is on no host.
        for hint in ["same_host", "different_host", "build_near_host_ip", "query"] {
            let what = format!("{hint} = {text:?}");
            let _ = tenants
                .attack(&what, |spec| {
                    spec["scheduler_hints"] = json!({ hint: [text.clone()] })
                })
                .await;
        }
    }
    let many: serde_json::Map<String, Value> = (0..10_000)
        .map(|n| (format!("<b>{n}"), json!([emoji()])))
        .collect();
    let answer = tenants
        .attack("10,000 hints", |spec| {
            spec["scheduler_hints"] = Value::Object(many)
        })
        .await;
    assert!(answer.is_ok(), "{answer:?}");
    let uuids: Vec<String> = (0..10_000)
        .map(|n| newcomer(1_000_000 + n).to_string())
        .collect();
    for (hint, found) in [("different_host", true), ("same_host", false)] {
        let values = json!({ hint: uuids });
        let answer = tenants
            .attack(hint, |spec| spec["scheduler_hints"] = values)
            .await;
        assert_eq!(answer.is_ok(), found, "{hint}: {answer:?}");
    }
    // As deep as it is long.
    for query in ["[".repeat(100_000), "[\"not\", ".repeat(50_000)] {
        let answer = tenants
            .attack("a deep query", |spec| {
                spec["scheduler_hints"] = json!({"query": [query]})
            })
            .await;
        assert!(answer.is_err(), "{answer:?}");
    }
}

#[tokio::test]
async fn names_of_255_emoji_and_markup_come_through_and_end_nowhere() {
    let tenants = Tenants::new().await;
    for text in MARKUP
        .iter()
        .map(|text| (*text).to_owned())
        .chain([emoji()])
    {
        let answer = tenants
            .attack("names", |spec| {
                for object in ["image", "flavor"] {
                    spec[object]["nova_object.data"]["name"] = json!(text);
                }
                spec["flavor"]["nova_object.data"]["description"] = json!(text);
                spec["flavor"]["nova_object.data"]["extra_specs"] = json!({ text.clone(): text });
                let groups = &mut spec["security_groups"]["nova_object.data"]["objects"];
                groups[0]["nova_object.data"]["name"] = json!(text);
            })
            .await;
        assert!(answer.is_ok(), "{text:?}: {answer:?}");
        // Who owns it is the tenant's to say in no API, but a token of Keystone's may say anything.
        for field in ["project_id", "user_id", "availability_zone"] {
            let what = format!("{field} = {text:?}");
            let _ = tenants
                .attack(&what, |spec| spec[field] = json!(text))
                .await;
        }
        for field in ["force_hosts", "force_nodes", "ignore_hosts"] {
            let what = format!("{field} = {text:?}");
            let _ = tenants
                .attack(&what, |spec| spec[field] = json!([text]))
                .await;
        }
    }
}

#[tokio::test]
async fn amounts_beyond_all_reason_are_refused_and_claim_nothing() {
    let tenants = Tenants::new().await;
    for amount in [
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(1e300),
        json!("8"),
        json!([]),
        json!(null),
    ] {
        for field in ["vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap"] {
            let what = format!("{field} = {amount}");
            let _ = tenants
                .attack(&what, |spec| {
                    spec["flavor"]["nova_object.data"][field] = amount.clone()
                })
                .await;
        }
        let what = format!("num_instances = {amount}");
        let _ = tenants
            .attack(&what, |spec| spec["num_instances"] = amount.clone())
            .await;
    }
    assert_eq!(tenants.bench.used(1) + tenants.bench.used(2), 0);
    assert!(tenants.bench.holds(host(1)).is_empty());
}
