//! Victims hear of a preemption once Placement has confirmed that they are needed, while the swap
//! is made beside that question.

use super::agents::Agent;
use super::full_host::{VICTIM, on_host, victim, write};
use super::preemptions::Stage;
use super::{LONG, host, newcomer, place};
use crate::evacuate::{Confirmation, CountedBudgets, PreemptionResult};
use crate::preemption::{Preemption, PreemptionState, WithdrawalReason};
use ebbtide_placement_model::{Model, ScriptedStep};
use oslo_messaging::CallState;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

const QUESTION: &str = "GET /allocation_candidates";

/// The records of a newcomer, from the oldest.
async fn records(stage: &Stage, of: Uuid) -> Vec<Preemption> {
    let mut rows = stage.ledger.by_instance(of).await.unwrap();
    rows.sort_by_key(|row| row.id);
    let documents = rows.into_iter().map(|row| row.document);
    documents
        .map(|document| serde_json::from_value(document).unwrap())
        .collect()
}

/// The only record of the first newcomer.
async fn record(stage: &Stage) -> Preemption {
    let [record] = <[Preemption; 1]>::try_from(records(stage, newcomer(1)).await).unwrap();
    record
}

/// How often the consumers of the host were read.
fn readings(stage: &Stage) -> usize {
    let seen = stage.bench.placement.seen();
    let readings = seen
        .iter()
        .filter(|seen| seen.what.starts_with(&consumers()));
    readings.count()
}

fn consumers() -> String {
    format!("GET /resource_providers/{}/allocations", host(1))
}

/// One victim has left for the first newcomer, and what the next one needs was read ahead.
async fn after_a_preemption() -> (Stage, Agent) {
    let mut stage = Stage::new().await;
    stage.bench.look().await;
    let mut agent = stage.take_agent();
    let leaving = async {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
        readings(&stage)
    };
    let (answer, before) = tokio::join!(stage.bench.ask(newcomer(1), 2), leaving);
    answer.unwrap();
    let read_ahead = async {
        while readings(&stage) == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let read_ahead = tokio::time::timeout(LONG, read_ahead).await;
    read_ahead.expect("the host is read ahead");
    (stage, agent)
}

#[tokio::test]
async fn victims_that_were_read_ahead_are_read_again_beside_the_swap() {
    let (stage, mut agent) = after_a_preemption().await;
    let before = readings(&stage);
    let leaving = async {
        let notice = agent.notice().await;
        let by_then = readings(&stage);
        agent.gone(&notice).await;
        by_then
    };
    let (answer, by_then) = tokio::join!(stage.bench.ask(newcomer(2), 2), leaving);
    answer.unwrap();
    assert_eq!(by_then, before + 1, "before the notice");
    let states: Vec<PreemptionState> = records(&stage, newcomer(2))
        .await
        .iter()
        .map(|record| record.state)
        .collect();
    assert_eq!(states, [PreemptionState::Done], "with the first swap");
    assert_eq!(stage.bench.used(1), 8);
}

#[tokio::test]
async fn a_swap_with_victims_that_have_changed_since_they_were_read_ahead_is_made_anew() {
    let (stage, mut agent) = after_a_preemption().await;
    let change = |model: &mut Model| {
        for n in (1..=4)
            .filter(|n| model.consumer(victim(*n)).is_some())
            .collect::<Vec<_>>()
        {
            assert_eq!(write(model, victim(n), &VICTIM), 204);
        }
    };
    let placement = &stage.bench.placement;
    placement.once(&consumers(), ScriptedStep::Before(Box::new(change)));
    let leaving = async {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    };
    let (answer, ()) = tokio::join!(stage.bench.ask(newcomer(2), 2), leaving);
    answer.unwrap();
    let records = records(&stage, newcomer(2)).await;
    assert_eq!(records.last().unwrap().state, PreemptionState::Done);
    assert_eq!(records.len(), 2, "{records:?}");
    let early = tokio::time::timeout(Duration::from_millis(200), agent.listens()).await;
    assert!(early.is_err(), "one victim is enough: {early:?}");
}

#[tokio::test]
async fn a_victim_that_is_not_needed_since_it_was_read_ahead_stays() {
    let (stage, mut agent) = after_a_preemption().await;
    // A release of which only Placement knows makes room for half of what is asked for.
    let release = |model: &mut Model| model.forget(newcomer(1));
    let placement = &stage.bench.placement;
    placement.once(&consumers(), ScriptedStep::Before(Box::new(release)));
    let leaving = async {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    };
    let (answer, ()) = tokio::join!(stage.bench.ask(newcomer(2), 4), leaving);
    answer.unwrap();
    let records = records(&stage, newcomer(2)).await;
    let [first, second] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_eq!(first.withdrawal, Some(WithdrawalReason::VictimsUnconfirmed));
    assert_eq!((first.victims.len(), second.victims.len()), (2, 1));
    assert_eq!(second.state, PreemptionState::Done);
    let early = tokio::time::timeout(Duration::from_millis(200), agent.listens()).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(stage.bench.used(1), 8);
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
