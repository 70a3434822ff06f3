//! What Slurm says, as it said it: answers of Slurm 22.05.8 as Debian 12 has it, taken from a
//! running cluster.

use ebbtide_burst::BurstError;
use ebbtide_burst::slurm::{BaseState, JobState, hosts, jobs, nodes};
use proptest::prelude::*;

const SQUEUE: &str = include_str!("data/squeue.json");
const SINFO: &str = include_str!("data/sinfo.json");

#[test]
fn jobs_and_elements_of_an_array_are_told_apart_from_the_row_that_stands_for_many() {
    let jobs = jobs(SQUEUE).unwrap();
    assert_eq!(jobs.len(), 3);
    let one = &jobs[0];
    assert_eq!((one.id, one.state, one.array), (1, JobState::Running, 0));
    assert_eq!(one.nodes, ["c1"]);
    assert_eq!(one.start_ms - one.submitted_ms, 3_000);
    assert!(one.requeues && one.is_on("c1") && !one.is_on("c2"));
    // No limit is none, and not zero.
    assert_eq!(one.limit_minutes, None);
    let element = &jobs[1];
    assert_eq!((element.id, element.array), (3, 2));
    assert!(!element.waits_for_many);
    let rest = &jobs[2];
    assert!(rest.waits_for_many);
    assert_eq!((rest.count, rest.state), (2, JobState::Pending));
    assert_eq!(rest.reason, "Resources");
}

#[test]
fn a_lowered_or_raised_priority_and_the_age_are_read_as_slurm_writes_them() {
    let read = |nice: &str| {
        let text = format!(
            r#"{{"jobs": [{{"job_id": 12, "array_job_id": 12, "array_task_id": 3, "partition": "short", "job_state": "PENDING",
            "submit_time": 1, "accrue_time": 20, "nice": {nice}}}]}}"#
        );
        jobs(&text).unwrap().remove(0)
    };
    // Slurm 22.05.8 wrote these for no nice, --nice=50 and nice=-70.
    let nices = ["null", "50", "4294967226"].map(|nice| read(nice).nice);
    assert_eq!(nices, [0, 50, -70]);
    assert_eq!(read("null").accrue_ms, 20_000);
    // The number alone would be all elements of the array.
    assert_eq!(read("null").reference(), "12_3");
    assert_eq!(jobs(SQUEUE).unwrap()[0].reference(), "1");
}

#[test]
fn a_job_that_slurm_holds_for_a_failed_launch_is_told_from_one_that_its_user_holds() {
    let held = |description: &str| {
        let text = format!(
            r#"{{"jobs": [{{"job_id": 3, "partition": "short", "job_state": "PENDING", "state_reason": "JobHeldUser",
            "state_description": "{description}", "submit_time": 1, "restart_cnt": 2, "requeue": true, "batch_flag": false}}]}}"#
        );
        jobs(&text).unwrap().remove(0)
    };
    let one = held("launch failed requeued held");
    // Slurm shows no batch flag for a job that was put back by `job_complete`.
    assert!(one.launch_failed && one.requeues);
    assert!(!held("").launch_failed);
}

#[test]
fn a_node_is_off_up_or_on_its_way() {
    let nodes = nodes(SINFO).unwrap();
    let named = |name: &str| nodes.iter().find(|node| node.name == name).unwrap();
    assert_eq!(nodes.len(), 10);
    assert!(named("c1").in_service() && named("c1").is_cloud());
    assert!(named("c2").is_off() && !named("c2").is_up());
    assert_eq!(named("c1").features, ["cloud", "spot"]);
    assert_eq!(named("s1").base, BaseState::Idle);
    assert!(!named("s1").is_cloud());
}

#[test]
fn text_that_is_no_answer_is_refused_with_its_place() {
    for (text, words) in [
        ("", "EOF"),
        (
            "slurm_load_jobs error: Unable to contact slurm controller",
            "line 1",
        ),
        ("{}", "missing field `jobs`"),
        (r#"{"jobs": 3}"#, "invalid type"),
        (r#"{"jobs": [{"job_id": "one"}]}"#, "invalid type"),
        (r#"{"jobs": [{"job_id": -1}]}"#, "invalid value"),
    ] {
        let error = jobs(text).unwrap_err();
        assert_eq!(error.code(), "EB-BURST-001");
        assert!(error.to_string().contains(words), "{error}");
    }
    let cut = &SQUEUE[..SQUEUE.len() / 2];
    assert_eq!(jobs(cut).unwrap_err().code(), "EB-BURST-001");
    assert_eq!(
        nodes(r#"{"nodes": [{"name": "a"}]}"#).unwrap_err().code(),
        "EB-BURST-001"
    );
}

#[test]
fn an_answer_with_an_error_in_it_is_no_empty_cluster() {
    let text = r#"{"errors": [{"error_number": 1007, "error": "Zero Bytes were transmitted or received"}], "jobs": []}"#;
    let error = jobs(text).unwrap_err();
    assert_eq!(error.code(), "EB-BURST-002");
    assert!(error.to_string().contains("1007"), "{error}");
}

#[test]
fn a_state_that_is_not_known_is_not_taken_for_another() {
    let odd = SQUEUE.replacen("\"RUNNING\"", "\"LEVITATING\"", 1);
    let error = jobs(&odd).unwrap_err();
    assert!(error.to_string().contains("LEVITATING"), "{error}");
}

#[test]
fn lists_of_hosts_are_those_of_slurm() {
    let all = |list: &str| hosts(list).unwrap();
    assert_eq!(all("c[1-3,7],s1"), ["c1", "c2", "c3", "c7", "s1"]);
    assert_eq!(all("n[08-10]"), ["n08", "n09", "n10"]);
    assert_eq!(all("r[1-2]n[1-2]x"), ["r1n1x", "r1n2x", "r2n1x", "r2n2x"]);
    assert!(all("").is_empty());
    for wrong in [
        "c[1-3",
        "c]1",
        "c[3-1]",
        "c[a]",
        "a,,b",
        "c[1-99999999]",
        "a b",
        "c[[1]]",
        "s1]n[1-4]",
    ] {
        let error = hosts(wrong).unwrap_err();
        assert!(matches!(error, BurstError::Hosts { .. }), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,60}") {
        if let Ok(all) = hosts(&text) {
            prop_assert!(all.iter().all(|name| !name.contains(['[', ']', ','])));
        }
        prop_assert!(jobs(&text).is_err());
        prop_assert!(nodes(&text).is_err());
    }
}
