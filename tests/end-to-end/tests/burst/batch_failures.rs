//! Batch work on days on which something is away, broken or too dear.

use crate::test_bed::{BedOptions, Beside, PATIENCE, TestBed};
use ebbtide_harness::{Process, Signal, eventually};
use serde_json::{Value, json};

async fn bed(machines: bool, policy: &str) -> (TestBed, Process) {
    let wanted = BedOptions {
        region: true,
        machines,
        resume_timeout: 6,
    };
    let bed = TestBed::with(Beside::Batch, wanted).await;
    let config = bed.batch_settings("with", policy);
    let service = bed.burst("run", &config, &[]);
    let socket = bed.path("with.sock");
    eventually(PATIENCE, async || {
        if socket.exists() {
            Ok(())
        } else {
            Err("no socket")
        }
    })
    .await;
    (bed, service)
}

async fn submit(bed: &TestBed, more: &[(&str, Value)]) -> String {
    let mut document = json!({"name": "w", "dir": bed.path("w"), "command": "sleep 5", "cpus": 2});
    for (key, value) in more {
        document[key] = value.clone();
    }
    let path = bed.path("work.json");
    std::fs::write(&path, document.to_string()).unwrap();
    let made = bed.batch("with", &["submit", path.to_str().unwrap()]).await;
    made["id"].to_string()
}

async fn says(bed: &TestBed, words: &str) {
    eventually(PATIENCE, async || {
        let said = bed.text("run-with.log");
        if said.contains(words) {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
}

async fn nothing_left(bed: &TestBed) {
    eventually(PATIENCE, async || {
        let left = bed.instances().await;
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?} {}", bed.text("run-with.log")))
        }
    })
    .await;
}

#[tokio::test]
async fn a_node_that_never_joins_is_reported_and_no_server_is_left_behind() {
    // No machine is started: the image has no slurmd.
    let (bed, service) = bed(false, "").await;
    let id = submit(&bed, &[]).await;
    says(&bed, "EB-BURST-009").await;
    let one = bed.batch("with", &["show", &id]).await;
    assert_eq!(one["state"], "active");
    bed.batch("with", &["cancel", &id]).await;
    nothing_left(&bed).await;
    bed.end(service).await;
}

#[tokio::test]
async fn budgets_stop_works_and_pools_with_their_codes_and_leave_nothing_behind() {
    // A work's own budget, 0.10 an hour and server. The first member ends at once, the others only
    // when the test says so: they use the budget up.
    let (bed, service) = bed(true, "").await;
    let enough = bed.path("enough").display().to_string();
    let command = format!("[ $EBBTIDE_MEMBER = 0 ] || while [ ! -e {enough} ]; do sleep 0.2; done");
    let more = [
        ("count", json!(12)),
        ("length", json!("5s")),
        ("budget", json!("0.005")),
        ("command", json!(command)),
    ];
    let id = submit(&bed, &more).await;
    says(&bed, "EB-BATCH-006").await;
    nothing_left(&bed).await;
    let one = bed.batch("with", &["show", &id]).await;
    assert_eq!(one["state"], "over-budget");
    let done = one["done"].as_u64().unwrap();
    assert!((1..12).contains(&done), "{one}");
    // With more money it goes on, and nothing is done twice.
    std::fs::write(&enough, "").unwrap();
    bed.batch("with", &["budget", &id, "none"]).await;
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &id]).await;
        if one["state"] == "done" {
            Ok(())
        } else {
            Err(bed.text("run-with.log"))
        }
    })
    .await;
    nothing_left(&bed).await;
    bed.end(service).await;
}

#[tokio::test]
async fn a_slurm_that_goes_away_is_reported_once_and_work_is_still_taken() {
    let (mut bed, service) = bed(true, "").await;
    let id = submit(&bed, &[("command", json!("sleep 300"))]).await;
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &id]).await;
        if one["running"] == 1 {
            Ok(())
        } else {
            Err(bed.text("run-with.log"))
        }
    })
    .await;
    bed.kill_cluster();
    says(&bed, "EB-BURST-002").await;
    let second = submit(&bed, &[]).await;
    assert_ne!(id, second);
    let status = bed.batch("with", &["status"]).await;
    assert_eq!(status["faults"]["look"], "EB-BURST-002");
    assert_eq!(service.exit_status(), None);
    assert_eq!(bed.text("run-with.log").matches("EB-BURST-002").count(), 1);
    bed.end(service).await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_stops_its_work_alone() {
    let (bed, service) = bed(true, "").await;
    // A file is where the directory is to be: the work is refused.
    std::fs::write(bed.path("file"), "").unwrap();
    let document = json!({"name": "w", "dir": bed.path("file"), "command": "true"});
    std::fs::write(bed.path("work.json"), document.to_string()).unwrap();
    let socket = format!("unix:{}", bed.path("with.sock").display());
    let path = bed.path("work.json").display().to_string();
    let refused = bed
        .refused(&["batch", "--service", &socket, "submit", &path])
        .await;
    assert!(refused.contains("EB-BATCH-002"), "{refused}");
    // One whose directory goes away later is reported, and others are done meanwhile.
    let first = submit(&bed, &[("command", json!("sleep 300"))]).await;
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &first]).await;
        if one["running"] == 1 {
            Ok(())
        } else {
            Err(bed.text("run-with.log"))
        }
    })
    .await;
    std::fs::rename(bed.path("w"), bed.path("away")).unwrap();
    std::fs::write(bed.path("w"), "").unwrap();
    let more = [("dir", json!(bed.path("v"))), ("command", json!("sleep 1"))];
    let second = submit(&bed, &more).await;
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &second]).await;
        if one["state"] == "done" {
            Ok(())
        } else {
            Err(bed.text("run-with.log"))
        }
    })
    .await;
    let status = bed.batch("with", &["status"]).await;
    assert_eq!(status["faults"]["marks"], "EB-BURST-010");
    let one = bed.batch("with", &["show", &first]).await;
    assert_eq!(one["state"], "active", "{one}");
    std::fs::remove_file(bed.path("w")).unwrap();
    std::fs::rename(bed.path("away"), bed.path("w")).unwrap();
    bed.batch("with", &["cancel", &first]).await;
    nothing_left(&bed).await;
    bed.end(service).await;
}

#[tokio::test]
async fn a_region_that_goes_away_is_waited_for_and_what_runs_goes_on() {
    let (mut bed, service) = bed(true, "").await;
    // It runs as long as the region is away.
    let enough = bed.path("enough").display().to_string();
    let command = format!("while [ ! -e {enough} ]; do sleep 0.2; done");
    let id = submit(&bed, &[("command", json!(command))]).await;
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &id]).await;
        let since = &one["list"][0]["attempts"][0]["since_ms"];
        if since.is_i64() {
            Ok(())
        } else {
            Err(bed.text("run-with.log"))
        }
    })
    .await;
    // It refuses: its process is dead.
    bed.region.as_mut().unwrap().kill_scheduler();
    let refused = fault(&bed).await;
    assert_eq!(servers_shown(&bed).await, 1);
    bed.region
        .as_mut()
        .unwrap()
        .start_scheduler()
        .await
        .unwrap();
    no_fault(&bed, &refused).await;
    // It hangs: it takes connections and answers nothing.
    let region = bed.region.as_ref().unwrap();
    region.signal_scheduler(Signal::Stop).unwrap();
    says(&bed, "the cloud did not work: no answer after 20 s").await;
    assert_eq!(fault(&bed).await, "EB-BURST-002");
    assert_eq!(servers_shown(&bed).await, 1);
    region.signal_scheduler(Signal::Cont).unwrap();
    no_fault(&bed, "EB-BURST-002").await;
    std::fs::write(&enough, "").unwrap();
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &id]).await;
        let attempts = one["list"][0]["attempts"].as_array().unwrap().len();
        if one["state"] == "done" && attempts == 1 {
            Ok(())
        } else {
            Err(bed.text("run-with.log"))
        }
    })
    .await;
    nothing_left(&bed).await;
    bed.end(service).await;
}

/// The code of the fault that the service shows, as soon as it shows one.
async fn fault(bed: &TestBed) -> String {
    eventually(PATIENCE, async || {
        let status = bed.batch("with", &["status"]).await;
        let code = status["faults"]["look"].as_str().map(str::to_owned);
        code.ok_or_else(|| status.to_string())
    })
    .await
}

/// Waits until the service shows no fault any more; it was reported once, and its end as well.
async fn no_fault(bed: &TestBed, code: &str) {
    eventually(PATIENCE, async || {
        let status = bed.batch("with", &["status"]).await;
        let none = status["faults"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty);
        if none {
            Ok(())
        } else {
            Err(status.to_string())
        }
    })
    .await;
    let log = bed.text("run-with.log");
    let count = |words: String| log.matches(&words).count();
    let (said, over) = (count(format!("{code}: ")), count(format!("{code} is over")));
    assert_eq!((said, over), (1, 1), "{code}: {log}");
}

async fn servers_shown(bed: &TestBed) -> usize {
    let status = bed.batch("with", &["status"]).await;
    status["servers"].as_array().unwrap().len()
}
