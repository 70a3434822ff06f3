//! A burst of short jobs among long ones, with preemptible nodes and without.

use crate::test_bed::{Beside, CLOUD, PATIENCE, TestBed, Wanted, counted};
use ebbtide_burst::{BurstEvent, RecordEntry};
use ebbtide_harness::eventually;
use std::collections::BTreeMap;

/// How many short jobs come at once, and how long each works, seconds.
const SHORT: u32 = 18;
const SHORT_SECONDS: u32 = 5;
/// How long each of the two long ones works, seconds: they have all nodes that stay.
const LONG_SECONDS: u32 = 45;

/// Ten points of priority for each second of waiting. Slurm lets a job that goes back into the
/// queue begin at zero.
const AGEING: [&str; 3] = [
    "PriorityType=priority/multifactor",
    "PriorityWeightAge=864000",
    "PriorityMaxAge=1-0",
];
/// Until the controller has given a job its place again, and a job that Slurm was starting at that
/// moment has begun, milliseconds.
const SLACK_MS: i64 = 5_000;

async fn burst(bed: &TestBed, partition: &str, out: &str) {
    for at in 1..=2 {
        bed.submit("long", &format!("long{at}"), LONG_SECONDS, out)
            .await;
    }
    for at in 1..=SHORT {
        bed.submit(partition, &format!("short{at}"), SHORT_SECONDS, out)
            .await;
    }
}

/// Every job began, and ended once.
fn nothing_is_lost_or_done_twice(log: &str) {
    let ends = counted(log, "end");
    assert_eq!(ends.len(), SHORT as usize + 2, "{log}");
    let twice: Vec<_> = ends.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}: {log}");
}

/// After a job was put back, no job begins for the first time that was submitted after it, until it
/// has begun again. How many were put back.
fn places_are_kept(record: &str) -> usize {
    let entries: Vec<RecordEntry> = record
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut first: BTreeMap<u32, i64> = BTreeMap::new();
    let mut cuts: Vec<(u32, i64, i64)> = Vec::new();
    for RecordEntry { at, event } in entries {
        match event {
            BurstEvent::Start { job, start, .. } => {
                first.entry(job).or_insert(start);
                let open = cuts
                    .iter_mut()
                    .find(|cut| cut.0 == job && cut.2 == i64::MAX);
                if let Some(cut) = open {
                    cut.2 = start;
                }
            }
            BurstEvent::Cut { job } => cuts.push((job, at, i64::MAX)),
            _ => {}
        }
    }
    for (job, cut, again) in &cuts {
        let before = first
            .iter()
            .filter(|(later, start)| *later > job && (cut + SLACK_MS..*again).contains(*start));
        let before: Vec<_> = before.collect();
        assert!(
            before.is_empty(),
            "{before:?} before {job}, which was put back at {cut} and began at {again}: {record}"
        );
    }
    cuts.len()
}

#[tokio::test]
async fn a_burst_waits_less_on_preemptible_nodes_although_half_of_them_are_taken() {
    let wanted = Wanted {
        region: true,
        machines: true,
        resume_timeout: 30,
    };
    let bed = TestBed::with_lines(Beside::Elastic, wanted, &AGEING).await;

    // Without: the same jobs on the nodes that stay. The controller only writes down what it sees.
    let without = bed.settings("without", "");
    let observer = bed.burst("run", &without, &["--observe"]);
    burst(&bed, "alone", "out-without").await;
    bed.all_over().await;
    eventually(PATIENCE, async || {
        let ends = bed
            .text("without/record.jsonl")
            .matches("\"event\":\"end\"")
            .count();
        if ends == SHORT as usize + 2 {
            Ok(())
        } else {
            Err(ends)
        }
    })
    .await;
    let baseline = bed.batch("without", &["elastic"]).await;
    let other = bed.path("without.json");
    std::fs::write(&other, baseline.to_string()).unwrap();
    bed.end(observer).await;
    nothing_is_lost_or_done_twice(&bed.text("out-without"));

    // With: six instances at most, three of which a normal request takes when most of them work.
    // Slurm starts instances one after the other, on a busy machine as slowly as jobs end. Jobs are
    // held, so that instances stay wanted and busy until the normal request has cut some of them.
    bed.hold("out");
    let with = bed.path("with.toml");
    let controller = bed.burst("run", &with, &[]);
    burst(&bed, "short", "out").await;
    let there = eventually(PATIENCE, async || {
        let jobs = bed.slurm.jobs().await.map_err(|error| error.to_string())?;
        let nodes = bed.slurm.nodes().await.map_err(|error| error.to_string())?;
        let instances = bed.instances().await;
        let on_cloud = |job: &&ebbtide_burst::slurm::SlurmJob| {
            job.runs() && job.nodes.iter().any(|node| node.starts_with('c'))
        };
        let busy = jobs.iter().filter(on_cloud).count();
        // Slurm knows the instance of each node and since when.
        let known = |name: &str, id: &str| {
            nodes.iter().any(|node| {
                node.name == name
                    && node.comment.contains(id)
                    && node.features.contains(&"fits_0.01h".to_owned())
            })
        };
        // Three of at most six are taken: one of them works, whichever three they are.
        if busy >= 4 && instances.iter().all(|one| known(&one.name, &one.id)) {
            Ok(u32::try_from(instances.len()).unwrap())
        } else {
            Err(format!(
                "{busy} jobs on {instances:?}: {}",
                controller.log_tail()
            ))
        }
    })
    .await;
    // On a busy machine the last instances come late, or not at all: their room is taken, too.
    bed.preempt(u32::from(CLOUD) - there + 3).await;
    eventually(PATIENCE, async || {
        match bed.text("out").contains("saved ") {
            true => Ok(()),
            false => Err(controller.log_tail()),
        }
    })
    .await;
    bed.release("out");
    bed.all_over().await;
    // With nothing to do, all instances are given back.
    eventually(PATIENCE, async || {
        let left: Vec<String> = bed
            .instances()
            .await
            .into_iter()
            .map(|one| one.name + " " + &one.status)
            .collect();
        let ends = bed
            .text("with/record.jsonl")
            .matches("\"event\":\"gone\"")
            .count();
        if left.is_empty() && ends >= there as usize {
            Ok(())
        } else {
            Err(format!("{left:?}, {ends} gone: {}", controller.log_tail()))
        }
    })
    .await;
    let status = bed.batch("with", &["status"]).await;
    assert_eq!(status["elastic"]["most"], 6, "{status}");
    let other = other.display().to_string();
    let measured = bed.batch("with", &["elastic", "--baseline", &other]).await;
    let reckoned = bed.batch("with", &["elastic"]).await;
    bed.end(controller).await;
    let log = bed.text("out");
    nothing_is_lost_or_done_twice(&log);
    let said = bed.text("run-with.log");
    // One more, where another instance came between the look and the normal request.
    let notices = said.matches("the instance has notice").count();
    assert!((3..=usize::from(CLOUD)).contains(&notices), "{said}");
    // Those that were cut have saved their work before, and began again elsewhere.
    for job in counted(&log, "saved").keys() {
        assert_eq!(counted(&log, "start")[job], 2, "{log}");
    }
    assert!(!counted(&log, "saved").is_empty(), "{log}\n{said}");
    let put_back = places_are_kept(&bed.text("with/record.jsonl"));
    let kept = said.matches("keeps its place in the queue").count();
    assert!(put_back > 0 && kept >= put_back, "{put_back}: {said}");

    eprintln!("{measured:#}");
    assert_eq!(measured["measured"], true);
    assert!(
        measured["improvement"].as_f64().unwrap() > 1.5,
        "{measured}"
    );
    let short = &measured["kinds"][0];
    assert_eq!(
        (&short["jobs"], &short["completed"]),
        (&SHORT.into(), &SHORT.into())
    );
    assert_eq!(measured["money"]["interrupted"], notices);
    let paid: f64 = measured["money"]["paid"].as_str().unwrap().parse().unwrap();
    let hours = measured["money"]["hours"].as_f64().unwrap();
    // 0.10 an hour, in whole millionths for each instance.
    assert!(
        paid > 0.0 && (paid - hours * 0.10).abs() < 1e-4,
        "{paid} for {hours} h"
    );
    assert_eq!(reckoned["measured"], false);
    assert!(
        reckoned["improvement"].as_f64().unwrap() > 1.0,
        "{reckoned}"
    );
}
