//! Holds the order of the folders: a crate depends on crates of its own layer or of lower ones.
//!
//! The layers are those of ARCHITECTURE.md. A dependency of tests may also point to `tests`, which
//! holds what all tests share.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The folders of each layer, lowest first. A folder with groups is listed by its groups.
const LAYERS: [&[&str]; 9] = [
    &["model", "proto", "runtime"],
    &["weighers", "cost_modules", "tenant"],
    &["integration"],
    &["scheduler/core", "compute-agent"],
    &["scheduler/common"],
    &["scheduler/standalone", "scheduler/openstack"],
    &["scheduler/service"],
    &["simulator", "cli"],
    &["tests", "devstack", "fuzz"],
];

/// A dependency between two crates, named by their directories.
#[derive(Debug)]
struct Arrow {
    from: String,
    to: String,
    tests_only: bool,
}

fn layer(directory: &str) -> usize {
    let inside = |folder: &&str| {
        directory
            .strip_prefix(*folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let found = LAYERS.iter().position(|folders| folders.iter().any(inside));
    found.unwrap_or_else(|| panic!("{directory} is in no folder of LAYERS: add its folder there"))
}

/// All dependencies between crates of the workspace.
fn arrows() -> Vec<Arrow> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--locked", "--format-version=1"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let root = metadata["workspace_root"].as_str().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let directories: BTreeMap<&str, &str> = packages
        .iter()
        .map(|package| {
            let manifest = package["manifest_path"].as_str().unwrap();
            let directory = Path::new(manifest).parent().unwrap();
            let directory = directory.strip_prefix(root).unwrap().to_str().unwrap();
            (package["name"].as_str().unwrap(), directory)
        })
        .collect();
    let mut arrows = Vec::new();
    for package in packages {
        let from = directories[package["name"].as_str().unwrap()];
        for dependency in package["dependencies"].as_array().unwrap() {
            if let Some(to) = directories.get(dependency["name"].as_str().unwrap()) {
                arrows.push(Arrow {
                    from: from.to_owned(),
                    to: (*to).to_owned(),
                    tests_only: dependency["kind"].as_str() == Some("dev"),
                });
            }
        }
    }
    arrows
}

fn runs_up(arrow: &Arrow) -> bool {
    let shared_by_tests = arrow.tests_only && arrow.to.starts_with("tests/");
    !shared_by_tests && layer(&arrow.to) > layer(&arrow.from)
}

#[test]
fn no_dependency_points_to_a_higher_folder() {
    let arrows = arrows();
    // There are about 240; far fewer mean that the metadata were not understood.
    assert!(arrows.len() > 200, "only {} dependencies", arrows.len());
    let up: Vec<&Arrow> = arrows.iter().filter(|arrow| runs_up(arrow)).collect();
    assert!(up.is_empty(), "dependencies that point up: {up:#?}");
}

#[test]
fn an_upward_dependency_is_seen() {
    let arrow = |from: &str, to: &str, tests_only| Arrow {
        from: from.to_owned(),
        to: to.to_owned(),
        tests_only,
    };
    assert!(runs_up(&arrow("compute-agent", "scheduler/service", false)));
    assert!(runs_up(&arrow("integration/bus", "tests/harness", false)));
    assert!(!runs_up(&arrow("integration/bus", "tests/harness", true)));
    assert!(runs_up(&arrow("model", "scheduler/core/engine", true)));
}
