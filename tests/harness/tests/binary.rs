//! The program `ebbtide-harness` from outside.

#![allow(
    clippy::unwrap_used,
    reason = "test code: clippy knows test functions, but not their helpers in this folder"
)]

use ebbtide_harness::{Process, ProcessCommand, Signal, eventually};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A directory that servers started by root may enter.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    directory
}

fn harness(directory: &Path, arguments: &[&str]) -> Process {
    ProcessCommand::new("ebbtide-harness", env!("CARGO_BIN_EXE_ebbtide-harness"))
        .args(arguments)
        .spawn(directory.join("harness.log"))
        .unwrap()
}

async fn exit_code(arguments: &[&str]) -> (Option<i32>, String) {
    let directory = directory();
    let process = harness(directory.path(), arguments);
    let status = process.wait_exit(LONG).await.unwrap();
    (status.code(), process.log_tail())
}

/// The private directory of a server, from the line that announces it.
async fn home_of(process: &Process, server: &str) -> PathBuf {
    let line = process.wait_for_line(server, LONG).await.unwrap();
    let log = line.split("(log: ").nth(1).unwrap().trim_end_matches(')');
    Path::new(log).parent().unwrap().to_owned()
}

fn mentioned_by_processes(directory: &Path) -> bool {
    let wanted = directory.to_str().unwrap();
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let mentions = |name: &str| {
            std::fs::read(entry.path().join(name))
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(wanted))
        };
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        cwd.starts_with(directory) || mentions("cmdline") || mentions("environ")
    })
}

#[tokio::test]
async fn run_passes_the_exit_code_and_the_urls() {
    let script = r#"case $EBBTIDE_TEST_POSTGRES_URL,$EBBTIDE_TEST_MYSQL_URL in
        postgres://*/ebbtide,mysql://*/ebbtide) exit 7 ;;
        *) env; exit 1 ;;
    esac"#;
    let (code, output) =
        exit_code(&["run", "--postgresql", "--mariadb", "--", "sh", "-c", script]).await;
    assert_eq!(code, Some(7), "{output}");
    let (code, output) = exit_code(&["run", "--", "true"]).await;
    assert_eq!(code, Some(0), "{output}");
    let (code, output) = exit_code(&["run", "--", "sh", "-c", "kill -9 $$"]).await;
    assert_eq!(code, Some(128 + 9), "{output}");
    let (code, output) = exit_code(&["run", "--", "no-such-program-anywhere"]).await;
    assert_eq!(code, Some(127), "{output}");
    assert!(output.contains("no-such-program-anywhere"), "{output}");
}

#[tokio::test]
async fn run_passes_sigterm_on_and_tidies_up() {
    let directory = directory();
    let script = "trap 'exit 5' TERM; echo the command runs; while :; do sleep 0.01; done";
    let process = harness(
        directory.path(),
        &["run", "--postgresql", "--", "sh", "-c", script],
    );
    process
        .wait_for_line("the command runs", LONG)
        .await
        .unwrap();
    let home = home_of(&process, "PostgreSQL").await;
    assert!(home.is_dir());
    process.signal(Signal::Term).unwrap();
    let status = process.wait_exit(LONG).await.unwrap();
    assert_eq!(status.code(), Some(5));
    assert!(!home.exists());
}

#[tokio::test]
async fn a_harness_that_is_killed_leaves_neither_processes_nor_directories() {
    let directory = directory();
    // Killed as a stranger would do it, with SIGKILL for the harness alone: not through `Process`,
    // which kills the whole tree.
    let script = "echo the command $$ of $PPID; exec sleep 1000";
    let all = ["run", "--rabbitmq", "--mariadb", "--postgresql"];
    let arguments = [&all[..], &["--", "sh", "-c", script]].concat();
    let process = harness(directory.path(), &arguments);
    let line = process.wait_for_line("the command ", LONG).await.unwrap();
    let command = line.split(' ').nth(2).unwrap().to_owned();
    let mut homes = Vec::new();
    for server in ["RabbitMQ", "MariaDB", "PostgreSQL"] {
        homes.push(home_of(&process, server).await);
    }
    for home in &homes {
        assert!(home.is_dir() && mentioned_by_processes(home));
    }
    let killed = std::process::Command::new("sh")
        .args(["-c", "kill -KILL \"$1\"", "sh", &process.pid().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    process.wait_exit(LONG).await.unwrap();
    eventually(LONG, async || {
        for home in &homes {
            if home.exists() {
                return Err(format!("{} is there", home.display()));
            }
            if mentioned_by_processes(home) {
                return Err(format!("processes of {} live", home.display()));
            }
        }
        if Path::new("/proc").join(&command).join("cwd").exists() {
            return Err("the command lives".to_owned());
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn serve_tells_where_its_servers_are_and_keeps_their_data() {
    let directory = directory();
    let dir = directory.path().join("state");
    let arguments = ["serve", "--postgresql", "--dir", dir.to_str().unwrap()];
    let file = dir.join("services.json");
    let read = async || eventually(LONG, async || std::fs::read_to_string(&file)).await;

    let process = harness(directory.path(), &arguments);
    let first: serde_json::Value = serde_json::from_str(&read().await).unwrap();
    assert_eq!(first["harness_pid"], process.pid());
    let service = &first["postgresql"];
    let port = service["port"].as_u64().unwrap();
    assert_eq!(
        service["url"],
        format!("postgres://ebbtide:ebbtide@127.0.0.1:{port}/ebbtide")
    );
    assert!(Path::new(service["log"].as_str().unwrap()).is_file());
    let server = PathBuf::from(format!("/proc/{}", service["pid"]));
    assert!(server.is_dir());
    assert!(first.get("rabbitmq").is_none());

    let (code, output) = exit_code(&arguments).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("EB-HARNESS-010"), "{output}");
    assert!(
        file.is_file(),
        "the second one has removed the file of the first"
    );

    process.signal(Signal::Int).unwrap();
    assert_eq!(process.wait_exit(LONG).await.unwrap().code(), Some(0));
    assert!(!file.exists());
    assert!(!server.exists());
    assert!(dir.join("postgresql/data").exists());

    let process = harness(directory.path(), &arguments);
    let second: serde_json::Value = serde_json::from_str(&read().await).unwrap();
    assert_eq!(second["postgresql"]["url"], service["url"]);

    // A server that ends is no state to go on in.
    let pid = second["postgresql"]["pid"].to_string();
    let killed = std::process::Command::new("sh")
        .args(["-c", "kill -QUIT \"$1\"", "sh", &pid])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(process.wait_exit(LONG).await.unwrap().code(), Some(1));
    process
        .wait_for_line("PostgreSQL has ended by itself", LONG)
        .await
        .unwrap();
    assert!(!file.exists());
}
