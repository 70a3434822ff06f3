//! The account, the model of the cluster without instances, and the report.

use crate::common;

use common::{instance, job, settings};
use ebbtide_burst::report::report;
use ebbtide_burst::slurm::JobState;
use ebbtide_burst::{
    BurstEvent, BurstRecord, JobClass, JobRequest, LifeEnd, RecordEntry, Status, reckon,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn written(facts: &[RecordEntry]) -> String {
    let each = facts
        .iter()
        .map(|fact| serde_json::to_string(fact).unwrap() + "\n");
    each.collect()
}

#[test]
fn a_job_that_is_cut_and_ends_elsewhere_has_two_runs_and_one_end() {
    let settings = settings();
    let mut record = BurstRecord::default();
    let mut all = Vec::new();
    let mut one = job(7, "short", "");
    all.extend(record.learn(1_500, std::slice::from_ref(&one), &settings));
    (one.state, one.nodes, one.start_ms) = (JobState::Running, vec!["c1".to_owned()], 4_000);
    all.extend(record.learn(4_500, std::slice::from_ref(&one), &settings));
    // The same again: nothing is new.
    assert_eq!(
        record.learn(5_000, std::slice::from_ref(&one), &settings),
        []
    );
    (one.state, one.nodes, one.restarts) = (JobState::Pending, Vec::new(), 1);
    all.extend(record.learn(9_000, std::slice::from_ref(&one), &settings));
    (one.state, one.nodes, one.start_ms) = (JobState::Running, vec!["c2".to_owned()], 11_000);
    all.extend(record.learn(11_500, std::slice::from_ref(&one), &settings));
    (one.state, one.end_ms) = (JobState::Completed, 15_000);
    all.extend(record.learn(15_500, std::slice::from_ref(&one), &settings));
    let life = &record.jobs[&7];
    assert_eq!(life.delay(), Some(3_000));
    assert_eq!(life.waited(), Some(5_000));
    assert_eq!(
        (life.cuts(), life.in_vain(), life.length()),
        (1, 5_000, Some(4_000))
    );
    assert_eq!(life.over, Some(true));
    // What was written down gives the same account.
    assert_eq!(BurstRecord::parse(&written(&all)), Ok(record));
}

#[test]
fn jobs_that_were_over_before_the_record_began_are_none_of_its_business() {
    let stays = BTreeMap::new();
    let began = BurstEvent::Began {
        stays,
        preemptible: 1,
        on_demand: 3,
    };
    let mut record = BurstRecord::default();
    record.apply(&RecordEntry {
        at: 20_000,
        event: began,
    });
    let mut old = job(3, "short", "s1");
    (old.state, old.end_ms) = (JobState::Completed, 19_000);
    assert_eq!(
        record.learn(20_000, std::slice::from_ref(&old), &settings()),
        []
    );
    old.end_ms = 21_000;
    assert_eq!(record.learn(21_500, &[old], &settings()).len(), 3);
}

#[test]
fn an_instance_that_had_notice_was_interrupted_and_is_paid_until_then() {
    let mut record = BurstRecord::default();
    let mut one = instance("c1", Status::Active);
    one.launched_ms = Some(0);
    record.learn_instances(0, std::slice::from_ref(&one), |_| 100_000, |_| true);
    one.status = Status::Leaving;
    one.deadline_ms = Some(1_900_000);
    record.learn_instances(1_000, std::slice::from_ref(&one), |_| 100_000, |_| true);
    let facts = record.learn_instances(1_800_000, &[], |_| 100_000, |_| true);
    assert!(matches!(
        &facts[0].event,
        BurstEvent::Gone {
            how: LifeEnd::Interrupted,
            ..
        }
    ));
    // Half an hour of 0.10.
    assert_eq!(record.spent(0, 3_600_000), 50_000);
    assert_eq!(record.spent(900_000, 3_600_000), 25_000);
}

#[test]
fn a_line_that_is_cut_off_at_the_end_is_left_out_and_any_other_is_an_error() {
    let began = BurstEvent::Began {
        stays: BTreeMap::new(),
        preemptible: 1,
        on_demand: 3,
    };
    let good = written(&[RecordEntry {
        at: 5,
        event: began,
    }]);
    let cut = format!("{good}{{\"at\": 6, \"ev");
    assert_eq!(BurstRecord::parse(&cut).unwrap().until, 5);
    let error = BurstRecord::parse(&format!("nonsense\n{good}")).unwrap_err();
    assert_eq!(error.code(), "EB-BURST-005");
    assert!(error.to_string().starts_with("line 1 "), "{error}");
}

#[test]
fn two_nodes_take_two_jobs_at_a_time_and_the_third_waits() {
    let one = JobRequest {
        submitted: 0,
        length: 10,
        nodes: 1,
        cpus: 2,
    };
    assert_eq!(
        reckon(&[2, 2], &[one, one, one]),
        [Some(0), Some(0), Some(10)]
    );
    let both = JobRequest { nodes: 2, ..one };
    let small = JobRequest {
        submitted: 1,
        length: 5,
        cpus: 1,
        ..one
    };
    // A small one may not pass if that moved the large one, and may where it does not.
    assert_eq!(
        reckon(&[2, 2], &[one, both, small]),
        [Some(0), Some(10), Some(1)]
    );
    let huge = JobRequest { cpus: 3, ..one };
    assert_eq!(reckon(&[2, 2], &[huge]), [None]);
}

proptest! {
    #[test]
    fn no_node_has_more_than_it_can_and_no_job_starts_before_it_was_submitted(
        jobs in prop::collection::vec((0i64..50, 1i64..20, 1u32..3, 1u32..4), 0..12),
    ) {
        let asked: Vec<JobRequest> = jobs
            .iter()
            .map(|(submitted, length, nodes, cpus)| JobRequest { submitted: *submitted, length: *length, nodes: *nodes, cpus: *cpus })
            .collect();
        let starts = reckon(&[4, 4], &asked);
        for at in 0..500 {
            let busy: u32 = asked.iter().zip(&starts).filter(|(job, start)| start.is_some_and(|s| s <= at && at < s + job.length)).map(|(job, _)| job.nodes * job.cpus).sum();
            prop_assert!(busy <= 8, "{busy} at {at}");
        }
        for (job, start) in asked.iter().zip(starts) {
            prop_assert!(start.unwrap() >= job.submitted);
        }
    }
}

#[test]
fn a_report_holds_delays_against_those_without_instances() {
    let mut record = BurstRecord {
        stays: BTreeMap::from([("s1".to_owned(), 2)]),
        on_demand: 300_000,
        ..BurstRecord::default()
    };
    let settings = settings();
    for id in 1..=3 {
        let mut one = job(id, "short", &format!("c{id}"));
        (one.submitted_ms, one.start_ms, one.end_ms) = (0, 1_000, 11_000);
        one.state = JobState::Completed;
        record.learn(12_000, &[one], &settings);
    }
    let reckoned = report(&record, |_| true);
    let short = &reckoned.kinds[0];
    assert_eq!((short.kind, short.completed), (JobClass::Short, 3));
    assert_eq!(short.with.mean_seconds, 1.0);
    // One after another: 0, 10, 20 seconds.
    assert_eq!(short.without.mean_seconds, 10.0);
    assert_eq!(short.improvement(), Some(10.0));
    assert!(!reckoned.measured && reckoned.baseline.starts_with("reckoned"));
    let measured = reckoned.clone().against(&reckoned);
    assert_eq!(measured.improvement, Some(1.0));
    assert!(
        measured.measured
            && measured
                .baseline
                .starts_with("measured: a run of 3 jobs on 1 ")
    );
}
