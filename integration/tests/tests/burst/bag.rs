//! Bags with a deadline, run by Slurm.

use crate::bed::{Bed, PATIENCE, Wanted, counted};
use ebbtide_harness::eventually;

const BAG: &str = r#"
# Slurm looks at its queue every few seconds: that is what the margin is for.
rules = { deadline = "45s", margin = "12s", slot = "1s", boot = "0s" }
tasks = [{ name = "frame", count = 6, duration = "3s", memory_mb = 100 }]
types = [{ name = "node", vcpus = 2, memory_mb = 4000, on_demand = 0.30, preemptible = 0.10 }]
"#;

/// Submits the bag, with the primary array in this partition; waits until all is done.
async fn run(bed: &Bed, dir: &str, partition: &str) -> String {
    let file = bed.path("bag.toml").display().to_string();
    std::fs::write(&file, BAG).unwrap();
    let place = bed.path(dir).display().to_string();
    let command = "sleep 3; echo \"worked $EBBTIDE_TASK\" >>$EBBTIDE_BAG_DIR/work";
    let submitted = bed
        .ebbtide(&[
            "bag",
            "submit",
            &file,
            "--dir",
            &place,
            "--command",
            command,
            "--partition",
            partition,
            "--backup-partition",
            "alone",
        ])
        .await;
    assert_eq!(submitted["submitted"], true);
    eventually(PATIENCE, async || {
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

/// The seconds from the first line of a log to its last task that is done.
fn took(log: &str) -> i64 {
    let times = log
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse::<i64>().unwrap());
    let times: Vec<i64> = times.collect();
    times.iter().max().unwrap() - times.iter().min().unwrap()
}

#[tokio::test]
async fn a_bag_runs_as_a_job_array_and_its_backups_find_nothing_to_do() {
    let bed = Bed::new(Wanted {
        region: false,
        machines: false,
        resume_timeout: 30,
    })
    .await;
    let log = run(&bed, "bag", "alone").await;
    assert!(took(&log) < 45, "{log}");
    bed.all_over().await;
    let worked = counted(&bed.text("bag/work"), "worked");
    assert_eq!(worked.len(), 6);
    assert!(worked.values().all(|count| *count == 1), "{worked:?}");
    assert_eq!(std::fs::read_dir(bed.path("bag/done")).unwrap().count(), 6);
}

#[tokio::test]
async fn a_bag_whose_primary_array_gets_no_node_is_done_by_its_backups_in_time() {
    let bed = Bed::new(Wanted {
        region: false,
        machines: false,
        resume_timeout: 30,
    })
    .await;
    let begun = ebbtide_cli::clock::now();
    let log = run(&bed, "bag", "closed").await;
    let seconds = (ebbtide_cli::clock::now() - begun).whole_seconds();
    assert!(seconds <= 45, "{seconds} s: {log}");
    let worked = counted(&bed.text("bag/work"), "worked");
    assert!(
        worked.len() == 6 && worked.values().all(|count| *count == 1),
        "{worked:?}"
    );
}
