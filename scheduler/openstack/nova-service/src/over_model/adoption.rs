//! A scheduler died with a preemption in its hands: another one finishes or withdraws it, once.

use super::agents::evacuated;
use super::full_host::{VICTIM, on_host, replay, victim};
use super::newcomer;
use super::preemptions::Stage;
use crate::evacuate::PreemptionResult;
use crate::preemption::PreemptionState;
use oslo_messaging::CallState;
use serde_json::json;

const CLAIM: [(&str, u64); 3] = [("VCPU", 4), ("MEMORY_MB", 512), ("DISK_GB", 1)];

#[tokio::test]
async fn a_preemption_whose_swap_was_not_sent_is_finished_by_one_of_two_others() {
    let mut stage = Stage::new().await;
    let second = stage.scheduler("scheduler-2").await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    stage.leave_behind(&plan).await;
    let (one, two) = tokio::join!(stage.first.beat(), second.beat());
    one.unwrap();
    two.unwrap();
    let mut agent = stage.take_agent();
    for _ in 0..2 {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    }
    let end = stage.end_of(plan.id).await;
    assert_eq!(end.state, PreemptionState::Done);
    assert_eq!(stage.posts().len(), 1, "one swap");
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
    assert_eq!(stage.bench.used(1), 8);
}

#[tokio::test]
async fn a_swap_that_was_taken_before_its_scheduler_died_is_found_and_not_sent_again() {
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    stage.leave_behind(&plan).await;
    stage.swap_as_planned(&plan);
    stage.first.beat().await.unwrap();
    let mut agent = stage.take_agent();
    for _ in 0..2 {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    }
    assert_eq!(stage.end_of(plan.id).await.state, PreemptionState::Done);
    assert_eq!(stage.posts().len(), 0, "only the dead one's");
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
}

#[tokio::test]
async fn a_preemption_that_no_caller_waits_for_any_more_is_withdrawn_once() {
    let stage = Stage::new().await;
    let second = stage.scheduler("scheduler-2").await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    stage.leave_behind(&plan).await;
    stage.swap_as_planned(&plan);
    stage.caller_leaves(newcomer(1)).await;
    let (one, two) = tokio::join!(stage.first.beat(), second.beat());
    one.unwrap();
    two.unwrap();
    assert_eq!(
        stage.end_of(plan.id).await.state,
        PreemptionState::Withdrawn
    );
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
    let returns = stage.posts().into_iter();
    let returns = returns.filter(|body| body.get(newcomer(1).to_string()).is_some());
    assert_eq!(returns.count(), 1);
}

#[tokio::test]
async fn of_two_that_have_read_the_same_version_one_gets_the_row() {
    let stage = Stage::new().await;
    let second = stage.scheduler("scheduler-2").await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let row = stage.leave_behind(&plan).await;
    stage.first.adopt(row.clone()).await.unwrap();
    second.adopt(row.clone()).await.unwrap();
    assert_eq!((stage.first.under_way(), second.under_way()), (1, 0));
    assert_eq!(stage.row(row.id).await.owner.name, "scheduler-1");
}

#[tokio::test]
async fn the_row_of_a_scheduler_that_lives_is_left_to_it() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let row = stage.written_by_another(&plan).await;
    stage.first.beat().await.unwrap();
    assert_eq!(stage.first.under_way(), 0);
    assert_eq!(stage.row(row.id).await.version, 1);
    assert_eq!(stage.posts().len(), 0);
}

#[tokio::test]
async fn a_request_that_comes_again_goes_on_with_what_its_dead_scheduler_began() {
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let id = plan.id;
    stage.leave_behind(&plan).await;
    stage.swap_as_planned(&plan);
    let mut agent = stage.take_agent();
    let leaving = async {
        for _ in 0..2 {
            let notice = agent.notice().await;
            agent.gone(&notice).await;
        }
    };
    let resumed = stage
        .first
        .resume(newcomer(1), &plan.unique_id, CallState::detached());
    let (outcome, ()) = tokio::join!(resumed, leaving);
    let outcome = outcome.unwrap().unwrap();
    assert_eq!(outcome, PreemptionResult::Room(json!("the place")));
    assert_eq!(stage.posts().len(), 0);
    let end = stage.end_of(id).await;
    assert_eq!((end.state, end.answered), (PreemptionState::Done, true));
}

#[tokio::test]
async fn a_swap_that_its_first_scheduler_sends_after_it_was_withdrawn_is_refused() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    stage.leave_behind(&plan).await;
    let swap = stage.swap_as_planned(&plan);
    stage.caller_leaves(newcomer(1)).await;
    stage.first.beat().await.unwrap();
    assert_eq!(
        stage.end_of(plan.id).await.state,
        PreemptionState::Withdrawn
    );
    // It stood still, and goes on with what it had in its hands.
    let placement = &stage.bench.placement;
    let status = placement.model(|model| replay(model, "POST", "/allocations", &swap));
    assert_eq!(status, 409);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
}

#[tokio::test]
async fn what_another_scheduler_has_written_of_a_report_counts() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let id = plan.id;
    let mut left: Vec<_> = plan
        .victims
        .iter()
        .map(|v| (v.evacuation, v.server))
        .collect();
    // The agent speaks once, and its reports come to the other scheduler.
    let reports = async {
        while let Some((evacuation_id, server_id)) = left.pop() {
            let body = evacuated("compute1", evacuation_id, server_id);
            stage.reported_to_another(id, &body).await;
        }
    };
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), reports);
    assert_eq!(outcome, PreemptionResult::Room(json!("the place")));
    assert_eq!(stage.end_of(id).await.state, PreemptionState::Done);
}
