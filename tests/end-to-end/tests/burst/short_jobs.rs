//! A burst of short jobs among long ones, with preemptible nodes and without.

use crate::test_bed::{BedOptions, Beside, CLOUD, PATIENCE, TestBed, counted};
use ebbtide_burst::{BurstEvent, RecordEntry};
use ebbtide_harness::eventually;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// How many short jobs come at once, and how long each works, seconds.
const SHORT: u32 = 18;
const SHORT_SECONDS: u32 = 5;
/// How long each of the two long ones works, seconds: they have all nodes that stay. Without
/// instances short jobs wait for them, with instances until the test has seen enough.
const LONG_SECONDS: u32 = 60;

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

/// A job that began for the first time while an earlier one waited that was put back.
#[derive(Debug, PartialEq, Eq)]
struct Overtaken {
    /// The job that was put back, and when.
    job: u32,
    cut: i64,
    /// When it began again; the end of time if it did not.
    again: i64,
    /// The job that was submitted after it, and when it began.
    by: u32,
    start: i64,
}

/// Jobs that were overtaken: after a job was put back, no job may begin for the first time that was
/// submitted after it, until it has begun again. And how many were put back.
fn overtaken(record: &str) -> (Vec<Overtaken>, usize) {
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
    let mut all = Vec::new();
    for (job, cut, again) in &cuts {
        let later = first
            .iter()
            .filter(|(later, start)| *later > job && (cut + SLACK_MS..*again).contains(*start));
        all.extend(later.map(|(by, start)| Overtaken {
            job: *job,
            cut: *cut,
            again: *again,
            by: *by,
            start: *start,
        }));
    }
    (all, cuts.len())
}

/// The jobs of which the controller says this.
fn jobs_with(said: &str, what: &str) -> BTreeSet<String> {
    let line = |line: &str| {
        let (job, rest) = line.split_once(" job ")?.1.split_once(": ")?;
        rest.starts_with(what).then(|| job.to_owned())
    };
    said.lines().filter_map(line).collect()
}

/// When the first long job ended, and the nodes on which short jobs began before that.
fn before_long_ones_ended(record: &str) -> (i64, BTreeSet<String>) {
    let mut names = BTreeMap::new();
    let mut ended = i64::MAX;
    let mut starts = Vec::new();
    for line in record.lines() {
        match serde_json::from_str::<RecordEntry>(line).unwrap().event {
            BurstEvent::Job { job, name, .. } => _ = names.insert(job, name),
            BurstEvent::Start { job, start, on } => starts.push((job, start, on)),
            BurstEvent::End { job, end, .. } if names[&job].starts_with("long") => {
                ended = ended.min(end);
            }
            _ => {}
        }
    }
    let short = starts
        .into_iter()
        .filter(|(job, start, _)| names[job].starts_with("short") && *start < ended);
    (ended, short.flat_map(|(_, _, on)| on).collect())
}

/// No job that was put back was overtaken. How many were put back.
fn places_are_kept(record: &str) -> usize {
    let (all, put_back) = overtaken(record);
    assert!(all.is_empty(), "{all:?}: {record}");
    put_back
}

/// A record in which job 2 is put back at 10 s and begins again at 30 s, while job 3 begins for the
/// first time at this time.
fn record_of(third: i64) -> String {
    let start = |at: i64, job: u32| RecordEntry {
        at,
        event: BurstEvent::Start {
            job,
            start: at,
            on: vec!["c1".to_owned()],
        },
    };
    let cut = RecordEntry {
        at: 10_000,
        event: BurstEvent::Cut { job: 2 },
    };
    let mut entries = [
        start(0, 1),
        start(1_000, 2),
        cut,
        start(30_000, 2),
        start(third, 3),
    ];
    entries.sort_by_key(|entry| entry.at);
    let lines = entries
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap() + "\n");
    lines.collect()
}

#[test]
fn the_check_of_places_sees_a_later_job_that_overtakes() {
    let overtakes = Overtaken {
        job: 2,
        cut: 10_000,
        again: 30_000,
        by: 3,
        start: 20_000,
    };
    assert_eq!(overtaken(&record_of(20_000)), (vec![overtakes], 1));
    let failed = std::panic::catch_unwind(|| places_are_kept(&record_of(20_000)));
    assert!(failed.is_err(), "the check has passed");
    // One that began before the cut, after the return, or while the controller still acted.
    for third in [5_000, 30_000, 31_000, 10_000 + SLACK_MS - 1] {
        assert_eq!(places_are_kept(&record_of(third)), 1);
    }
    // A job that never began again was overtaken as well.
    let lines = record_of(20_000);
    let without: String = lines
        .lines()
        .filter(|line| !line.contains("30000"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let (all, _) = overtaken(&without);
    assert_eq!((all[0].again, all[0].by), (i64::MAX, 3));
}

#[tokio::test]
async fn a_burst_waits_less_on_preemptible_nodes_although_half_of_them_are_taken() {
    let wanted = BedOptions {
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
    let (ended, nodes) = before_long_ones_ended(&bed.text("without/record.jsonl"));
    assert!(ended < i64::MAX && nodes.is_empty(), "{ended}: {nodes:?}");

    // With: six instances at most, three of which a normal request takes when most of them work.
    // Slurm starts instances one after the other, on a busy machine as slowly as jobs end. Jobs are
    // held, so that instances stay wanted and busy until the normal request has cut some of them.
    bed.hold("out");
    let with = bed.path("with.toml");
    let controller = bed.burst("run", &with, &[]);
    burst(&bed, "short", "out").await;
    let known = RefCell::new(BTreeSet::new());
    let there = eventually(PATIENCE, async || {
        let jobs = bed.slurm.jobs().await.map_err(|error| error.to_string())?;
        let nodes = bed.slurm.nodes().await.map_err(|error| error.to_string())?;
        let instances = bed.instances().await;
        let on_cloud = |job: &&ebbtide_burst::slurm::SlurmJob| {
            job.runs() && job.nodes.iter().any(|node| node.starts_with('c'))
        };
        let busy = jobs.iter().filter(on_cloud).count();
        // Slurm knows the instance of each node and since when. An instance is good for short jobs
        // for about a minute, and on a busy machine the last comes later than that.
        let is_known = |name: &str, id: &str| {
            nodes.iter().any(|node| {
                node.name == name
                    && node.comment.contains(id)
                    && node.features.contains(&"fits_0.01h".to_owned())
            })
        };
        let mut known = known.borrow_mut();
        let now = instances.iter().filter(|one| is_known(&one.name, &one.id));
        known.extend(now.map(|one| one.id.clone()));
        // Three of at most six are taken: one of them works, whichever three they are.
        if busy >= 4 && instances.iter().all(|one| known.contains(&one.id)) {
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
    // Slurm puts jobs back as well, for example if a launch fails. The controller keeps the places
    // of those that it has put back itself.
    let requeued = jobs_with(&said, "back into the queue");
    let kept = jobs_with(&said, "keeps its place in the queue");
    assert!(
        put_back > 0 && !requeued.is_empty() && requeued.is_subset(&kept),
        "{put_back}, {requeued:?}, {kept:?}: {said}"
    );
    // Short jobs did not wait for the long ones. How much shorter they waited depends on how fast
    // the machine starts instances.
    let (_, nodes) = before_long_ones_ended(&bed.text("with/record.jsonl"));
    assert!(
        nodes.iter().any(|node| node.starts_with('c')),
        "{nodes:?}: {said}"
    );

    eprintln!("{measured:#}");
    assert_eq!(measured["measured"], true);
    let mean = |run: &str| measured["kinds"][0][run]["mean_seconds"].as_f64().unwrap();
    let improvement = measured["improvement"].as_f64().unwrap();
    let quotient = mean("without") / mean("with");
    assert!((improvement / quotient - 1.0).abs() < 1e-6, "{measured}");
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
