//! Sets of plugins: used whole or not at all, and each watched.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.
#![cfg(feature = "wasm")]

use ebbtide_engine::{Budgets, Engine, HostTable};
use ebbtide_engine::{EngineConfig, PluginFailure, WeigherConfig};
use ebbtide_model::{Aggregate, Decision, DecisionOutcome, Host, PlacementRequest, Timestamp};
use ebbtide_plugins::{
    EnginePurpose, Multipliers, PluginConfig, PluginEntry, PluginKind, PluginSet, Services, Sources,
};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The first component that was ever made: a weigher by free processors and memory.
const FIRST: &[u8] = include_bytes!("../../../../weighers/wasm/tests/fixtures/weigher-1.0.wasm");

fn file(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, FIRST).unwrap();
    path
}

fn load(configs: &[PluginConfig], before: &PluginSet) -> Result<PluginSet, String> {
    let entries: Vec<PluginEntry> = configs.iter().cloned().map(PluginEntry::from).collect();
    PluginSet::load(&entries, before, &Sources::default(), Services::MustAnswer)
        .map_err(|error| format!("{}: {error}", error.code()))
}

#[test]
fn an_unnamed_weigher_comes_last_with_the_operators_multiplier() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = PluginConfig::new("spread", file(dir.path(), "spread.wasm"));
    config.multiplier = Some(-3.0);
    config.on_failure = Some(PluginFailure::Refuse);
    let set = load(&[config], &PluginSet::default()).unwrap();
    assert_eq!(set.plugins()[0].kind, PluginKind::Weigher);
    assert_eq!(set.plugins()[0].digest.len(), 64);
    let engine = set
        .engine(
            &EngineConfig::default(),
            &Multipliers::new(),
            EnginePurpose::Deciding,
        )
        .unwrap();
    let last = engine.config().weighers.last().unwrap();
    assert_eq!(
        (last.name.as_str(), last.on_failure),
        ("spread", Some(PluginFailure::Refuse))
    );
    assert_eq!(engine.multiplier("spread"), Some(-3.0));
}

#[test]
fn a_weigher_that_is_named_stays_in_its_place_with_its_multiplier() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = PluginConfig::new("spread", file(dir.path(), "spread.wasm"));
    config.multiplier = Some(-3.0);
    let named = WeigherConfig {
        multiplier: Some(7.0),
        ..WeigherConfig::named("spread")
    };
    let engine = EngineConfig {
        weighers: vec![named, WeigherConfig::named("ram")],
        ..EngineConfig::default()
    };
    let engine = load(&[config], &PluginSet::default())
        .unwrap()
        .engine(&engine, &Multipliers::new(), EnginePurpose::Deciding)
        .unwrap();
    let names: Vec<&str> = engine
        .config()
        .weighers
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    assert_eq!(names, ["spread", "ram"]);
    assert_eq!(engine.multiplier("spread"), Some(7.0));
}

#[test]
fn what_is_not_enabled_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = PluginConfig::new("spread", file(dir.path(), "spread.wasm"));
    config.enabled = false;
    let set = load(&[config], &PluginSet::default()).unwrap();
    let engine = set
        .engine(
            &EngineConfig::default(),
            &Multipliers::new(),
            EnginePurpose::Deciding,
        )
        .unwrap();
    assert_eq!(engine.multiplier("spread"), None);
}

#[test]
fn a_set_with_one_bad_plugin_is_refused_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let good = PluginConfig::new("good", file(dir.path(), "good.wasm"));
    let half = dir.path().join("half.wasm");
    fs::write(&half, &FIRST[..FIRST.len() / 2]).unwrap();
    let bad = [
        (
            PluginConfig::new("half", half),
            "EB-PLUGIN-003: plugins: \"half\"",
        ),
        (
            PluginConfig::new("gone", dir.path().join("gone.wasm")),
            "EB-PLUGIN-002: plugins: \"gone\"",
        ),
        (
            PluginConfig::new("good", dir.path().join("good.wasm")),
            "EB-PLUGIN-001: plugins: \"good\": name",
        ),
        (
            PluginConfig::new("Bad name", dir.path().join("good.wasm")),
            "EB-PLUGIN-001",
        ),
    ];
    for (bad, words) in bad {
        let refused = load(&[good.clone(), bad], &PluginSet::default()).unwrap_err();
        assert!(refused.starts_with(words), "{refused}");
    }
}

#[test]
fn a_plugin_that_has_not_changed_is_kept_with_its_counts_and_one_that_has_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let config = PluginConfig::new("spread", file(dir.path(), "spread.wasm"));
    let first = load(std::slice::from_ref(&config), &PluginSet::default()).unwrap();
    let mut louder = config.clone();
    louder.multiplier = Some(5.0);
    let second = load(&[louder], &first).unwrap();
    assert!(std::sync::Arc::ptr_eq(
        &first.plugins()[0].health,
        &second.plugins()[0].health
    ));
    let mut roomier = config;
    roomier.memory_mb = 128;
    let third = load(&[roomier], &second).unwrap();
    assert!(!std::sync::Arc::ptr_eq(
        &first.plugins()[0].health,
        &third.plugins()[0].health
    ));
}

/// The first filter that was ever made: `noisy_neighbours`, which refuses hosts by a number of
/// their aggregates.
const FILTER: &[u8] = include_bytes!("../../../../weighers/wasm/tests/fixtures/filter-1.0.wasm");

fn filter(dir: &Path, change: impl FnOnce(&mut PluginConfig)) -> PluginSet {
    let path = dir.join("noisy.wasm");
    fs::write(&path, FILTER).unwrap();
    let mut config = PluginConfig::new("noisy", path);
    change(&mut config);
    let set = load(&[config], &PluginSet::default()).unwrap();
    assert_eq!(set.plugins()[0].kind, PluginKind::Filter);
    set
}

/// Two hosts, the larger one noisy.
fn table() -> HostTable {
    let host = |name: &str, vcpus: u64| -> Host {
        let inventory = json!({"total": vcpus, "reserved": 0, "allocation_ratio": 1.0});
        serde_json::from_value(json!({
            "name": name, "inventory": {"VCPU": inventory}, "traits": [],
            "disabled_reason": null, "agent_session": null, "last_seen": null,
            "created_at": "2026-11-29T00:00:00Z",
        }))
        .unwrap()
    };
    let mut table = HostTable::new();
    table.put_host(&host("loud", 8));
    table.put_host(&host("quiet", 4));
    let noise: Aggregate = serde_json::from_value(json!({
        "id": "6d1a4b1f-0c9e-4c0f-9a5e-3c2b1a0f9e8d", "name": "noise", "hosts": ["loud"],
        "metadata": {"noise": "80.5"},
    }))
    .unwrap();
    table.set_aggregates(&[noise]);
    table
}

fn decide(set: &PluginSet, purpose: EnginePurpose) -> Decision {
    let engine: Engine = set
        .engine(&EngineConfig::default(), &Multipliers::new(), purpose)
        .unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    let request: PlacementRequest = serde_json::from_value(json!({
        "server_ids": [id], "project_id": "p", "alternates": 0, "group_id": null,
        "availability_zone": null, "ignore_hosts": [], "force_hosts": [],
        "flavor": {"id": id, "name": "v1", "vcpus": 1, "ram_mb": 0, "disk_gb": 0,
                   "extra_specs": {}},
    }))
    .unwrap();
    let id = serde_json::from_value(json!(id)).unwrap();
    let now = Timestamp::from_millis(1_770_000_000_000);
    let decided = engine.decide(&table(), &Budgets::unlimited(), &request, now, 1, id);
    decided.unwrap()
}

fn chosen(decision: &Decision) -> Vec<&str> {
    match &decision.outcome {
        DecisionOutcome::Placed(placed) => placed.iter().map(|p| p.host.as_str()).collect(),
        DecisionOutcome::NoValidHost(_) => Vec::new(),
    }
}

#[test]
fn a_filter_decides_and_what_it_refuses_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let set = filter(dir.path(), |_| {});
    let decision = decide(&set, EnginePurpose::Deciding);
    assert_eq!(chosen(&decision), ["quiet"]);
    let steps = &decision.explanation.instances[0].filters;
    let step = steps.iter().find(|step| step.filter == "noisy").unwrap();
    assert_eq!(step.dropped[0].reason, "noise 81, above 10");
    let report = set.plugins()[0].health.report();
    assert_eq!((report.calls, report.hosts, report.refused), (1, 2, 1));
}

#[test]
fn a_filter_in_shadow_decides_nothing_and_counts_what_it_would_have_refused() {
    let dir = tempfile::tempdir().unwrap();
    let set = filter(dir.path(), |config| config.shadow = true);
    assert_eq!(chosen(&decide(&set, EnginePurpose::Deciding)), ["loud"]);
    assert_eq!(chosen(&decide(&set, EnginePurpose::Shadow)), ["quiet"]);
    let (live, shadow) = (&set.plugins()[0].health, &set.plugins()[0].shadow_health);
    assert_eq!((live.report().calls, live.report().refused), (0, 0));
    assert_eq!((shadow.report().calls, shadow.report().refused), (1, 1));
}
