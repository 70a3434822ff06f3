//! How the process itself ends: exit codes, environment, configuration file, broken pipes.

use crate::fake::Fake;
use assert_cmd::Command;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

/// The program, without anything of this machine's environment.
fn ebbtide() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.env_clear().timeout(Duration::from_secs(60));
    command
}

/// A port without a listener.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_unreachable_region_is_exit_code_3_and_names_devstack_in_a_checkout_only() {
    let endpoint = nowhere();
    let ask = |dir: &std::path::Path| {
        ebbtide()
            .current_dir(dir)
            .args(["--endpoint", &endpoint, "host", "list"])
            .output()
            .unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let output = ask(dir.path());
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let err = stderr(&output);
    assert!(
        err.starts_with("EB-CLI-003: cannot reach the region: Connection refused"),
        "{err}"
    );
    assert!(
        err.contains("EBBTIDE_ENDPOINT") && err.contains(&endpoint),
        "{err}"
    );
    assert!(!err.contains("devstack"), "{err}");
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let err = stderr(&ask(&checkout));
    assert!(err.contains("`./devstack/up` starts one"), "{err}");
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for args in [
        &["host"][..],
        &["host", "lst"],
        &["--endpoint", "ftp://x", "status"],
    ] {
        let output = ebbtide().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{args:?}"
        );
    }
    let help = ebbtide().arg("--help").output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8(help.stdout).unwrap();
    for promise in [
        "Exit codes:",
        "3  the region cannot be reached",
        "EBBTIDE_ENDPOINT",
    ] {
        assert!(text.contains(promise), "{promise}: {text}");
    }
}

#[test]
fn a_broken_configuration_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ebbtide/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "endpoint = 5\n").unwrap();
    let output = ebbtide()
        .env("XDG_CONFIG_HOME", directory.path())
        .arg("status")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = stderr(&output);
    assert!(
        err.contains("EB-CLI-002") && err.contains("config.toml: line 1, column 12"),
        "{err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_come_before_the_environment_and_that_before_the_file() {
    let fake = Fake::start().await;
    let (good, bad) = (fake.endpoint(), nowhere());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let code = |flag: Option<&str>, env: Option<&str>, in_file: &str| {
        std::fs::write(&file, format!("endpoint = \"{in_file}\"\n")).unwrap();
        let mut command = ebbtide();
        command.env("EBBTIDE_CONFIG", &file).arg("host").arg("list");
        command.args(flag.map(|flag| format!("--endpoint={flag}")));
        command.envs(env.map(|env| ("EBBTIDE_ENDPOINT", env)));
        tokio::task::block_in_place(|| command.output().unwrap())
            .status
            .code()
    };
    assert_eq!(code(None, None, &good), Some(0));
    assert_eq!(code(None, Some(&good), &bad), Some(0));
    assert_eq!(code(Some(&good), Some(&bad), &bad), Some(0));
    assert_eq!(code(Some(&bad), Some(&good), &good), Some(3));
    let short = good.trim_start_matches("http://");
    assert_eq!(code(Some(short), None, &bad), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_exit_code_4_with_the_code_of_the_region() {
    let fake = Fake::start().await;
    let endpoint = fake.endpoint();
    let output = tokio::task::block_in_place(|| {
        let args = [
            "--endpoint",
            &endpoint,
            "server",
            "create",
            "--flavor",
            "x",
            "web",
        ];
        ebbtide().args(args).output().unwrap()
    });
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(
        stderr(&output).lines().next(),
        Some("EB-API-004: no flavor named \"x\"")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_error() {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.hosts = (0..5000)
            .map(|n| crate::fake::host(&format!("host-{n}"), 8, 16_000))
            .collect();
    });
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ebbtide"))
        .args(["--endpoint", &fake.endpoint(), "host", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let status = tokio::task::block_in_place(|| {
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        child.wait().unwrap()
    });
    let mut err = String::new();
    child.stderr.unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_watching_cleanly() {
    let fake = Fake::start().await;
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_ebbtide"))
        .args(["--endpoint", &fake.endpoint(), "watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let listening = async {
        while fake.events.receiver_count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), listening)
        .await
        .unwrap();
    // One event printed means that it is inside its loop, where it listens for the signal.
    fake.send(ebbtide_proto::v1::watch_event::Event::Lagged(1));
    let mut child = child;
    let status = tokio::task::block_in_place(|| {
        let mut line = Vec::new();
        let mut out = child.stdout.take().unwrap();
        while !line.ends_with(b"\n") {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        let pid = child.id().to_string();
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap();
        child.wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
}

/// A command whose readers have gone away before it says anything.
fn without_readers(args: &[&str], both: bool) -> std::process::ExitStatus {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(crate::run::binary_of(args));
    command.env_clear().args(args).stdin(Stdio::null());
    let errors = if both {
        Stdio::from(writer.try_clone().unwrap())
    } else {
        Stdio::null()
    };
    command.stdout(writer).stderr(errors).status().unwrap()
}

#[test]
fn readers_that_go_away_end_every_command_quietly() {
    for args in [
        &["--help"][..],
        &["completion", "bash"],
        &["config", "explain"],
        &["config", "explain", "-o", "json"],
        &["conform", "papers"],
        &["conform", "papers", "-o", "value"],
        &["simulate", "evacuation", "--seeds", "1", "--steps", "5"],
        &[
            "plan",
            "checkpoint",
            "--job",
            "1h",
            "--cost",
            "1m",
            "--model",
            "exponential:lambda=5",
        ],
        &[
            "bench",
            "preempt",
            "--hosts",
            "2",
            "--preemptibles",
            "2",
            "--requests",
            "1",
        ],
    ] {
        let status = without_readers(args, false);
        assert_eq!(status.code(), Some(0), "{args:?}: {status}");
    }
    // An error whose output is closed is an error all the same, and no panic (101).
    let endpoint = nowhere();
    for (args, code) in [
        (&["status", "--endpoint", &endpoint][..], 3),
        (&["host", "lst"], 2),
        (&[], 2),
    ] {
        let status = without_readers(args, true);
        assert_eq!(status.code(), Some(code), "{args:?}: {status}");
    }
}
