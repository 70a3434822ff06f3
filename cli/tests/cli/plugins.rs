//! `ebbtide plugin` against a region: what is asked of it, and what is printed.

use crate::fake::Fake;
use crate::run::{against, alone};
use ebbtide_proto::v1::{Plugin, ShadowMove, ShadowReportResponse, ShadowTotals};

fn plugin(name: &str, change: impl FnOnce(&mut Plugin)) -> Plugin {
    let mut plugin = Plugin {
        name: name.into(),
        kind: "weigher".into(),
        carrier: "wasm".into(),
        enabled: true,
        in_use: true,
        on_failure: "ignore".into(),
        multiplier: Some(1.0),
        digest: "0123456789abcdef".repeat(4),
        calls: 7,
        ..Plugin::default()
    };
    change(&mut plugin);
    plugin
}

#[tokio::test]
async fn the_list_says_how_each_is_and_how_it_behaves() {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.plugins = vec![
            plugin("racks", |_| ()),
            plugin("off", |p| p.enabled = false),
            plugin("tired", |p| {
                p.resting = true;
                p.failures = 5;
                p.last_failure = "it looped".into();
            }),
            plugin("looks", |p| {
                p.shadow = true;
                p.in_use = false;
            }),
            plugin("away", |p| {
                p.kind = "unknown".into();
                p.carrier = "remote".into();
                p.digest = String::new();
                p.multiplier = None;
                p.in_use = false;
                p.missing = "it does not answer".into();
            }),
        ];
    });
    let ran = against(&fake, &["plugin", "list"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    insta::assert_snapshot!(ran.out);
}

#[tokio::test]
async fn what_is_added_reaches_the_region_as_it_was_said() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("racks.wasm");
    std::fs::write(&file, [7; 42]).unwrap();
    let file = file.display().to_string();
    let add = [
        "plugin",
        "add",
        "racks",
        "--file",
        &file,
        "--set",
        "key=rack",
        "--multiplier",
        "-2",
        "--on-failure",
        "refuse",
        "--shadow",
    ];
    let ran = against(&fake, &add).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("racks is in shadow"), "{}", ran.err);
    let log = fake.with(|state| state.log.clone());
    let said = r#"add racks of 42 bytes from "", Some("rack"), Some(-2.0), refuse"#;
    assert_eq!(log, [said]);
    for (words, says) in [
        (["plugin", "enable", "racks"], "racks is enabled"),
        (
            ["plugin", "use", "racks"],
            "racks says what victims cost now",
        ),
        (
            ["plugin", "use", "--configured"],
            "partial_hour says what victims cost now",
        ),
        (["plugin", "disable", "racks"], "racks is disabled"),
        (["plugin", "remove", "racks"], "racks is gone"),
    ] {
        let ran = against(&fake, &words).await;
        assert!(ran.code == 0 && ran.err.contains(says), "{}", ran.err);
    }
    let ran = against(&fake, &["plugin", "remove", "racks"]).await;
    assert!(
        ran.code != 0 && ran.err.contains("EB-PLUGIN-006"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn adding_a_cost_module_says_how_to_use_it() {
    let fake = Fake::start().await;
    let add = ["plugin", "add", "loss", "--at", "/etc/loss.wasm"];
    let ran = against(&fake, &add).await;
    assert!(
        ran.code == 0 && ran.err.contains("not used yet: `ebbtide plugin use loss`"),
        "{}",
        ran.err
    );
    let neither = against(&fake, &["plugin", "use"]).await;
    assert_eq!(neither.code, 2, "{}", neither.err);
}

#[tokio::test]
async fn a_plugin_comes_from_exactly_one_place() {
    for more in [
        &[][..],
        &["--file", "a.wasm", "--address", "http://127.0.0.1:1"],
        &["--file", "a.wasm", "--plugin", "b"],
        &["--file", "a.wasm", "--set", "key"],
    ] {
        let ran = alone(&[&["plugin", "add", "racks"], more].concat()).await;
        assert_ne!(ran.code, 0, "{more:?}: {}", ran.out);
    }
    let ran = alone(&["plugin", "set-multiplier", "ram", "much"]).await;
    assert!(
        ran.err.contains("neither a number nor `default`"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn the_shadow_report_compares_what_was_with_what_would_have_been() {
    let fake = Fake::start().await;
    let totals = |no_valid_host, victims, cost, shadow_cost| {
        Some(ShadowTotals {
            no_valid_host,
            victims,
            cost,
            shadow_cost,
        })
    };
    fake.with(|state| {
        state.shadow = ShadowReportResponse {
            since_ms: 1_795_219_200_000,
            what: "cost-module energy".into(),
            decisions: 200,
            different: 30,
            failed: 1,
            decided: totals(2, 40, 1234.5, 80.0),
            in_shadow: totals(2, 44, 1400.0, 60.25),
            cost_unit: "seconds of the started billing period".into(),
            shadow_cost_unit: "watt-hours".into(),
            moves: vec![ShadowMove {
                decided: "host-A".into(),
                in_shadow: "host-B".into(),
                times: 29,
            }],
            last_problem: "energy looped".into(),
            ..ShadowReportResponse::default()
        };
    });
    let ran = against(&fake, &["plugin", "shadow-report"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    insta::assert_snapshot!(ran.all());
    let ran = against(&fake, &["plugin", "shadow-report", "-o", "json"]).await;
    assert_eq!(ran.json()["moves"][0]["times"], 29);
}

#[tokio::test]
async fn a_record_is_written_whole_and_one_of_another_kind_is_refused() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("region.json");
    let file = path.display().to_string();
    let ran = against(&fake, &["plugin", "record", &file]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        r#"{"format":"else"}"#
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    for words in [&["x.wasm", "--snapshot", &file][..], &["--snapshot", &file]] {
        let ran = alone(&[&["plugin", "try"], words].concat()).await;
        assert_ne!(ran.code, 0, "{}", ran.out);
    }
}
