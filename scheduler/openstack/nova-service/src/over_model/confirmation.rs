//! Victims hear of a preemption once Placement has confirmed that they are needed, while the swap
//! is made beside that question.

use super::full_host::{VICTIM, on_host, victim, write};
use super::preemptions::Stage;
use super::{host, newcomer, place};
use crate::evacuate::{Confirmation, CountedBudgets, PreemptionResult};
use crate::preemption::{Preemption, PreemptionState, WithdrawalReason};
use ebbtide_placement_model::{Model, ScriptedStep};
use oslo_messaging::CallState;
use std::time::Duration;
use tokio::sync::oneshot;

const QUESTION: &str = "GET /allocation_candidates";

/// The only record of a newcomer.
async fn record(stage: &Stage) -> Preemption {
    let rows = stage.ledger.by_instance(newcomer(1)).await.unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    serde_json::from_value(rows[0].document.clone()).unwrap()
}

#[tokio::test]
async fn no_victim_hears_of_a_preemption_before_placement_has_confirmed_it() {
    let mut stage = Stage::new().await;
    let plan = Preemption {
        unconfirmed: true,
        ..stage.plan(newcomer(1), &[1], 2).await
    };
    let (confirm, confirmed) = oneshot::channel();
    let question = Confirmation::of(async move { confirmed.await.unwrap() });
    let (budgets, caller) = (CountedBudgets::default(), CallState::detached());
    let scheduler = stage.first.clone();
    let begun = scheduler.begin(plan, &budgets, caller, Some(question), || {});
    let mut agent = stage.take_agent();
    let leaving = async {
        let early = tokio::time::timeout(Duration::from_millis(500), agent.listens()).await;
        assert!(early.is_err(), "{early:?}");
        assert_eq!(stage.bench.holds(newcomer(1)), [(host(1), 2)], "it claims");
        confirm.send(Ok(())).unwrap();
        let notice = agent.notice().await;
        assert!(!record(&stage).await.unconfirmed, "before the notice");
        agent.gone(&notice).await;
    };
    let (outcome, ()) = tokio::join!(begun, leaving);
    assert!(matches!(outcome, Ok(PreemptionResult::Room(_))));
}

#[tokio::test]
async fn a_release_that_only_placement_knows_spares_the_victims() {
    let mut stage = Stage::new().await;
    stage.bench.look().await;
    let release = |model: &mut Model| assert_eq!(write(model, victim(4), &[]), 204);
    let placement = &stage.bench.placement;
    placement.once(QUESTION, ScriptedStep::Before(Box::new(release)));
    let answer = stage.bench.ask(newcomer(1), 2).await.unwrap();
    assert_eq!(place(&answer), "compute1");
    assert_eq!(stage.bench.holds(newcomer(1)), [(host(1), 2)]);
    for n in 1..=3 {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    let end = record(&stage).await;
    assert_eq!(end.state, PreemptionState::Withdrawn);
    assert_eq!(end.withdrawal, Some(WithdrawalReason::VictimsUnconfirmed));
    let mut agent = stage.take_agent();
    let told = tokio::time::timeout(Duration::from_millis(200), agent.listens()).await;
    assert!(told.is_err(), "{told:?}");
    // The next request waits for Placement's answer first: memory may have missed more.
    let before = stage.bench.placement.seen().len();
    let leaving = async {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    };
    let (answer, ()) = tokio::join!(stage.bench.ask(newcomer(2), 2), leaving);
    answer.unwrap();
    let seen = stage.bench.placement.seen();
    let asked = seen[before..].iter().map(|seen| seen.what.as_str());
    let place_of = |begins: &str| asked.clone().position(|what| what.starts_with(begins));
    let (question, swap) = (place_of(QUESTION), place_of("POST /allocations"));
    assert!(
        question.is_some() && question < swap,
        "{question:?} {swap:?}"
    );
}

#[tokio::test]
async fn a_scheduler_that_adopts_an_unconfirmed_preemption_spares_the_victims() {
    for is_swapped in [false, true] {
        let mut stage = Stage::new().await;
        let plan = Preemption {
            unconfirmed: true,
            ..stage.plan(newcomer(1), &[1, 2], 4).await
        };
        stage.leave_behind(&plan).await;
        if is_swapped {
            stage.swap_as_planned(&plan);
        }
        stage.first.beat().await.unwrap();
        let end = stage.end_of(plan.id).await;
        assert_eq!(end.state, PreemptionState::Withdrawn);
        assert_eq!(end.withdrawal, Some(WithdrawalReason::VictimsUnconfirmed));
        for n in [1, 2] {
            assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
        }
        assert!(stage.has(newcomer(1)).is_empty());
        let mut agent = stage.take_agent();
        let told = tokio::time::timeout(Duration::from_millis(200), agent.listens()).await;
        assert!(told.is_err(), "{told:?}");
    }
}
