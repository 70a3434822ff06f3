//! `server create --wait`: by the stream, without it, and when it goes wrong.

use crate::fake::{Fake, id};
use crate::run::{CapturedOutput, with_streams};
use ebbtide_proto::v1::watch_event::Event;
use ebbtide_proto::v1::*;
use std::time::Duration;

/// A region whose next server has to wait for a victim.
async fn region() -> Fake {
    let fake = Fake::start().await;
    let decision = Decision {
        id: id(900),
        flavor_name: "m1".into(),
        server_ids: vec![id(1)],
        placements: vec![Placement {
            server_id: id(1),
            host: "host-B".into(),
            victims: vec![Victim {
                name: "BP1".into(),
                server_id: id(50),
                ..Default::default()
            }],
            waits_for_room: true,
            ..Default::default()
        }],
        ..Default::default()
    };
    fake.with(|state| {
        state.flavors.push(Flavor {
            name: "m1".into(),
            ..Default::default()
        });
        state.scripted = Some(decision);
        state.evacuations.push(Evacuation {
            id: id(800),
            victim_id: id(50),
            preemptor_id: id(1),
            state: "draining".into(),
            grace_seconds: 30,
            deadline_at: "2026-11-20T20:40:37Z".into(),
            ..Default::default()
        });
    });
    fake
}

/// Waits until the command has said something.
async fn said(err: &CapturedOutput, what: &str) {
    let heard = async {
        while !err.text().contains(what) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let heard = tokio::time::timeout(Duration::from_secs(30), heard).await;
    assert!(heard.is_ok(), "it never said {what:?}: {}", err.text());
}

/// Creates and waits; `then` happens once the command has said that it waits for the evacuation.
async fn wait(
    fake: &Fake,
    extra: &[&str],
    then: impl AsyncFnOnce(&CapturedOutput),
) -> (u8, String, String) {
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let endpoint = fake.endpoint();
    let mut args = vec![
        "--endpoint",
        &endpoint,
        "--project",
        "default",
        "server",
        "create",
    ];
    args.extend(["--flavor", "m1", "--wait", "web"]);
    args.extend(extra);
    let creating = with_streams(&args, &out, &err);
    let happening = async {
        said(&err, "waiting for 1 evacuation").await;
        then(&err).await;
    };
    let both = async { tokio::join!(creating, happening) };
    let (code, ()) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    (code, out.text(), err.text())
}

#[tokio::test]
async fn the_stream_tells_the_progress_until_the_server_is_active() {
    let fake = region().await;
    let (code, out, err) = wait(&fake, &[], async |err| {
        let mut evacuation = fake.with(|state| {
            state.evacuations[0].state = "evacuated".into();
            state.evacuations[0].clone()
        });
        evacuation.state = "evacuated".into();
        fake.send(Event::Evacuation(evacuation));
        said(err, "waiting for capacity").await;
        fake.set_status(&id(1), "building");
        said(err, "building").await;
        fake.set_status(&id(1), "active");
    })
    .await;
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("| status            | active"), "{out}");
    insta::assert_snapshot!("wait_progress", err);
}

#[tokio::test]
async fn events_that_are_older_than_what_was_asked_for_tell_nothing() {
    let fake = region().await;
    fake.with(|state| {
        state.evacuations[0].notified_at = "2026-11-20T20:40:07Z".into();
        state.evacuations[0].draining_at = "2026-11-20T20:40:08Z".into();
    });
    let (code, _, err) = wait(&fake, &[], async |err| {
        let now = fake.with(|state| state.evacuations[0].clone());
        let mut before = now.clone();
        before.state = "claimed".into();
        (before.notified_at, before.draining_at) = (String::new(), String::new());
        fake.send(Event::Evacuation(before));
        let evacuated = Evacuation {
            state: "evacuated".into(),
            ..now
        };
        fake.with(|state| state.evacuations[0] = evacuated.clone());
        fake.send(Event::Evacuation(evacuated));
        said(err, "waiting for capacity").await;
        fake.set_status(&id(1), "building");
        said(err, "building").await;
        let before = fake.with(|state| Server {
            status: "waiting".into(),
            host: "host-of-before".into(),
            ..state.servers[0].clone()
        });
        fake.send(Event::Server(before));
        fake.set_status(&id(1), "active");
    })
    .await;
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("claimed"), "{err}");
    assert!(!err.contains("host-of-before"), "{err}");
}

#[tokio::test]
async fn without_a_stream_asking_does_it_alone() {
    let fake = region().await;
    fake.with(|state| state.mute = true);
    let (code, out, err) = wait(&fake, &["-o", "json"], async |_| {
        fake.with(|state| state.servers[0].status = "active".into());
    })
    .await;
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["servers"][0]["status"], "active");
    assert_eq!(
        json["decision"]["placements"][0]["victims"][0]["name"],
        "BP1"
    );
}

#[tokio::test]
async fn a_server_that_fails_is_told_with_its_fault() {
    let fake = region().await;
    let (code, _, err) = wait(&fake, &[], async |_| {
        fake.with(|state| state.servers[0].fault_message = "the agent of host-B is dead".into());
        fake.set_status(&id(1), "error");
    })
    .await;
    assert_eq!(code, 1);
    assert!(
        err.contains("EB-CLI-007: server web is error: the agent of host-B is dead"),
        "{err}"
    );
    assert!(err.contains("ebbtide explain web"), "{err}");
}

#[tokio::test]
async fn waiting_ends_at_its_limit() {
    let fake = region().await;
    let (code, _, err) = wait(&fake, &["--wait-timeout", "1"], async |_| {}).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("EB-CLI-008: server web is still waiting after 1 s"),
        "{err}"
    );
}

#[tokio::test]
async fn waiting_goes_on_while_the_region_restarts() {
    let fake = region().await;
    let (code, out, err) = wait(&fake, &[], async |err| {
        fake.end().await;
        said(err, "cannot reach the region").await;
        fake.with(|state| state.servers[0].status = "active".into());
        fake.start_again().await;
    })
    .await;
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("| status            | active"), "{out}");
    assert!(
        err.contains("EB-CLI-003") && err.contains("trying again in 0.5 s"),
        "{err}"
    );
    assert!(err.contains("the region answers again"), "{err}");
}

#[tokio::test]
async fn a_region_that_stays_away_ends_the_wait_at_its_limit_and_says_how_to_follow() {
    let fake = region().await;
    let (code, _, err) = wait(&fake, &["--wait-timeout", "2"], async |_| fake.end().await).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("EB-CLI-008"), "{err}");
    assert!(err.contains("ebbtide server show web"), "{err}");
}
