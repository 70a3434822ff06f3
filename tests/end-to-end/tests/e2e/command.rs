//! The `ebbtide` command against a running region.

use super::kit::{create, fill, request, until};
use ebbtide_harness::{ProcessCommand, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions, bin};

pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) text: String,
}

pub(super) async fn ebbtide(region: &Region, arguments: &[&str]) -> Said {
    run("ebbtide", region, arguments).await
}

/// The same of another program: `ebbtide-lab`.
pub(super) async fn run(program: &str, region: &Region, arguments: &[&str]) -> Said {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let log = region.dir().join(format!("{program}-{n}.log"));
    let process = ProcessCommand::new(program, bin(program))
        .env("EBBTIDE_ENDPOINT", region.endpoint().unwrap())
        .env("EBBTIDE_PROJECT", "tests")
        .args(arguments.iter().copied())
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    Said {
        code: status.code(),
        text: std::fs::read_to_string(&log).unwrap(),
    }
}

pub(super) fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.text).unwrap_or_else(|e| panic!("{e}: {}", said.text))
}

#[tokio::test]
async fn an_operator_finds_what_he_looks_for() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 1).await;
    let hosts = ebbtide(&region, &["host", "list", "--output", "json"]).await;
    assert_eq!(hosts.code, Some(0), "{}", hosts.text);
    assert_eq!(json(&hosts).as_array().unwrap().len(), 4);
    let created = ebbtide(
        &region,
        &[
            "server", "create", "--flavor", "half", "--wait", "--output", "json", "--quiet",
            "urgent",
        ],
    )
    .await;
    assert_eq!(created.code, Some(0), "{}", created.text);
    let explained = ebbtide(&region, &["explain", "urgent"]).await;
    assert_eq!(explained.code, Some(0), "{}", explained.text);
    assert!(
        explained.text.contains("capacity") && explained.text.contains("cattle-"),
        "{}",
        explained.text
    );
    let evacuations = ebbtide(&region, &["evacuation", "list", "--output", "json"]).await;
    assert_eq!(
        json(&evacuations)[0]["state"],
        "evacuated",
        "{}",
        evacuations.text
    );
    for arguments in [
        &["status"][..],
        &["host", "show", "host-A"],
        &["host", "disable", "host-A", "--reason", "test"],
        &["host", "enable", "host-A"],
        &["flavor", "list"],
        &["server", "list", "--all-projects"],
        &["server", "show", "urgent"],
        &["what-if", "--flavor", "half"],
        &["decision", "list"],
        &["server", "delete", "urgent"],
    ] {
        let said = ebbtide(&region, arguments).await;
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.text);
    }
}

#[tokio::test]
async fn exit_codes_say_what_went_wrong() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 1).await;
    for (arguments, expected) in [
        (
            &["server", "create", "--flavor", "whole", "--count", "5", "x"][..],
            1,
        ),
        (&["server", "create", "x"], 2),
        (&["no-such-command"], 2),
        (&["server", "show", "unknown-server"], 4),
        (&["explain", "unknown-server"], 4),
        (&["--endpoint", "http://127.0.0.1:1", "host", "list"], 3),
    ] {
        let said = ebbtide(&region, arguments).await;
        assert_eq!(said.code, Some(expected), "{arguments:?}: {}", said.text);
        assert!(!said.text.trim().is_empty(), "{arguments:?} says nothing");
    }
}

#[tokio::test]
async fn watch_tells_what_happens() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 0).await;
    let log = region.dir().join("watch.log");
    let watch = ProcessCommand::new("ebbtide watch", bin("ebbtide"))
        .env("EBBTIDE_ENDPOINT", region.endpoint().unwrap())
        .args(["watch", "--all-projects"])
        .spawn(&log)
        .unwrap();
    // Whether it listens already cannot be seen from outside, so something happens until it tells.
    eventually(PATIENCE, async || {
        let (servers, _) = create(&region, "urgent", request("half", 1)).await;
        if servers[0].status != "error" {
            until(&region, &servers[0].id, "active").await;
        }
        let told = watch.log_tail();
        if told.contains("evacuated") || told.contains("no valid host") {
            Ok(())
        } else {
            Err(told)
        }
    })
    .await;
    watch.signal(ebbtide_harness::Signal::Int).unwrap();
    assert_eq!(watch.wait_exit(PATIENCE).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn the_papers_tables_agree_for_anyone() {
    let region = Region::prepare(RegionOptions::default()).await.unwrap();
    let log = region.dir().join("conform.log");
    let process = ProcessCommand::new("ebbtide-lab conform", bin("ebbtide-lab"))
        .args(["conform", "papers"])
        .spawn(&log)
        .unwrap();
    assert!(process.wait_exit(PATIENCE).await.unwrap().success());
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(
        said.trim_end().lines().last(),
        Some("4 of 4 tables agree"),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_with_a_maximum_lifetime_ends_by_itself_and_everybody_sees_why() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let create = [
        "flavor",
        "create",
        "mayfly",
        "--vcpus",
        "1",
        "--ram",
        "1000",
        "--preemptible",
        "--grace",
        "56",
        "--max-lifetime",
        "60",
    ];
    let made = ebbtide(&region, &create).await;
    assert_eq!(made.code, Some(0), "{}", made.text);
    let wrong = [
        "flavor",
        "create",
        "pet",
        "--vcpus",
        "1",
        "--ram",
        "1000",
        "--property",
    ];
    let wrong = [&wrong[..], &["ebbtide:max_lifetime_seconds=600"]].concat();
    let wrong = ebbtide(&region, &wrong).await;
    assert!(
        wrong.text.contains("only preemptible flavors"),
        "{}",
        wrong.text
    );
    let (servers, _) = super::kit::create(&region, "ephemera", request("mayfly", 1)).await;
    let id = &servers[0].id;
    until(&region, id, "active").await;
    // Its notice comes after four seconds.
    until(&region, id, "evacuating").await;
    let listed = ebbtide(&region, &["evacuation", "list"]).await;
    assert!(
        listed.text.contains("its maximum lifetime"),
        "{}",
        listed.text
    );
    let listed = json(&ebbtide(&region, &["evacuation", "list", "--output", "json"]).await);
    assert_eq!(listed[0]["cause"], "max-lifetime");
    eventually(PATIENCE, async || {
        let said = ebbtide(&region, &["server", "release", "ephemera"]).await;
        let server = super::kit::server(&region, id).await;
        match server.status == "preempted" {
            true => Ok(server),
            false => Err(format!("{}: {}", server.status, said.text)),
        }
    })
    .await;
    let shown = ebbtide(&region, &["server", "show", id]).await;
    assert!(
        shown.text.contains("as long as its flavor allows"),
        "{}",
        shown.text
    );
    super::kit::the_audit_is_clean(&region).await;
}
