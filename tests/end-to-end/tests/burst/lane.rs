//! The script of a lane, run by a shell as slurmd would: what a notice does to it.

use crate::test_bed::{PATIENCE, counted};
use ebbtide_harness::{Process, ProcessCommand, eventually};
use ebbtide_integration_tests::bin;
use std::path::{Path, PathBuf};

const BAG: &str = r#"
rules = { deadline = "600s" }
tasks = [{ name = "frame", count = 2, duration = "60s", memory_mb = 100 }]
types = [{ name = "node", vcpus = 1, memory_mb = 4000, on_demand = 0.30, preemptible = 0.10 }]
"#;

/// Says that it has begun, and ends when it may; saves and gives up when it is told to.
const WORK: &str = r#"echo "begun $EBBTIDE_TASK" >>$EBBTIDE_BAG_DIR/begun; trap 'exit 3' USR1
while [ ! -e $EBBTIDE_BAG_DIR/go ]; do sleep 0.05; done"#;

/// A bag of two tasks in one lane, not submitted.
struct Bag {
    dir: tempfile::TempDir,
    script: PathBuf,
}

impl Bag {
    async fn new(command: &str, more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("bag.toml");
        std::fs::write(&file, BAG).unwrap();
        let process = ProcessCommand::new("ebbtide", bin("ebbtide"))
            .args(["bag", "submit"])
            .arg(&file)
            .arg("--dir")
            .arg(dir.path())
            .args(["--command", command, "--dry-run"])
            .args(more.iter().copied())
            .spawn(dir.path().join("submit.log"))
            .unwrap();
        let status = process.wait_exit(PATIENCE).await.unwrap();
        assert!(status.success(), "{}", process.log_tail());
        let script = dir.path().join("primary-0.sh");
        Self { dir, script }
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    /// Starts the lane.
    fn lane(&self) -> Process {
        ProcessCommand::new("a lane", "/bin/sh")
            .arg(&self.script)
            .env("SLURM_ARRAY_TASK_ID", "1")
            .env("SLURM_JOB_ID", "7")
            .env("SLURMD_NODENAME", "c1")
            .spawn(self.dir.path().join("lane.log"))
            .unwrap()
    }

    /// Waits until so many tasks have begun.
    async fn begun(&self, times: usize) {
        eventually(PATIENCE, async || {
            let begun = self.text("begun");
            if begun.lines().count() >= times {
                Ok(())
            } else {
                Err(begun)
            }
        })
        .await;
    }

    fn go(&self) {
        std::fs::write(self.dir.path().join("go"), "").unwrap();
    }

    fn done(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("done"))
            .unwrap()
            .count()
    }
}

/// What `scancel --batch --signal=SIGNAL` does.
fn notice(lane: &Process, signal: &str) {
    let pid = lane.pid().to_string();
    let sent = std::process::Command::new(Path::new("/bin/kill"))
        .args([signal, &pid])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[tokio::test]
async fn a_command_that_knows_nothing_of_notices_works_on_through_one() {
    let bag = Bag::new(WORK, &[]).await;
    let lane = bag.lane();
    bag.begun(1).await;
    notice(&lane, "-USR1");
    notice(&lane, "-USR1");
    bag.go();
    let status = lane.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", lane.log_tail());
    let begun = counted(&bag.text("begun"), "begun");
    assert_eq!(begun.values().collect::<Vec<_>>(), [&1, &1]);
    assert_eq!(bag.done(), 2);
    assert_eq!(bag.text("log").matches(" failed ").count(), 0);
}

#[tokio::test]
async fn a_task_that_saved_its_work_on_notice_begins_again_and_has_not_failed() {
    saves_and_begins_again(WORK, &["--pass-notice"], "-USR1").await;
}

#[tokio::test]
async fn a_lane_hears_the_signal_that_the_controller_is_told_to_send() {
    let work = WORK.replace("USR1", "USR2");
    let more = ["--pass-notice", "--notice-signal", "USR2"];
    saves_and_begins_again(&work, &more, "-USR2").await;
}

async fn saves_and_begins_again(command: &str, more: &[&str], signal: &str) {
    let bag = Bag::new(command, more).await;
    let lane = bag.lane();
    bag.begun(1).await;
    notice(&lane, signal);
    bag.begun(2).await;
    bag.go();
    let status = lane.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", lane.log_tail());
    let begun = counted(&bag.text("begun"), "begun");
    assert_eq!(begun.values().sum::<usize>(), 3);
    assert_eq!(bag.done(), 2);
    assert_eq!(bag.text("log").matches(" failed ").count(), 0);
}

#[tokio::test]
async fn a_task_that_fails_is_written_down_and_the_next_one_begins() {
    let bag = Bag::new("echo \"begun $EBBTIDE_TASK\" >>$EBBTIDE_BAG_DIR/begun; [ \"$EBBTIDE_TASK\" != $(head -1 $EBBTIDE_BAG_DIR/begun | cut -d' ' -f2) ]", &[]).await;
    let lane = bag.lane();
    let status = lane.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(1), "{}", lane.log_tail());
    assert_eq!(bag.done(), 1);
    assert_eq!(bag.text("log").matches(" failed ").count(), 1);
}
