//! A decision that evicts: created, asked about, explained, watched.

use crate::fake::{Fake, id};
use crate::run::{CapturedOutput, against, with_streams};
use ebbtide_proto::v1::watch_event::Event;
use ebbtide_proto::v1::*;
use std::time::Duration;

fn victim(number: u32, name: &str, cost: f64) -> Victim {
    Victim {
        server_id: id(number),
        name: name.into(),
        project_id: "research".into(),
        resources: [("VCPU".to_owned(), 2), ("MEMORY_MB".to_owned(), 4000)].into(),
        age_seconds: 4260.0,
        cost,
    }
}

fn ranked(host: &str, cost: Option<f64>, victims: Vec<Victim>, weight: f64) -> RankedHost {
    RankedHost {
        host: host.into(),
        chosen: host == "host-B",
        eviction_cost: cost,
        victims,
        weight,
        weights: vec![
            Weight {
                weigher: "ram".into(),
                raw: 4096.0,
                normalised: 0.5,
                multiplier: 1.0,
            },
            Weight {
                weigher: "io-ops".into(),
                raw: 2.0,
                normalised: 1.0,
                multiplier: -1.0,
            },
        ],
    }
}

/// Table 3 of the paper, as a region would answer.
pub fn decision() -> Decision {
    let step = |filter: &str, before, after, dropped: &[(&str, &str)]| FilterStep {
        filter: filter.into(),
        before,
        after,
        dropped: dropped
            .iter()
            .map(|(host, reason)| DroppedHost {
                host: (*host).into(),
                reason: (*reason).into(),
            })
            .collect(),
    };
    Decision {
        id: id(900),
        at: "2026-11-20T20:37:00Z".into(),
        project_id: "default".into(),
        flavor_name: "m1.medium".into(),
        server_ids: vec![id(1)],
        placements: vec![Placement {
            server_id: id(1),
            host: "host-B".into(),
            victims: vec![victim(50, "BP1", 11.0)],
            waits_for_room: true,
            alternates: Vec::new(),
        }],
        explanation: Some(Explanation {
            policy: "tiered".into(),
            cost_module: "partial_hour".into(),
            filtered_on: "normal".into(),
            seed: 7,
            instances: vec![InstanceExplanation {
                filters: vec![
                    step(
                        "enabled_and_up",
                        5,
                        4,
                        &[("host-E", "disabled: maintenance")],
                    ),
                    step("capacity", 4, 4, &[]),
                ],
                ranking: vec![
                    ranked("host-B", Some(11.0), vec![victim(50, "BP1", 11.0)], -0.5),
                    ranked("host-D", Some(19.0), vec![victim(51, "DP2", 19.0)], -0.5),
                    ranked("host-A", None, Vec::new(), -0.25),
                ],
                ranked: 4,
            }],
            optimal: false,
            gap: 2.5,
            surcharge: 0.0,
            warnings: vec!["weigher gpu returned NaN and was ignored".into()],
        }),
        ..Default::default()
    }
}

async fn region() -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.flavors.push(Flavor {
            name: "m1.medium".into(),
            ..Default::default()
        });
        state.decisions.push(decision());
        state.scripted = Some(decision());
    });
    fake
}

#[tokio::test]
async fn a_decision_is_explained_with_filters_weights_victims_and_the_second() {
    let fake = region().await;
    let ran = against(&fake, &["explain", &id(900)]).await;
    insta::assert_snapshot!("explain", ran.all());
    let json = against(&fake, &["explain", &id(1), "-o", "json"])
        .await
        .json();
    assert_eq!(json["placements"][0]["victims"][0]["name"], "BP1");
    assert_eq!(
        json["explanation"]["instances"][0]["ranking"][2]["eviction_cost"],
        serde_json::Value::Null
    );
    assert_eq!(json["no_valid_host"], serde_json::Value::Null);
    let unknown = against(&fake, &["explain", &id(77)]).await;
    assert_eq!(unknown.code, 4);
    assert!(
        unknown.err.contains("EB-API-009") && unknown.err.contains("decision list"),
        "{}",
        unknown.err
    );
}

#[tokio::test]
async fn what_if_says_that_nothing_was_changed() {
    let fake = region().await;
    let ran = against(&fake, &["what-if", "--flavor", "m1.medium"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("BP1 (11)"), "{}", ran.out);
    assert!(ran.err.contains("nothing was changed"), "{}", ran.err);
    assert!(fake.with(|state| state.servers.is_empty() && state.log.is_empty()));
}

#[tokio::test]
async fn no_valid_host_is_shown_filter_by_filter_and_fails() {
    let fake = region().await;
    fake.with(|state| state.scripted = None);
    let what_if = against(&fake, &["what-if", "--flavor", "m1.medium", "--count", "2"]).await;
    let create = against(&fake, &["server", "create", "--flavor", "m1.medium", "web"]).await;
    let explain = against(&fake, &["explain", "web"]).await;
    assert_eq!((what_if.code, create.code, explain.code), (1, 1, 0));
    let all = [what_if.all(), create.all(), explain.all()].join("\n");
    insta::assert_snapshot!("no_valid_host", all);
    let json = against(
        &fake,
        &[
            "server",
            "create",
            "--flavor",
            "m1.medium",
            "w",
            "-o",
            "json",
        ],
    )
    .await;
    assert_eq!(json.code, 1);
    assert_eq!(
        json.json()["decision"]["no_valid_host"]["dropped"][0]["filter"],
        "capacity"
    );
    let error: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["exit_code"]),
        (&"EB-CLI-006".into(), &1.into())
    );
}

#[tokio::test]
async fn decisions_are_listed_newest_first() {
    let fake = region().await;
    fake.with(|state| {
        state.decisions.push(Decision {
            id: id(901),
            preemptible: true,
            ..decision()
        });
    });
    let ran = against(&fake, &["decision", "list", "--limit", "5"]).await;
    insta::assert_snapshot!("decisions", ran.all());
}

#[tokio::test]
async fn watching_prints_a_line_for_each_event() {
    let evacuation = Evacuation {
        id: id(800),
        victim_id: id(50),
        host: "host-B".into(),
        preemptor_id: id(1),
        behaviour: "terminate".into(),
        grace_seconds: 30,
        cost: 11.0,
        state: "notified".into(),
        ..Default::default()
    };
    let web = Server {
        id: id(1),
        name: "web-1".into(),
        status: "waiting".into(),
        host: "host-B".into(),
        ..Default::default()
    };
    let gone = Host {
        name: "host-C".into(),
        health: "down".into(),
        ..Default::default()
    };
    let failed = Evacuation {
        state: "failed".into(),
        reason: "agent is dead".into(),
        ..evacuation.clone()
    };
    let events = [
        Event::Decision(Decision {
            explanation: None,
            ..decision()
        }),
        Event::Server(web),
        Event::Evacuation(evacuation),
        Event::Evacuation(failed),
        Event::Host(gone),
        Event::Lagged(17),
    ];
    for format in ["table", "json"] {
        let fake = region().await;
        let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
        let endpoint = fake.endpoint();
        let args = [
            "--endpoint",
            &endpoint,
            "watch",
            "--limit",
            "6",
            "-o",
            format,
        ];
        let watching = with_streams(&args, &out, &err);
        let telling = async {
            // Events are sent once the stream is there.
            while fake.events.receiver_count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            events.iter().cloned().for_each(|event| fake.send(event));
        };
        let both = async { tokio::join!(watching, telling) };
        let (code, ()) = tokio::time::timeout(Duration::from_secs(30), both)
            .await
            .unwrap();
        assert_eq!(code, 0, "{}", err.text());
        insta::assert_snapshot!(format!("watch_{format}"), out.text());
        assert!(out.text().lines().count() == 6);
    }
}

#[tokio::test]
async fn watching_goes_on_after_the_region_restarted() {
    let fake = region().await;
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let endpoint = fake.endpoint();
    let args = ["--endpoint", &endpoint, "watch", "--limit", "2"];
    let watching = with_streams(&args, &out, &err);
    let host = |name: &str| {
        Event::Host(Host {
            name: name.into(),
            health: "up".into(),
            ..Default::default()
        })
    };
    let listening = async || {
        while fake.events.receiver_count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let telling = async {
        listening().await;
        fake.send(host("host-A"));
        while !out.text().contains("host-A") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fake.end().await;
        fake.start_again().await;
        listening().await;
        fake.send(host("host-B"));
    };
    let both = async { tokio::join!(watching, telling) };
    let (code, ()) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    assert_eq!(code, 0, "{}", err.text());
    assert_eq!(out.text().lines().count(), 2, "{}", out.text());
    let said = err.text();
    assert!(
        said.contains("EB-CLI-009: the region closed the event stream; trying again"),
        "{said}"
    );
    assert!(
        said.contains("what happened meanwhile is not shown"),
        "{said}"
    );
}
