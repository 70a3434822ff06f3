//! Release builds have no places to die at, and there is no second mechanism beside this one.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Test code.

use ebbtide_fail_points::{FailPoint, VARIABLE};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program that comes to every place, as scheduler and agent do.
const PROGRAM: &str = "
use ebbtide_fail_points::{FailPoint, is_armed, reach, reach_if};
fn main() {
    for point in FailPoint::ALL {
        if is_armed(*point) { println!(\"armed\"); }
        reach_if(*point, || false);
        reach(*point);
    }
    println!(\"lived\");
}
";

const ABORTED: i32 = 6; // SIGABRT

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_owned()
}

fn rustc(dir: &Path, arguments: &[&str]) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .current_dir(dir)
        .args(["--edition", "2024", "-C", "opt-level=3"])
        .args(arguments)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "rustc {arguments:?}: {told}");
}

/// The program, built as a release profile does, with or without debug assertions.
fn build(name: &str, assertions: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("program.rs"), PROGRAM).unwrap();
    let library = root().join("integration/fail-points/src/lib.rs");
    let assertions = format!("debug-assertions={assertions}");
    let library = library.to_str().unwrap();
    let kind = [
        "--crate-type",
        "rlib",
        "--crate-name",
        "ebbtide_fail_points",
    ];
    rustc(&dir, &[&kind[..], &["-C", &assertions, library]].concat());
    let uses = [
        "--extern",
        "ebbtide_fail_points=libebbtide_fail_points.rlib",
    ];
    rustc(
        &dir,
        &[&uses[..], &["-C", &assertions, "program.rs"]].concat(),
    );
    dir.join("program")
}

fn run(program: &Path, at: &str) -> Output {
    Command::new(program).env(VARIABLE, at).output().unwrap()
}

/// What `devstack/lib/no-fail-points.sh` says of a program: it is run on the real ones where
/// release builds are made.
fn searched(program: &Path) -> Output {
    let script = root().join("devstack/lib/no-fail-points.sh");
    Command::new("bash")
        .arg(script)
        .arg(program)
        .output()
        .unwrap()
}

#[test]
fn a_release_build_has_no_place_to_die_at_and_the_search_finds_those_of_a_debug_build() {
    let (debug, release) = (build("with", "on"), build("without", "off"));
    for point in FailPoint::ALL {
        let died = run(&debug, point.name());
        assert_eq!(died.status.signal(), Some(ABORTED), "{}", point.name());
        let lived = run(&release, point.name());
        assert!(lived.status.success(), "{}: {lived:?}", point.name());
        assert_eq!(lived.stdout, b"lived\n", "{}", point.name());
    }
    assert!(run(&release, "no-such-place").status.success());

    let found = searched(&debug);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let told = String::from_utf8(found.stderr).unwrap();
    for name in FailPoint::ALL
        .iter()
        .map(|point| point.name())
        .chain([VARIABLE])
    {
        assert!(told.contains(name), "{name} is not found: {told}");
    }
    let clean = searched(&release);
    assert!(clean.status.success(), "{clean:?}");
}

/// All Rust sources of programs below a folder; tests are not part of them.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            if !name.starts_with('.') && !["target", "tests", "node_modules"].contains(&&*name) {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_other_crate_ends_its_process_at_a_place_of_its_own() {
    let (root, mut found) = (root(), Vec::new());
    sources(&root, &mut found);
    let own = root.join("integration/fail-points");
    // What the end-to-end tests set for the processes that they start.
    let sets = root.join("tests/end-to-end/src");
    let mut looked = 0;
    for path in found {
        if path.starts_with(&own) || path.starts_with(&sets) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for mark in ["process::abort", "_DIE_AT", "_CRASH_AT"] {
            assert!(!text.contains(mark), "{} has {mark}", path.display());
        }
        looked += 1;
    }
    assert!(looked > 500, "looked at {looked} sources only");
}
