//! Bags by primary and backup maps with a real Slurm: the nodes of hibernated servers are frozen
//! with all that runs on them, and their tasks go on where they were, or are done on a backup.

use crate::test_bed::{BedOptions, Beside, TestBed};
use ebbtide_harness::{Process, eventually};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(240);
/// Tasks of a bag, and how long each counts, halves of a second. A task counts in small steps,
/// since a frozen `sleep` would not notice that it was.
const TASKS: usize = 4;
const HALVES: u32 = 16;

/// Servers for bags that hibernate, their backups, and one for other works.
fn configure(bed: &TestBed) -> PathBuf {
    let config = bed.batch_settings("with", "length_reserve = 0.0\nlag_seconds = 2");
    let other = "[[types]]\nname = \"other\"\nnodes = \"c6\"\nflavor = \"node\"\nmarket = \"on-demand\"\n\
                 vcpus = 2\nmemory_mb = 4000\nprice = \"0.30\"\n[policy]";
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text
        .replace("p.node", "p.sleep")
        .replace("model = \"uniform:max=24\"\n", "")
        .replace("\"c[1-4]\"", "\"c[1-2]\"\nmaps = true")
        .replace("\"c[5-6]\"", "\"c[3-5]\"\nmaps = true")
        .replace("[policy]", other);
    std::fs::write(&config, text).unwrap();
    config
}

/// Writes a bag, and hands it in; its number.
async fn submit(bed: &TestBed, name: &str, deadline: u32) -> String {
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
    hand_in(bed, &document).await
}

async fn hand_in(bed: &TestBed, document: &Value) -> String {
    let path = bed.path(&format!("{}.json", document["name"].as_str().unwrap()));
    std::fs::write(&path, document.to_string()).unwrap();
    let made = bed.batch("with", &["submit", path.to_str().unwrap()]).await;
    made["id"].to_string()
}

async fn start(bed: &TestBed, config: &Path) -> Process {
    let service = bed.burst("run", config, &[]);
    eventually(LONG, async || {
        // What is left of a service that was killed is no socket of this one.
        let log = service.log_tail();
        if log.contains("serving at") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    service
}

/// Waits until the executor of a bag was told so.
async fn told(bed: &TestBed, service: &Process, id: &str, word: &str) {
    eventually(LONG, async || {
        let text = bed.text("with/book.jsonl");
        let (work, word) = (format!("\"work\":{id},"), format!("\"what\":{{\"{word}\""));
        let mut lines = text.lines();
        if lines.any(|line| line.contains(&work) && line.contains(&word)) {
            Ok(())
        } else {
            Err(format!("{word}: {text}\n{}", service.log_tail()))
        }
    })
    .await;
}

/// Waits until so many lines were written.
async fn lines(bed: &TestBed, name: &str, least: usize, service: &Process) {
    eventually(LONG, async || {
        let text = bed.text(name);
        if text.lines().count() >= least {
            Ok(())
        } else {
            Err(format!("{text}{}", service.log_tail()))
        }
    })
    .await;
}

/// Waits until a work is done; its report.
async fn report(bed: &TestBed, id: &str, service: &Process) -> Value {
    eventually(LONG, async || {
        let one = bed.batch("with", &["show", id]).await;
        if one["state"] == "done" {
            Ok(())
        } else {
            Err(format!("{one}: {}", service.log_tail()))
        }
    })
    .await;
    let report = bed.batch("with", &["report", id]).await;
    eprintln!("{report}");
    report
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
    let backups = ["c3", "c4", "c5"];
    let on = |line: &&str| backups.iter().any(|node| line.ends_with(node));
    text.lines().filter(on).count()
}

#[tokio::test]
#[ignore = "minutes; asked for with --run-ignored"]
async fn tasks_of_frozen_nodes_go_on_or_move_to_a_backup_in_time() {
    let wanted = BedOptions {
        region: true,
        machines: true,
        resume_timeout: 30,
    };
    let bed = TestBed::with(Beside::Batch, wanted).await;
    let config = configure(&bed);
    let service = start(&bed, &config).await;

    // Two bags at once beside another work. Both are frozen, and back in time; the service is
    // killed meanwhile.
    let ends_at = bed.path("other-ends");
    let other = json!({
        "name": "other", "dir": bed.path("other"), "count": 4, "length": "20s",
        "command": format!("echo $EBBTIDE_MEMBER >>{0}-begun; sleep 20; echo $EBBTIDE_MEMBER >>{0}", ends_at.display()),
    });
    let other = hand_in(&bed, &other).await;
    lines(&bed, "other-ends-begun", 1, &service).await;
    let waits = submit(&bed, "waits", 150).await;
    let second = submit(&bed, "second", 150).await;
    lines(&bed, "waits-begins", 2, &service).await;
    lines(&bed, "second-begins", 2, &service).await;
    let shown = bed.batch("with", &["show", &waits]).await;
    assert_eq!(shown["maps"][0]["state"], "up", "{shown}");
    bed.preempt(5).await;
    for id in [&waits, &second] {
        told(&bed, &service, id, "hibernated").await;
    }
    service.kill();
    drop(service);
    // The outage is this long, and nothing is awaited: tasks stay frozen, and no program looks.
    tokio::time::sleep(Duration::from_secs(8)).await;
    bed.end_normal_servers().await;
    let service = start(&bed, &config).await;
    for (id, name) in [(&waits, "waits"), (&second, "second")] {
        let report = report(&bed, id, &service).await;
        assert_eq!(report["deadline_met"], true, "{report}");
        assert!(report["bag"]["resumed"].as_u64().unwrap() >= 1, "{report}");
        assert!(
            report["on_demand"]["cost_ratio"].as_f64().unwrap() > 0.0,
            "{report}"
        );
        // What was frozen is done where it was, by its first attempt. On a busy machine others may
        // be late, and move.
        assert!(ends(&bed, name) <= TASKS - 2, "{}", service.log_tail());
        let begins = bed.text(&format!("{name}-begins"));
        let frozen: Vec<&str> = begins.lines().take(2).collect();
        for task in frozen {
            let (task, attempt) = task.split_once(' ').unwrap();
            assert_eq!(attempt, "1", "{begins}");
            let again = format!("{task} 2");
            assert!(!begins.lines().any(|line| line == again), "{begins}");
        }
    }
    let frozen = bed.text("cluster/log/machines");
    assert!(frozen.contains("thawed"), "{frozen}");
    report(&bed, &other, &service).await;
    assert_eq!(bed.text("other-ends").lines().count(), 4);

    // Frozen for good: there is capacity for backups on other hosts only.
    let moves = submit(&bed, "moves", 110).await;
    lines(&bed, "moves-begins", 2, &service).await;
    bed.preempt(6).await;
    told(&bed, &service, &moves, "hibernated").await;
    bed.end_normal_servers_elsewhere(2).await;
    let report = report(&bed, &moves, &service).await;
    assert_eq!(report["deadline_met"], true, "{report}");
    let log = service.log_tail();
    assert!(ends(&bed, "moves") > 0, "no task has moved: {log}");
    assert!(report["bag"]["moved"].as_u64().unwrap() > 0, "{report}");
    eventually(LONG, async || {
        let left = bed.instances().await;
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
    bed.end(service).await;
}
