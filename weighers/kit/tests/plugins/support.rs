//! Building plugins in tests.

use ebbtide_plugin_kit::{Check, CheckOutcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where all projects of these tests are built, so that what they have in common is built once.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects")
}

/// Runs a program in a project and gives what it said. It has to go well.
pub(crate) fn run(dir: &Path, program: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(words).current_dir(dir);
    command.env("CARGO_TARGET_DIR", target());
    // Flags of the build around us are not meant for it.
    command
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let done = command
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said =
        String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{program} {words:?}: {said}");
    said
}

/// Runs cargo in a project.
pub(crate) fn cargo(dir: &Path, words: &[&str]) -> String {
    run(dir, env!("CARGO"), words)
}

/// The component of a Rust project that has been built for release.
pub(crate) fn built(name: &str) -> PathBuf {
    target()
        .join("wasm32-wasip2/release")
        .join(name)
        .with_extension("wasm")
}

/// The checks that found something wrong.
pub(crate) fn failures(checks: &[Check]) -> Vec<&Check> {
    checks
        .iter()
        .filter(|check| check.outcome == CheckOutcome::Failed)
        .collect()
}
