//! The units in `packaging/systemd`, as systemd judges them without starting them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Ten times what `systemd-analyze security` may give a unit.
const THRESHOLD: &str = "20";

fn units() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd");
    let entries = fs::read_dir(folder).unwrap();
    let mut units: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    units.retain(|path| path.extension().is_some_and(|kind| kind == "service"));
    units.sort();
    assert!(units.len() >= 5, "{units:?}");
    units
}

/// A copy whose program is there on every machine, with an instance's name if it is a template.
fn judged(unit: &Path, to: &Path) -> PathBuf {
    let text = fs::read_to_string(unit).unwrap();
    let text = text
        .replace("/usr/bin/ebbtide-scheduler", "/bin/true")
        .replace("/usr/bin/ebbtide-agent", "/bin/true")
        .replace("/usr/lib/ebbtide-scheduler/reload-credentials", "/bin/true")
        .replace("/usr/lib/ebbtide-agent/reload-credentials", "/bin/true")
        .replace("/usr/bin/ebbtide-batch", "/bin/true");
    let name = unit.file_name().unwrap().to_str().unwrap();
    let copy = to.join(name.replace("@.service", "@a.service"));
    fs::write(&copy, text).unwrap();
    copy
}

fn analyze(arguments: &[&str], unit: &Path) -> Output {
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).arg(unit).env("SYSTEMD_COLORS", "0");
    command
        .output()
        .expect("systemd-analyze of the package systemd")
}

#[test]
fn systemd_knows_every_line_of_every_unit() {
    let to = tempfile::tempdir().unwrap();
    for unit in units() {
        let output = analyze(&["verify", "--man=no"], &judged(&unit, to.path()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("ebbtide"))
            .collect();
        assert!(output.status.success() && ours.is_empty(), "{said}");
    }
}

#[test]
fn no_unit_is_more_exposed_than_two() {
    let to = tempfile::tempdir().unwrap();
    for unit in units() {
        let threshold = format!("--threshold={THRESHOLD}");
        let arguments = ["security", "--no-pager", "--offline=true", &threshold];
        let output = analyze(&arguments, &judged(&unit, to.path()));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Overall exposure level"), "{output:?}");
        assert!(output.status.success(), "{}: {said}", unit.display());
    }
}

/// What agent and scheduler promise their service manager.
#[test]
fn every_unit_notifies_has_a_watchdog_and_restarts() {
    for unit in units() {
        let text = fs::read_to_string(&unit).unwrap();
        for line in ["Type=notify", "WatchdogSec=", "Restart=on-failure"] {
            assert!(text.contains(line), "{}: {line}", unit.display());
        }
    }
}
