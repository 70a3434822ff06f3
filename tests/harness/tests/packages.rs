//! `devstack/lib/packages.sh`, as far as it can be tested without installing anything. That the
//! programs are there is what all other tests of this crate need.

#![allow(
    clippy::unwrap_used,
    reason = "test code: clippy knows test functions, but not their helpers in this folder"
)]

use std::path::Path;
use std::process::{Command, Output};

fn packages(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devstack/lib/packages.sh");
    Command::new("bash")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn nothing_is_done_or_said_when_all_is_there() {
    let output = packages(&["rabbitmq", "mariadb", "postgresql"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn an_unknown_service_is_refused_by_name() {
    let output = packages(&["rabbitmq", "oracle"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'oracle'"));
    assert_eq!(packages(&[]).status.code(), Some(2));
}
