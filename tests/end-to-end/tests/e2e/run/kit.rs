//! Short words for runs.

use ebbtide_harness::{Process, ProcessCommand};
use ebbtide_integration_tests::bin;
use ebbtide_integration_tests::region::PATIENCE;
use std::path::{Path, PathBuf};

/// A job, its state, and what is said about it.
pub(crate) struct TestHarness {
    dir: tempfile::TempDir,
    runs: std::cell::Cell<u32>,
}

/// A run that is under way.
pub(crate) struct Run {
    pub(crate) process: Process,
    result: PathBuf,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) json: serde_json::Value,
}

impl TestHarness {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            runs: std::cell::Cell::new(0),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Begins `ebbtide run` with the state directory `state`, and the JSON at its end.
    pub(crate) fn run(&self, endpoint: Option<&str>, arguments: &[&str], command: &[&str]) -> Run {
        let n = self.runs.get();
        self.runs.set(n + 1);
        let result = self.path(&format!("result-{n}.json"));
        let mut run = ProcessCommand::new("ebbtide run", "/bin/sh")
            .args(["-c", "out=$1; shift; exec \"$@\" > \"$out\"", "sh"])
            .arg(&result)
            .arg(bin("ebbtide"))
            .args(["run", "--output", "json", "--state-dir"])
            .arg(self.path("state"))
            .args(arguments.iter().copied())
            .arg("--")
            .args(command.iter().copied())
            .env("EBBTIDE_PROJECT", "tests")
            // A command that is killed together with the run reports nothing, but its children may
            // still need cleanup.
            .current_dir(self.dir.path());
        if let Some(endpoint) = endpoint {
            run = run.env("EBBTIDE_ENDPOINT", endpoint);
        }
        let process = run.spawn(self.path(&format!("run-{n}.log"))).unwrap();
        Run { process, result }
    }
}

impl Run {
    /// Waits until it has said this so many times.
    pub(crate) async fn says(&self, text: &str, times: usize) {
        ebbtide_harness::eventually(PATIENCE, async || {
            let said = std::fs::read_to_string(self.process.log_path().unwrap()).unwrap();
            match said.matches(text).count() {
                count if count >= times => Ok(()),
                count if self.process.exit_status().is_some() => {
                    panic!("it ended and has said {text:?} {count} times only:\n{said}")
                }
                count => Err(format!("{text:?} {count} of {times} times:\n{said}")),
            }
        })
        .await;
    }

    pub(crate) async fn ended(self) -> RunResult {
        // Some runs are preempted three times, each with a restart from a checkpoint.
        let status = self.process.wait_exit(2 * PATIENCE).await.unwrap();
        let said = std::fs::read_to_string(self.process.log_path().unwrap()).unwrap();
        let text = std::fs::read_to_string(&self.result).unwrap();
        RunResult {
            code: status.code(),
            output: said,
            json: serde_json::from_str(&text).unwrap_or_default(),
        }
    }
}

/// What a program prints.
pub(crate) async fn printed(program: &Path, arguments: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let process = ProcessCommand::new("a program", program)
        .args(arguments.iter().copied())
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(status.success(), "{text}");
    text
}
