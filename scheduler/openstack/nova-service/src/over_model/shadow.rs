//! A shadow decides copies of requests, writes nothing, and compares.

use super::decisions::{RecordingBench, host_of};
use super::{Bench, host, newcomer, other_claims, place, recorded_call, small};
use crate::Tasks;
use crate::shadow::{Answers, ObservedRequest};
use ebbtide_model::{ComparisonVerdict, Decision, DecisionOutcome};
use uuid::Uuid;

/// The decision of a copy.
async fn observed(bench: &Bench, instance: Uuid, vcpus: u64) -> ObservedRequest {
    let call = recorded_call(instance, small(vcpus), false);
    bench.selector.observe(call).await.unwrap()
}

#[tokio::test]
async fn a_copy_is_decided_as_its_request_is_and_claims_nothing() {
    let bench = Bench::of_hosts(3).await;
    let mut refused = 0;
    for n in 1..=12 {
        let used = [1, 2, 3].map(|host| bench.used(host));
        let copy = observed(&bench, newcomer(n), 3).await;
        assert!(!copy.rebuild);
        assert_eq!([1, 2, 3].map(|host| bench.used(host)), used);
        assert_eq!(bench.holds(newcomer(n)), []);
        match bench.ask(newcomer(n), 3).await {
            Ok(answer) => assert_eq!(host_of(&copy.decision), place(&answer)),
            Err(error) => {
                assert_eq!(error.class, "NoValidHost");
                let outcome = &copy.decision.outcome;
                assert!(matches!(outcome, DecisionOutcome::NoValidHost(_)));
                refused += 1;
            }
        }
    }
    assert_eq!(
        refused, 6,
        "two servers of three VCPUs fit on a host of eight"
    );
}

/// What is recorded of a request, newest first.
fn comparisons(records: &[Decision]) -> Vec<(ComparisonVerdict, &[String])> {
    let all = records.iter().map(|decision| {
        let found = decision.trace.comparison.as_ref().unwrap();
        (found.verdict, found.hosts.as_slice())
    });
    all.collect()
}

#[tokio::test]
async fn what_nova_scheduler_claims_is_recorded_beside_the_decision() {
    let recording = RecordingBench::of_hosts(3).await;
    let bench = &recording.bench;
    let tasks = Tasks::default();
    let answers = Answers::new(&bench.selector.facts, &bench.selector.decisions, &tasks);
    for n in 1..=3 {
        bench.expect(newcomer(n)).await;
    }
    // Two requests at the same time: the same host for one, another host for the other.
    let open = [answers.arrived(), answers.arrived()];
    let copies = [
        observed(bench, newcomer(1), 3).await,
        observed(bench, newcomer(2), 3).await,
    ];
    let ours = host_of(&copies[0].decision);
    let node = |n: i64| host_of_node(bench, n);
    let same = (1..=3).find(|n| node(*n) == ours).unwrap();
    let other = same % 3 + 1;
    for (copy, open) in copies.into_iter().zip(open) {
        answers.follow(copy, open);
    }
    bench.placement.model(|model| {
        other_claims(model, newcomer(1), host(same), 3);
        other_claims(model, newcomer(2), host(other), 3);
    });
    // A third one is never answered, and the shadow ends.
    let third = answers.arrived();
    answers.follow(observed(bench, newcomer(3), 3).await, third);
    tasks.stop().cancel();
    assert!(tasks.finish(super::LONG).await);
    let mut records = recording.records().await;
    records.sort_by_key(|decision| decision.request.server_ids.clone());
    let (same, other) = (vec![node(same)], vec![node(other)]);
    let [first, second, third] = comparisons(&records)[..] else {
        panic!("{records:?}")
    };
    assert_eq!(first, (ComparisonVerdict::Same, same.as_slice()));
    // The claims of this test come before the shadow's first look, which is told from a difference.
    let raced = ComparisonVerdict::NotCompared;
    assert_eq!(second, (raced, other.as_slice()));
    assert_eq!(third, (ComparisonVerdict::NotCompared, &[][..]));
    let beside = |n: usize| {
        records[n]
            .trace
            .comparison
            .as_ref()
            .unwrap()
            .requests_beside
    };
    assert_eq!((beside(0), beside(1)), (0, 1));
    assert_eq!(records[0].trace.scheduler, "scheduler-1");
}

/// The service's host of a compute node, as decisions name it.
fn host_of_node(bench: &Bench, n: i64) -> String {
    let known = bench.selector.facts.read(|cloud| cloud.host(host(n)));
    known.unwrap().host
}
