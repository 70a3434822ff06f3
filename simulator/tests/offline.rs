//! The engine alone against traces: the recorded first-fit placements, and a tiny trace whose
//! outcome can be told by hand.

// All of this file is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use ebbtide_engine::{EngineConfig, RankingPolicy};
use ebbtide_model::Seconds;
use ebbtide_simulator::offline::{OfflineOptions, replay};
use ebbtide_simulator::{
    HostPattern, PreemptibleShare, ReadOptions, RecordedPlacements, ReplayReport, SimError, Trace,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file of the recordings, and whether it is a reduced one.
fn data(file: &str) -> (PathBuf, bool) {
    let data = ebbtide_test_data::data(&format!("huawei-vmagent-requests/{file}"));
    (data.path, data.reduced)
}

fn options(
    policy: RankingPolicy,
    hosts: &[&str],
    cpu: u32,
    mem_gb: u32,
    share: f64,
) -> OfflineOptions {
    OfflineOptions {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        host_cpu: cpu,
        host_mem_gb: mem_gb,
        engine: EngineConfig {
            policy,
            ..EngineConfig::default()
        },
        preemptible: PreemptibleShare::new(share, 1).unwrap(),
        grace: Seconds(30),
        sample_every: None,
        short_seconds: 3600.0,
    }
}

fn run(
    trace: &Trace,
    options: &OfflineOptions,
    recorded: Option<&RecordedPlacements>,
) -> Result<ReplayReport, SimError> {
    let ticks = std::cell::Cell::new(0);
    let clock = || {
        ticks.set(ticks.get() + 1);
        Duration::from_millis(ticks.get())
    };
    replay(trace, options, recorded, &clock, &mut |_| {
        ControlFlow::Continue(())
    })
}

#[test]
fn first_fit_places_the_huawei_trace_as_recorded() {
    let (requests, reduced) = data("requests.csv");
    let trace = Trace::read(&requests, ReadOptions::default()).unwrap();
    let counts = if reduced { (1400, 700) } else { (6073, 3155) };
    assert_eq!((trace.events.len(), trace.creates()), counts);
    let pattern = HostPattern::new("s{server}n{numa}").unwrap();
    let recorded =
        RecordedPlacements::read(&data("placement_firstfit.csv.zst").0, &pattern, &trace).unwrap();
    let names: Vec<String> = (0..10).map(|action| pattern.host(action)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let report = run(
        &trace,
        &options(RankingPolicy::FirstFit, &names, 40, 90, 0.0),
        Some(&recorded),
    )
    .unwrap();
    let comparison = report.placements.unwrap();
    assert!(comparison.agrees(), "{comparison}");
    if reduced {
        assert!(comparison.compared >= 150, "{comparison}");
        assert_eq!((report.creates, report.preempted), (700, 0));
        assert!(report.refused > 0, "the end of the trace fills the region");
        return;
    }
    assert_eq!(comparison.to_string(), "3111 of 3111 placements equal");
    // After the recording ends the region is full for a while: a plain first-fit refuses 13 of the
    // rest as well.
    assert_eq!(
        (report.creates, report.refused, report.preempted),
        (3155, 13, 0)
    );
}

#[test]
fn the_same_seed_gives_the_same_report_and_refuses_no_more_normal_requests() {
    let trace = Trace::read(&data("requests.csv").0, ReadOptions::default()).unwrap();
    let hosts: Vec<String> = (0..10).map(|host| format!("h{host}")).collect();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let mixed = options(RankingPolicy::Tiered, &names, 40, 90, 0.3);
    let (first, second) = (
        run(&trace, &mixed, None).unwrap(),
        run(&trace, &mixed, None).unwrap(),
    );
    assert_eq!(first, second);
    assert!(
        first.preempted > 0,
        "this trace fills the region; some servers must be evicted"
    );
    assert_eq!(first.creates, first.placed + first.refused);
    for sample in &first.samples {
        for class in &sample.classes {
            assert!(
                class.normal <= class.capacity,
                "{class:?} at {}",
                sample.at_seconds
            );
        }
    }
}

/// One host of 2 CPUs: a and b fill it, c needs room.
const TINY: &str = "event,vm,cpu,mem_gb,time_s
create,a,1,1,0
create,b,1,1,3600
create,c,1,1,4000
delete,c,1,1,8000
delete,a,1,1,8000
delete,b,1,1,8000
create,d,4,1,9000
";

#[test]
fn without_preemptibles_the_third_of_two_is_refused() {
    let trace = Trace::parse(TINY.as_bytes(), Path::new("tiny"), ReadOptions::default()).unwrap();
    let report = run(
        &trace,
        &options(RankingPolicy::Tiered, &["h"], 2, 8, 0.0),
        None,
    )
    .unwrap();
    let counts = (
        report.creates,
        report.placed,
        report.refused,
        report.preempted,
    );
    assert_eq!(counts, (4, 2, 2, 0));
    assert_eq!((report.deletes, report.deletes_without_server), (2, 1));
    assert_eq!(report.decision_latency.count, 4);
    let (last, first) = (report.samples.last().unwrap(), &report.samples[0]);
    assert_eq!((first.at_seconds, last.at_seconds), (0.0, 9000.0));
    let cpu = last
        .classes
        .iter()
        .find(|class| class.resource_class == "VCPU")
        .unwrap();
    assert_eq!((cpu.capacity, cpu.full()), (2, 0));
}

#[test]
fn a_preemptible_one_leaves_for_a_normal_one_after_its_grace_period() {
    // A seed under which a and b are preemptible and c is not.
    let seed = (0..)
        .find(|&seed| {
            let share = PreemptibleShare::new(0.5, seed).unwrap();
            share.contains("a") && share.contains("b") && !share.contains("c")
        })
        .unwrap();
    let trace = Trace::parse(TINY.as_bytes(), Path::new("tiny"), ReadOptions::default()).unwrap();
    let mut options = options(RankingPolicy::Tiered, &["h"], 2, 8, 0.0);
    options.preemptible = PreemptibleShare::new(0.5, seed).unwrap();
    options.sample_every = Some(10.0);
    let report = run(&trace, &options, None).unwrap();
    let counts = (
        report.placed,
        report.waited,
        report.refused,
        report.preempted,
    );
    assert_eq!(counts, (3, 1, 1, 1));
    // One of a and b is gone when its delete comes.
    assert_eq!((report.deletes, report.deletes_without_server), (2, 1));
}
