//! Plugins of a running scheduler: they weigh, are replaced without a restart, and a bad set
//! changes nothing.

use super::kit::{create, flavor, request};
use ebbtide_harness::{Signal, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use std::path::{Path, PathBuf};

/// The first component that was ever made: a weigher by free processors and memory.
fn first() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.join("../../weighers/wasm/tests/fixtures/weigher-1.0.wasm")
}

fn section(file: &Path, more: &str) -> String {
    format!(
        "[[plugins]]\nname = \"spread\"\nfile = \"{}\"\n{more}\n",
        file.display()
    )
}

async fn plugins(region: &Region) -> Vec<v1::Plugin> {
    let mut admin = region.admin().await.unwrap();
    let listed = admin.list_plugins(v1::ListPluginsRequest {}).await.unwrap();
    listed.into_inner().plugins
}

/// Replaces the plugins in the scheduler's configuration, as an operator would with an editor, and
/// tells the scheduler.
fn reconfigure(region: &Region, from: &str, to: &str) {
    let path = region.dir().join("scheduler.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    region.signal_scheduler(Signal::Hup).unwrap();
}

#[tokio::test]
async fn a_weigher_that_was_added_weighs_and_is_replaced_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("spread.wasm");
    std::fs::copy(first(), &file).unwrap();
    let options = RegionOptions {
        sections: section(&file, "multiplier = 2.0"),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    flavor(&region, "m1", 1, &[]).await;
    let (_, decision) = create(&region, "one", request("m1", 1)).await;
    let explanation = decision.explanation.unwrap();
    let ranked = &explanation.instances[0].ranking[0];
    let weight = ranked
        .weights
        .iter()
        .find(|w| w.weigher == "spread")
        .expect("it has weighed");
    assert_eq!(weight.multiplier.to_bits(), 2.0_f64.to_bits());
    // Eight processors and 16000 MiB are free on each host.
    assert_eq!(
        weight.raw.to_bits(),
        (8.0_f64 + 16_000.0 / 1024.0).to_bits()
    );
    let listed = plugins(&region).await;
    assert_eq!(listed.len(), 1);
    let plugin = &listed[0];
    assert_eq!(
        (
            plugin.name.as_str(),
            plugin.kind.as_str(),
            plugin.carrier.as_str()
        ),
        ("spread", "weigher", "wasm")
    );
    assert!(plugin.in_use && plugin.enabled && !plugin.resting);
    assert_eq!((plugin.calls, plugin.failures), (1, 0));

    reconfigure(&region, "multiplier = 2.0", "multiplier = -5.0");
    eventually(PATIENCE, async || {
        let multiplier = plugins(&region).await[0].multiplier;
        match multiplier == Some(-5.0) {
            true => Ok(()),
            false => Err(format!("the multiplier is {multiplier:?}")),
        }
    })
    .await;
    let (_, decision) = create(&region, "two", request("m1", 1)).await;
    let explanation = decision.explanation.unwrap();
    let weights = &explanation.instances[0].ranking[0].weights;
    let weight = weights
        .iter()
        .find(|w| w.weigher == "spread")
        .expect("it has weighed");
    assert_eq!(weight.multiplier.to_bits(), (-5.0_f64).to_bits());
    // What is known of it stays known: only how much it counts has changed.
    assert_eq!(plugins(&region).await[0].calls, 2);

    // Half a file: the set is refused, and the old one goes on.
    let half = dir.path().join("half.wasm");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    reconfigure(
        &region,
        &file.display().to_string(),
        &half.display().to_string(),
    );
    eventually(PATIENCE, async || {
        let log = region.scheduler_log();
        match log.contains("EB-PLUGIN-003") && log.contains("the plugins stay as they are") {
            true => Ok(()),
            false => Err("nothing is said of it yet".to_owned()),
        }
    })
    .await;
    create(&region, "three", request("m1", 1)).await;
    let plugin = &plugins(&region).await[0];
    assert_eq!(
        (plugin.multiplier, plugin.calls, plugin.failures),
        (Some(-5.0), 3, 0)
    );

    // Without it: all that was said of plugins goes.
    let text = section(&half, "multiplier = -5.0");
    reconfigure(&region, &text, "");
    eventually(PATIENCE, async || match plugins(&region).await.len() {
        0 => Ok(()),
        n => Err(format!("{n} plugins are left")),
    })
    .await;
    let (_, decision) = create(&region, "four", request("m1", 1)).await;
    let weights = decision.explanation.unwrap().instances[0].ranking[0]
        .weights
        .clone();
    assert!(weights.iter().all(|weight| weight.weigher != "spread"));
}

#[tokio::test]
async fn a_scheduler_does_not_start_with_a_plugin_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes.wasm");
    std::fs::write(&file, "to do: write it").unwrap();
    let options = RegionOptions {
        sections: section(&file, ""),
        ..RegionOptions::default()
    };
    let mut region = Region::prepare(options).await.unwrap();
    assert!(region.start_scheduler().await.is_err());
    let log = region.scheduler_log();
    assert!(log.contains("EB-PLUGIN-003: plugins: \"spread\""), "{log}");
}
