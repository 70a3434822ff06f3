//! A bag with a deadline, a sweep that saves its work and a workflow of three stages, while normal
//! requests take servers and the service is killed.

use crate::test_bed::{BedOptions, Beside, PATIENCE, TestBed};
use ebbtide_harness::eventually;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Members of the bag, and of the sweep: two have room on a server.
const BAG: usize = 24;
const SWEEP: usize = 6;
/// Everything is to be over by then.
const LONG: Duration = Duration::from_secs(600);

/// Hands in a work; its number.
async fn submit(bed: &TestBed, document: &Value) -> String {
    let name = document["name"].as_str().unwrap();
    let path = bed.path(&format!("{name}.json"));
    std::fs::write(&path, document.to_string()).unwrap();
    let made = bed.batch("with", &["submit", path.to_str().unwrap()]).await;
    made["id"].to_string()
}

/// Waits until a work is done; its details.
async fn done(bed: &TestBed, id: &str) -> Value {
    eventually(LONG, async || {
        let one = bed.batch("with", &["show", id]).await;
        if one["state"] == "done" {
            Ok(one)
        } else {
            Err(format!("{}: {}", one["state"], bed.text("run-with.log")))
        }
    })
    .await
}

/// How many attempts of a work saved and made room.
fn put_back(work: &Value) -> usize {
    let members = work["list"].as_array().unwrap().iter();
    let attempts = members.flat_map(|member| member["attempts"].as_array().unwrap());
    attempts.filter(|one| one["end"] == "put back").count()
}

/// The lines that members wrote at their end: each once.
fn each_ended_once(text: &str, members: usize) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines() {
        *counts.entry(line).or_default() += 1;
    }
    assert_eq!(counts.len(), members, "{text}");
    assert!(counts.values().all(|count| *count == 1), "{text}");
}

#[tokio::test]
async fn works_are_done_in_time_and_once_although_servers_are_taken_and_the_service_is_killed() {
    let wanted = BedOptions {
        region: true,
        machines: true,
        resume_timeout: 30,
    };
    let bed = TestBed::with(Beside::Batch, wanted).await;
    let config = bed.path("with.toml");
    let check = bed.burst("check", &config, &[]);
    let status = check.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", check.log_tail());
    let mut service = bed.burst("run", &config, &[]);
    let socket = bed.path("with.sock");
    eventually(PATIENCE, async || {
        if socket.exists() {
            Ok(())
        } else {
            Err("no socket")
        }
    })
    .await;

    let out = |name: &str| bed.path(name).display().to_string();
    let ended = |name: &str| format!("echo \"$EBBTIDE_STAGE $EBBTIDE_MEMBER\" >>{}", out(name));
    let bag = json!({
        "name": "bag", "dir": bed.path("bag"), "count": BAG, "cpus": 1, "length": "4s",
        "command": format!("sleep 4 && {}", ended("bag-ends")), "deadline": "580s",
    });
    // Each step is kept in a file. Members work on until the test has seen one of them save: they
    // hold three servers, however long these take to come.
    let enough = bed.path("enough").display().to_string();
    let sweep = json!({
        "name": "sweep", "dir": bed.path("sweep"), "cpus": 1, "length": "40s",
        "parameters": {"ALPHA": [1, 2, 3], "MODE": ["a", "b"]},
        "command": format!(
            "i=$(cat \"$EBBTIDE_RESTORE_DIR/i\" 2>/dev/null || echo 0); while [ ! -e {enough} ]; do i=$((i+1)); echo $i >now; mv now i; sleep 0.2; done; {}",
            format!("echo \"$ALPHA$MODE from $(cat \"$EBBTIDE_RESTORE_DIR/i\" 2>/dev/null || echo 0)\" >>{}", out("sweep-ends"))
        ),
        "checkpoint": {"command": "cp i \"$EBBTIDE_CHECKPOINT_DIR/i\"", "cost": "1s"},
    });
    let stage = |name: &str, after: &[&str], count: usize| {
        json!({"name": name, "after": after, "count": count, "length": "2s",
            "command": format!("sleep 2 && {}", ended("flow-ends"))})
    };
    let flow = json!({
        "name": "flow", "dir": bed.path("flow"),
        "stages": [stage("split", &[], 1), stage("map", &["split"], 5), stage("join", &["map"], 1)],
    });
    let sweep_id = submit(&bed, &sweep).await;

    // When servers work, normal requests take some of them.
    let busy = async |least: usize| {
        eventually(PATIENCE, async || {
            let status = bed.batch("with", &["status"]).await;
            let servers = status["servers"].as_array().unwrap().clone();
            let works = |one: &&Value| {
                one["server_type"] == "spot" && !one["members"].as_array().unwrap().is_empty()
            };
            let count = servers.iter().filter(works).count();
            if count >= least {
                Ok(())
            } else {
                Err(format!("{status}: {}", bed.text("run-with.log")))
            }
        })
        .await;
    };
    busy(3).await;
    let bag_id = submit(&bed, &bag).await;
    let flow_id = submit(&bed, &flow).await;
    // A member can save what it has once its command runs.
    eventually(PATIENCE, async || {
        let runs = |index: &u32| bed.path(&format!("sweep/work/main.{index}/i")).exists();
        match (0..SWEEP as u32).filter(runs).count() {
            SWEEP => Ok(()),
            count => Err(format!("{count} of {SWEEP} members of the sweep run")),
        }
    })
    .await;
    // Six have room: all servers of the service leave, those of the sweep among them.
    bed.preempt(6).await;
    // The service is killed, and another one goes on with its book.
    service.kill();
    drop(service);
    service = bed.burst("run", &config, &[]);
    let taken = eventually(PATIENCE, async || {
        let text = bed.text("with/record.jsonl");
        let taken = text.matches("\"event\":\"notice\"").count();
        if taken >= 3 {
            Ok(taken)
        } else {
            Err(service.log_tail())
        }
    })
    .await;
    eprintln!("{taken} servers had notice");
    // A member that ends between its checkpoint and the end of its server would end twice.
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &sweep_id]).await;
        let mut firsts = one["list"].as_array().unwrap().iter();
        let firsts_ended = firsts.all(|member| {
            let end = member["attempts"][0]["end"].as_str();
            end.is_some_and(|end| !end.is_empty())
        });
        if put_back(&one) > 0 && firsts_ended {
            Ok(())
        } else {
            Err(format!("{one}: {}", service.log_tail()))
        }
    })
    .await;
    std::fs::write(bed.path("enough"), "").unwrap();
    bed.end_normal_servers().await;

    let bag = done(&bed, &bag_id).await;
    let sweep = done(&bed, &sweep_id).await;
    done(&bed, &flow_id).await;
    each_ended_once(&bed.text("bag-ends"), BAG);
    let flow = bed.text("flow-ends");
    each_ended_once(&flow, 7);
    assert!(
        flow.starts_with("split 0\n") && flow.ends_with("join 0\n"),
        "{flow}"
    );
    // A member that was told to save goes on from there.
    let ends = bed.text("sweep-ends");
    each_ended_once(&ends, SWEEP);
    let put_back = put_back(&sweep);
    let resumed = ends
        .lines()
        .filter(|line| !line.ends_with("from 0"))
        .count();
    eprintln!(
        "{put_back} attempts saved and made room, {resumed} of {SWEEP} members went on from there"
    );
    assert!(
        put_back >= 1 && resumed >= 1,
        "{ends}: {sweep}\n{}",
        bed.text("run-with.log")
    );
    assert!(bag["deadline_ms"].as_i64().unwrap() > 0);
    let report = bed.batch("with", &["report", &bag_id]).await;
    eprintln!("{report:#}");
    assert_eq!(report["deadline_met"], true);
    assert!(
        report["on_demand"]["cost_ratio"].as_f64().unwrap() > 1.0,
        "{report}"
    );

    // With nothing to do, all servers are given back.
    eventually(PATIENCE, async || {
        let left = bed.instances().await;
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}: {}", service.log_tail()))
        }
    })
    .await;
    bed.end(service).await;
}
