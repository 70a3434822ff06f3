//! Holds the order of the folders: a crate depends on crates of its own layer or of lower ones.
//!
//! The layers are those of ARCHITECTURE.md, whose code map lists every crate. A dependency of tests
//! may also point to `tests`, which holds what all tests share. Dependencies from outside that
//! belong to a few crates are here, too.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
    &["tests", "devstack", "fuzz", "packaging"],
];

/// Dependencies from outside of the workspace, and the only directories whose programs and
/// libraries may have them. CONTRIBUTING.md lists the same.
const ONLY_IN: [(&str, &[&str]); 8] = [
    ("getrandom", &["runtime"]),
    (
        "lapin",
        &[
            "integration/amqp",
            "integration/bus",
            "integration/oslo-messaging",
        ],
    ),
    ("opentelemetry", &["runtime/telemetry"]),
    ("plotters", &["cli/chart"]),
    ("reqwest", &["integration/openstack"]),
    (
        "sea-orm",
        &[
            "integration/nova-db",
            "integration/sql-pool",
            "scheduler/common/store",
        ],
    ),
    (
        "tonic",
        &[
            "cli",
            "cli/client",
            "cli/lab",
            "cli/server-pool",
            "cli/shell",
            "proto",
            "runtime/telemetry",
            "scheduler/common/rest",
            "scheduler/service",
            "weighers/remote",
        ],
    ),
    ("wasmtime", &["weighers/wasm"]),
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

/// What cargo knows of the workspace, without crates from outside.
fn metadata() -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--locked", "--format-version=1"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The directory of each crate below the root of the workspace, by the crate's name.
fn directories(metadata: &Value) -> BTreeMap<&str, &str> {
    let root = metadata["workspace_root"].as_str().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let named = packages.iter().map(|package| {
        let manifest = package["manifest_path"].as_str().unwrap();
        let directory = Path::new(manifest).parent().unwrap();
        let directory = directory.strip_prefix(root).unwrap().to_str().unwrap();
        (package["name"].as_str().unwrap(), directory)
    });
    named.collect()
}

/// All dependencies between crates of the workspace.
fn arrows() -> Vec<Arrow> {
    let metadata = metadata();
    let directories = directories(&metadata);
    let packages = metadata["packages"].as_array().unwrap();
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
fn a_dependency_that_belongs_to_a_few_crates_is_in_no_other() {
    let metadata = metadata();
    let directories = directories(&metadata);
    for (dependency, allowed) in ONLY_IN {
        let packages = metadata["packages"].as_array().unwrap().iter();
        let users = packages.filter(|package| {
            let mut own = package["dependencies"].as_array().unwrap().iter();
            own.any(|d| d["name"] == dependency && d["kind"].as_str() != Some("dev"))
        });
        let users = users.map(|package| directories[package["name"].as_str().unwrap()]);
        // These crates are no part of the product.
        let users = users.filter(|of| layer(of) < LAYERS.len() - 1);
        let users: BTreeSet<&str> = users.collect();
        let allowed = allowed.iter().copied().collect();
        assert_eq!(users, allowed, "{dependency}: ONLY_IN and CONTRIBUTING.md");
    }
}

/// The lines of the code map of ARCHITECTURE.md: the folder of a crate, and the rest of the line.
fn code_map(page: &str) -> BTreeMap<&str, &str> {
    let map = page
        .split("\n## ")
        .find(|part| part.starts_with("Code map"));
    let lines = map.expect("a code map").lines();
    let items = lines.filter_map(|line| line.strip_prefix("- `")?.split_once("`: "));
    items.collect()
}

#[test]
fn the_code_map_names_every_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let map = code_map(&page);
    let metadata = metadata();
    let directories = directories(&metadata);
    let folders: BTreeSet<&str> = directories.values().copied().collect();
    let listed: BTreeSet<&str> = map.keys().copied().collect();
    assert_eq!(listed, folders, "the code map of ARCHITECTURE.md");
    for (name, folder) in directories {
        let last = folder.rsplit('/').next().unwrap_or(folder);
        let text = map[folder];
        assert!(
            name == format!("ebbtide-{last}") || text.starts_with(&format!("`{name}`")),
            "ARCHITECTURE.md: the line of {folder} has to begin with the crate's name, `{name}`"
        );
    }
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
