//! Days on which something is away, broken or too dear.

use crate::test_bed::{BedOptions, PATIENCE, TestBed};
use ebbtide_burst::{BurstEvent, RecordEntry};
use ebbtide_harness::eventually;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Both nodes that stay have long jobs: instances are wanted.
async fn fill(bed: &TestBed) {
    for at in 1..=2 {
        bed.submit("long", &format!("long{at}"), 300, "out").await;
    }
}

/// Waits until a file says so.
async fn says(bed: &TestBed, file: &str, words: &str) {
    eventually(PATIENCE, async || {
        let said = bed.text(file);
        if said.contains(words) {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
}

/// The configuration of a controller for which these are Slurm's programs.
fn odd(bed: &TestBed, programs: &[(&str, &str)]) -> PathBuf {
    let dir = bed.path("odd");
    std::fs::create_dir(&dir).unwrap();
    for (program, text) in programs {
        let path = dir.join(program);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let text = std::fs::read_to_string(bed.path("with.toml")).unwrap();
    let bin_dir = format!("[slurm]\nbin_dir = \"{}\"", dir.display());
    let config = bed.path("odd.toml");
    std::fs::write(&config, text.replace("[slurm]", &bin_dir)).unwrap();
    config
}

/// The instances that were launched, by the record, with their nodes.
fn launched(bed: &TestBed) -> Vec<(String, String)> {
    let text = bed.text("with/record.jsonl");
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let launched = lines.filter_map(|entry: RecordEntry| match entry.event {
        BurstEvent::Launched { instance, node, .. } => Some((instance, node)),
        _ => None,
    });
    launched.collect()
}

#[tokio::test]
async fn a_node_that_never_comes_up_is_given_up_and_its_instance_deleted() {
    // No machine is started, so slurmd never answers.
    let bed = TestBed::new(BedOptions {
        region: true,
        machines: false,
        resume_timeout: 5,
    })
    .await;
    let config = bed.settings("with", "");
    let controller = bed.burst("run", &config, &[]);
    fill(&bed).await;
    // Each node had an instance. Not all at a time: the first are given up when the last come.
    let first = eventually(PATIENCE, async || {
        let launched = launched(&bed);
        let nodes: BTreeSet<&String> = launched.iter().map(|(_, node)| node).collect();
        if nodes.len() == 6 {
            Ok(launched
                .iter()
                .map(|(id, _)| id.clone())
                .collect::<Vec<_>>())
        } else {
            Err(format!("{launched:?}: {}", controller.log_tail()))
        }
    })
    .await;
    says(&bed, "with/record.jsonl", "never_up").await;
    eventually(PATIENCE, async || {
        let left: Vec<String> = bed
            .instances()
            .await
            .into_iter()
            .map(|one| one.id)
            .filter(|id| first.contains(id))
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}: {}", controller.log_tail()))
        }
    })
    .await;
    bed.end(controller).await;
}

#[tokio::test]
async fn a_budget_used_up_gives_everything_back_and_asks_for_nothing() {
    let bed = TestBed::new(BedOptions {
        region: true,
        machines: true,
        resume_timeout: 30,
    })
    .await;
    let config = bed.settings("with", "");
    let controller = bed.burst("run", &config, &[]);
    fill(&bed).await;
    says(&bed, "run-with.log", "takes jobs").await;
    bed.end(controller).await;
    // What was spent until now is more than this.
    let config = bed.settings("with", "budget = \"0.000001\"");
    let controller = bed.burst("run", &config, &[]);
    says(&bed, "with/record.jsonl", "EB-BURST-007").await;
    eventually(PATIENCE, async || {
        let left = bed.instances().await.len();
        if left == 0 {
            Ok(())
        } else {
            Err(format!("{left} left: {}", controller.log_tail()))
        }
    })
    .await;
    // Slurm's own request is refused as well, and the node goes back.
    eventually(PATIENCE, async || {
        let nodes = bed.slurm.nodes().await.map_err(|error| error.to_string())?;
        let node = nodes.iter().find(|node| node.name == "c1").unwrap();
        if node.is_off() && !node.is_stopping() {
            Ok(())
        } else {
            Err(format!("{node:?}"))
        }
    })
    .await;
    bed.slurm
        .run("scontrol", &["update", "nodename=c1", "state=power_up"])
        .await
        .unwrap();
    says(&bed, "with/programs.log", "EB-BURST-007").await;
    assert!(bed.instances().await.is_empty());
    bed.end(controller).await;
}

#[tokio::test]
async fn a_slurm_that_goes_away_is_said_once_and_waited_for() {
    let mut bed = TestBed::new(BedOptions {
        region: true,
        machines: true,
        resume_timeout: 30,
    })
    .await;
    let config = bed.path("with.toml");
    let controller = bed.burst("run", &config, &[]);
    fill(&bed).await;
    says(&bed, "run-with.log", "takes jobs").await;
    says(
        &bed,
        "run-with.log",
        "6 of at most 6 servers wanted, 6 there",
    )
    .await;
    bed.kill_cluster();
    says(&bed, "run-with.log", "EB-BURST-002").await;
    // What is there stays there: Slurm may come back, with its jobs.
    assert_eq!(bed.instances().await.len(), 6);
    assert_eq!(controller.exit_status(), None);
    let check = bed.burst("check", &config, &[]);
    assert_eq!(check.wait_exit(PATIENCE).await.unwrap().code(), Some(1));
    assert!(
        check.log_tail().contains("EB-BURST-002"),
        "{}",
        check.log_tail()
    );
    assert_eq!(bed.text("run-with.log").matches("EB-BURST-002").count(), 1);
    bed.end(controller).await;
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_refused_and_nothing_is_done() {
    let bed = TestBed::new(BedOptions {
        region: false,
        machines: false,
        resume_timeout: 30,
    })
    .await;
    let half = "#!/bin/sh\necho '{\"nodes\": [{\"name\": 7}'\n";
    let config = odd(&bed, &[("squeue", half), ("sinfo", half)]);
    let check = bed.burst("check", &config, &[]);
    assert_eq!(check.wait_exit(PATIENCE).await.unwrap().code(), Some(1));
    assert!(
        check.log_tail().contains("EB-BURST-001"),
        "{}",
        check.log_tail()
    );
}

#[tokio::test]
async fn what_slurm_refuses_again_and_again_has_its_code_once_and_is_tried_again() {
    let bed = TestBed::new(BedOptions {
        region: true,
        machines: false,
        resume_timeout: 30,
    })
    .await;
    let refuses = "#!/bin/sh\necho 'Access/permission denied' >&2; exit 1\n";
    let programs = [
        ("squeue", "#!/bin/sh\nexec /usr/bin/squeue \"$@\"\n"),
        ("sinfo", "#!/bin/sh\nexec /usr/bin/sinfo \"$@\"\n"),
        ("scontrol", refuses),
        ("scancel", refuses),
    ];
    let config = odd(&bed, &programs);
    let controller = bed.burst("run", &config, &[]);
    fill(&bed).await;
    eventually(PATIENCE, async || {
        let said = bed.text("run-odd.log");
        let refused = said.matches("power up: not done: ").count();
        // All six, and then again.
        if refused >= 12 { Ok(()) } else { Err(said) }
    })
    .await;
    let said = bed.text("run-odd.log");
    assert_eq!(said.matches("EB-BURST-002").count(), 1, "{said}");
    assert!(said.contains("permission denied"), "{said}");
    assert!(bed.instances().await.is_empty());
    bed.end(controller).await;
}
