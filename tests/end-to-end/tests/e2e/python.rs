//! Plugins in Python, and Nova's own weighers.

use super::command::ebbtide;
use super::kit::{create, flavor, request};
use ebbtide_harness::{ProcessCommand, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Debian's: it has Debian's Nova and gRPC.
const PYTHON: &str = "/usr/bin/python3";
/// Processor time of a thousand cases of the corpus, many times over: a busy machine takes longer,
/// and not more work.
const MOST_CPU_SECONDS: &str = "300";
/// The wall time after which it hangs.
const LONG: Duration = Duration::from_secs(1100);

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integration/python")
}

#[tokio::test]
async fn the_python_kit_and_novas_weighers_pass_their_own_tests() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("unittest.log");
    let limited = "ulimit -t \"$1\" && shift && exec \"$@\"";
    let process = ProcessCommand::new("unittest", "/bin/bash")
        .env("PYTHONPATH", package())
        .args(["-c", limited, "limited", MOST_CPU_SECONDS, PYTHON])
        .args(["-W", "ignore", "-m", "unittest", "discover", "-s"])
        .arg(package().join("tests"))
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(LONG).await.unwrap();
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(
        status.success(),
        "bash devstack/lib/packages.sh nova-weighers installs what it needs: {said}"
    );
    assert!(said.contains("RAMWeigher': 1"), "{said}");
}

#[tokio::test]
async fn a_weigher_of_novas_counts_in_a_region_as_the_compiled_in_one_does() {
    let region = Region::start(RegionOptions {
        engine: "policy = \"nova\"".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    let socket = region.dir().join("nova.sock");
    let address = format!("unix:{}", socket.display());
    let _service = ProcessCommand::new("ebbtide-nova-weighers", PYTHON)
        .env("PYTHONPATH", package())
        .args([
            "-W",
            "ignore",
            "-m",
            "ebbtide_plugin.nova",
            "--listen",
            &address,
        ])
        .args(["--weigher", "nova.scheduler.weights.ram.RAMWeigher"])
        .spawn(region.dir().join("nova.log"))
        .unwrap();
    eventually(PATIENCE, async || match socket.exists() {
        true => Ok(()),
        false => Err("it does not listen yet"),
    })
    .await;
    let add = [
        "plugin",
        "add",
        "novas_ram",
        "--address",
        &address,
        "--plugin",
        "nova.scheduler.weights.ram.RAMWeigher",
        "--deadline-ms",
        "5000",
        "--on-failure",
        "refuse",
    ];
    let said = ebbtide(&region, &add).await;
    assert_eq!(said.code, Some(0), "{}", said.text);
    flavor(&region, "m1", 1, &[]).await;
    for name in ["one", "two", "three", "four", "five"] {
        let (_, decision) = create(&region, name, request("m1", 1)).await;
        let explanation = decision.explanation.unwrap();
        for host in &explanation.instances[0].ranking {
            let given = |weigher: &str| {
                let mut weights = host.weights.iter();
                let weight = weights.find(|weight| weight.weigher == weigher).unwrap();
                (weight.raw, weight.normalised, weight.multiplier)
            };
            assert_eq!(given("novas_ram"), given("ram"), "{name} on {}", host.host);
        }
    }
}
