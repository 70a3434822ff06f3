//! Sets of plugins: used whole or not at all, and each watched.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.
#![cfg(feature = "wasm")]

use ebbtide_engine::{EngineConfig, PluginFailure, WeigherConfig};
use ebbtide_plugins::{
    EnginePurpose, Multipliers, PluginConfig, PluginEntry, PluginKind, PluginSet, Services, Sources,
};
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
