//! Bags with a deadline, run by Slurm.

use crate::test_bed::{PATIENCE, TestBed, Wanted, counted};
use ebbtide_harness::{Deadline, eventually};
use std::time::Duration;

const BAG: &str = r#"
# Slurm looks at its queue every few seconds: that is what the margin is for.
rules = { deadline = "45s", margin = "12s", slot = "1s", boot = "0s" }
tasks = [{ name = "frame", count = 6, duration = "3s", memory_mb = 100 }]
types = [{ name = "node", vcpus = 2, memory_mb = 4000, on_demand = 0.30, preemptible = 0.10 }]
"#;

/// The deadline of that bag.
const DEADLINE: Duration = Duration::from_secs(45);
/// The deadline of the bag whose nodes are taken.
const LONG_DEADLINE: Duration = Duration::from_secs(110);

/// Submits a bag whose tasks work so long, with the primary array in this partition.
async fn submit(bed: &TestBed, bag: &str, dir: &str, seconds: u32, partition: &[&str]) {
    let file = bed.path("bag.toml").display().to_string();
    std::fs::write(&file, bag).unwrap();
    let place = bed.path(dir).display().to_string();
    let command = format!("sleep {seconds}; echo \"worked $EBBTIDE_TASK\" >>$EBBTIDE_BAG_DIR/work");
    let mut arguments = vec!["bag", "submit", &file, "--dir", &place];
    arguments.extend(["--command", &command, "--backup-partition", "alone"]);
    arguments.push("--partition");
    arguments.extend(partition);
    let submitted = bed.ebbtide(&arguments).await;
    assert_eq!(submitted["submitted"], true);
}

/// Submits the bag, with the primary array in this partition; waits until all is done, for as long
/// as it may take.
async fn run(bed: &TestBed, dir: &str, partition: &str) -> String {
    let deadline = Deadline::after(DEADLINE);
    submit(bed, BAG, dir, 3, &[partition]).await;
    done(bed, dir, deadline).await
}

/// Waits until all six tasks are done; the log.
async fn done(bed: &TestBed, dir: &str, deadline: Deadline) -> String {
    eventually(deadline.remaining(), async || {
        let log = bed.text(&format!("{dir}/log"));
        let done = log.matches(" done ").count();
        if done == 6 {
            Ok(())
        } else {
            Err(format!("{done} done: {log}"))
        }
    })
    .await;
    bed.text(&format!("{dir}/log"))
}

/// From the first line of a log to its last task that is done.
fn took(log: &str) -> Duration {
    let times = log
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap());
    let times: Vec<u64> = times.collect();
    Duration::from_secs(times.iter().max().unwrap() - times.iter().min().unwrap())
}

#[tokio::test]
async fn a_bag_runs_as_a_job_array_and_its_backups_find_nothing_to_do() {
    let bed = TestBed::new(Wanted {
        region: false,
        machines: false,
        resume_timeout: 30,
    })
    .await;
    let log = run(&bed, "bag", "alone").await;
    assert!(took(&log) < DEADLINE, "{log}");
    bed.all_over().await;
    let worked = counted(&bed.text("bag/work"), "worked");
    assert_eq!(worked.len(), 6);
    assert!(worked.values().all(|count| *count == 1), "{worked:?}");
    assert_eq!(std::fs::read_dir(bed.path("bag/done")).unwrap().count(), 6);
}

#[tokio::test]
async fn a_bag_whose_primary_array_gets_no_node_is_done_by_its_backups_in_time() {
    let bed = TestBed::new(Wanted {
        region: false,
        machines: false,
        resume_timeout: 30,
    })
    .await;
    run(&bed, "bag", "closed").await;
    let worked = counted(&bed.text("bag/work"), "worked");
    assert!(
        worked.len() == 6 && worked.values().all(|count| *count == 1),
        "{worked:?}"
    );
}

#[tokio::test]
async fn a_bag_all_of_whose_nodes_are_taken_is_done_in_time_on_those_that_stay() {
    let bed = TestBed::new(Wanted {
        region: true,
        machines: true,
        resume_timeout: 30,
    })
    .await;
    let controller = bed.burst("run", &bed.path("with.toml"), &[]);
    // One of the two nodes that stay is taken by a long job, so instances are asked for; the other
    // one is there for backups.
    bed.submit("long", "long1", 80, "out").await;
    let bag = BAG
        .replace("45s", "110s")
        .replace("12s", "30s")
        .replace("3s", "12s");
    let deadline = Deadline::after(LONG_DEADLINE);
    submit(&bed, &bag, "bag", 12, &["short", "--constraint", "cloud"]).await;
    eventually(PATIENCE, async || {
        let log = bed.text("bag/log");
        if log.contains(" start ") {
            Ok(())
        } else {
            Err(format!("{log}{}", controller.log_tail()))
        }
    })
    .await;
    // All the room that there is: nothing preemptible is left, and nothing comes.
    bed.preempt(6).await;
    let log = done(&bed, "bag", deadline).await;
    let on = |word: &str, node: char| {
        let lines = log.lines().map(|line| line.split(' '));
        lines
            .filter(|line| line.clone().nth(1) == Some(word))
            .filter(|line| line.clone().nth(4).unwrap().starts_with(node))
            .count()
    };
    assert!(on("start", 'c') > 0 && on("done", 's') > 0, "{log}");
    assert_eq!(log.matches(" failed ").count(), 0, "{log}");
    bed.end(controller).await;
}
