//! Bags by primary and backup maps with a real Slurm: the nodes of hibernated servers are frozen
//! with all that runs on them, and their tasks go on where they were, or are done on a backup.

use crate::test_bed::{Beside, TestBed, Wanted};
use ebbtide_harness::{Process, eventually};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(240);
/// Tasks of a bag, and how long each counts, halves of a second. A task counts in small steps,
/// since a frozen `sleep` would not notice that it was.
const TASKS: usize = 4;
const HALVES: u32 = 16;

/// Writes a bag.
fn bag(bed: &TestBed, name: &str, deadline: u32) -> PathBuf {
    let (begins, ends) = (format!("{name}-begins"), format!("{name}-ends"));
    let (begins, ends) = (bed.path(&begins), bed.path(&ends));
    let count = format!(
        "echo $EBBTIDE_TASK $EBBTIDE_ATTEMPT >>{}; i=0; while [ $i -lt {HALVES} ]; do i=$((i+1)); sleep 0.5; done; echo $EBBTIDE_TASK on $SLURMD_NODENAME >>{}",
        begins.display(),
        ends.display()
    );
    let document = json!({
        "name": name, "dir": bed.path(name), "command": count,
        "rules": {"deadline": deadline, "boot": 25, "margin": 20, "slot": "1s"},
        "tasks": [{"name": "t", "count": TASKS, "duration": HALVES / 2 + 4, "memory_mb": 100}],
    });
    let path = bed.path(&format!("{name}.json"));
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

/// Waits until the journal has so many events of a kind of the newest bag, which is the first or
/// the second.
async fn journal(bed: &TestBed, process: &Process, bags: usize, event: &str, least: usize) {
    eventually(LONG, async || {
        let text = bed.text("with/maps.jsonl");
        let mut begun = text.split("\"event\":\"begun\"");
        let word = format!("\"event\":\"{event}\"");
        let newest = begun.nth(bags).unwrap_or_default();
        if newest.matches(&word).count() >= least {
            Ok(())
        } else {
            Err(format!("{event}: {text}\n{}", process.log_tail()))
        }
    })
    .await;
}

/// Waits until two tasks run, one on each core of the first server.
async fn two_run(bed: &TestBed, name: &str, process: &Process) {
    eventually(LONG, async || {
        let begun = bed.text(&format!("{name}-begins"));
        if begun.lines().count() >= 2 {
            Ok(())
        } else {
            Err(process.log_tail())
        }
    })
    .await;
}

/// Every task ended once; on how many nodes of normal servers.
fn ends(bed: &TestBed, name: &str) -> usize {
    let text = bed.text(&format!("{name}-ends"));
    let mut tasks: Vec<&str> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["t-1", "t-2", "t-3", "t-4"], "{text}");
    text.lines()
        .filter(|line| line.ends_with("c5") || line.ends_with("c6"))
        .count()
}

#[tokio::test]
#[ignore = "minutes; asked for with --run-ignored"]
async fn tasks_of_frozen_nodes_go_on_or_move_to_a_backup_in_time() {
    let wanted = Wanted {
        region: true,
        machines: true,
        resume_timeout: 30,
    };
    let bed = TestBed::with(Beside::Batch, wanted).await;
    let config = bed.batch_settings("with", "length_reserve = 0.0\nlag_seconds = 2");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text
        .replace("p.node", "p.sleep")
        .replace("model = \"uniform:max=24\"\n", "");
    std::fs::write(&config, text).unwrap();

    // Frozen, and back in time; the program is killed meanwhile.
    let file = bag(&bed, "waits", 150);
    let file = file.to_str().unwrap();
    let process = bed.burst("bag", &config, &[file]);
    two_run(&bed, "waits", &process).await;
    bed.preempt(6).await;
    journal(&bed, &process, 1, "hibernated", 1).await;
    process.kill();
    drop(process);
    // The outage is this long, and nothing is awaited: tasks stay frozen, and no program looks.
    tokio::time::sleep(Duration::from_secs(8)).await;
    bed.end_normal_servers().await;
    let process = bed.burst("bag", &config, &[file]);
    let status = process.wait_exit(LONG).await.unwrap();
    let log = process.log_tail();
    eprintln!("{log}");
    assert!(status.success(), "{log}");
    // What was frozen is done where it was, by its first attempt. On a busy machine others may be
    // late, and move.
    assert!(ends(&bed, "waits") <= TASKS - 2, "{log}");
    let begins = bed.text("waits-begins");
    let frozen: Vec<&str> = begins.lines().take(2).collect();
    for task in frozen {
        let (task, attempt) = task.split_once(' ').unwrap();
        assert_eq!(attempt, "1", "{begins}");
        let again = format!("{task} 2");
        assert!(!begins.lines().any(|line| line == again), "{begins}");
    }
    let frozen = bed.text("cluster/log/machines");
    assert!(frozen.contains("thawed"), "{frozen}");

    // Frozen for good: there is capacity for backups on other hosts only.
    let file = bag(&bed, "moves", 110);
    let process = bed.burst("bag", &config, &[file.to_str().unwrap()]);
    two_run(&bed, "moves", &process).await;
    bed.preempt(6).await;
    journal(&bed, &process, 2, "hibernated", 1).await;
    bed.end_normal_servers_elsewhere(2).await;
    let status = process.wait_exit(LONG).await.unwrap();
    let log = process.log_tail();
    eprintln!("{log}");
    assert!(status.success(), "{log}");
    assert!(ends(&bed, "moves") > 0, "no task has moved: {log}");
    eventually(LONG, async || {
        let left = bed.instances().await;
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
}
