//! A withdrawn preemption gives back exactly what it took, once, and only to its own victims.

use super::full_host::{VICTIM, holding, on_host, replay, victim, write};
use super::newcomer;
use super::preemptions::Stage;
use crate::evacuate::PreemptionResult;
use ebbtide_placement_model::{Model, ScriptedStep, TransportFault};
use serde_json::Value;
use std::collections::BTreeMap;

const POST: &str = "POST /allocations";

fn withdrawn(outcome: &PreemptionResult) {
    assert!(
        matches!(outcome, PreemptionResult::Withdrawn(..)),
        "{outcome:?}"
    );
}

/// A preemption of two victims whose caller leaves before any notice is sent.
async fn called_off(stage: &Stage) -> PreemptionResult {
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    stage.caller_leaves(newcomer(1)).await;
    stage.carries_out(plan).await
}

/// A scheduler that stood still sends a swap that was called off meanwhile; the answer's status.
fn late(stage: &Stage, swap: &Value) -> u16 {
    let placement = &stage.bench.placement;
    placement.model(|model| replay(model, "POST", "/allocations", swap))
}

#[tokio::test]
async fn a_renewal_that_is_refused_is_tried_again_until_old_swaps_are_refused() {
    let stage = Stage::new().await;
    // The swap and its return go through, what is written once more does not.
    let refused = ScriptedStep::Fault(TransportFault::Refused(503));
    stage.bench.placement.plan(POST, 2, 3, refused);
    withdrawn(&called_off(&stage).await);
    let swap = stage.posts().remove(0);
    assert_eq!(late(&stage, &swap), 409);
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
}

#[tokio::test]
async fn victims_have_again_all_that_they_had_and_the_newcomer_nothing() {
    let stage = Stage::new().await;
    withdrawn(&called_off(&stage).await);
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
    let returned = &stage.posts()[1];
    let named = returned.as_object().unwrap();
    assert_eq!(named.len(), 3, "in one write: {returned}");
}

#[tokio::test]
async fn a_swap_in_the_hands_of_a_scheduler_that_stood_still_is_refused_after_the_return() {
    let stage = Stage::new().await;
    withdrawn(&called_off(&stage).await);
    let swap = stage.posts().remove(0);
    assert_eq!(late(&stage, &swap), 409);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
}

#[tokio::test]
async fn what_a_victim_kept_is_made_whole_again() {
    let stage = Stage::new().await;
    let mut plan = stage.plan(newcomer(1), &[1, 2], 3).await;
    let keeps = [("VCPU", 1), ("MEMORY_MB", 1024), ("DISK_GB", 1)];
    plan.victims[1].keeps = Some(holding(&keeps, Some(plan.victims[1].generation)));
    stage.caller_leaves(newcomer(1)).await;
    withdrawn(&stage.carries_out(plan).await);
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
}

#[tokio::test]
async fn a_return_that_meets_another_writer_is_tried_again_until_it_is_taken() {
    let stage = Stage::new().await;
    // The swap goes through, its return does not, twice.
    let refused = ScriptedStep::Fault(TransportFault::Refused(409));
    stage.bench.placement.plan(POST, 1, 2, refused);
    withdrawn(&called_off(&stage).await);
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
}

#[tokio::test]
async fn a_return_whose_answer_was_lost_gives_nothing_twice() {
    let stage = Stage::new().await;
    let lost = ScriptedStep::Fault(TransportFault::AnswerLost);
    stage.bench.placement.plan(POST, 1, 1, lost);
    withdrawn(&called_off(&stage).await);
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
    assert_eq!(stage.bench.used(1), 8);
    let swap = stage.posts().remove(0);
    assert_eq!(late(&stage, &swap), 409);
}

#[tokio::test]
async fn who_is_not_as_the_swap_left_it_is_left_alone() {
    let stage = Stage::new().await;
    let smaller = [("VCPU", 1), ("MEMORY_MB", 256), ("DISK_GB", 1)];
    // After the swap another process changes the newcomer's and one victim's allocations.
    let dealt_with = move |model: &mut Model| {
        assert_eq!(write(model, newcomer(1), &smaller), 204);
        assert_eq!(write(model, victim(1), &smaller), 204);
    };
    let after = ScriptedStep::After(Box::new(dealt_with));
    stage.bench.placement.once(POST, after);
    withdrawn(&called_off(&stage).await);
    assert_eq!(stage.has(newcomer(1)), on_host(&smaller));
    assert_eq!(stage.has(victim(1)), on_host(&smaller));
    assert_eq!(stage.has(victim(2)), on_host(&VICTIM));
}

#[tokio::test]
async fn a_victim_that_was_deleted_meanwhile_gets_nothing_back() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    stage.caller_leaves(newcomer(1)).await;
    // Its owner is deleting it; Nova frees its allocations in the end whatever they are.
    let sql = format!(
        "UPDATE instances SET task_state = 'deleting' WHERE uuid = '{}'",
        victim(2)
    );
    stage.bench.nova.cell.sql(&sql).await;
    withdrawn(&stage.carries_out(plan).await);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
    assert!(stage.has(victim(2)).is_empty());
}

#[tokio::test]
async fn a_newcomer_that_moves_has_again_what_it_had_before() {
    let stage = Stage::new().await;
    let before = [("DISK_GB", 3)];
    stage.bench.placement.model(|model| {
        assert_eq!(write(model, newcomer(1), &before), 204);
    });
    let mut plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    plan.newcomers[0].before = Some(holding(&before, Some(1)));
    let claim = [("VCPU", 4), ("MEMORY_MB", 512), ("DISK_GB", 4)];
    plan.newcomers[0].claim = holding(&claim, Some(1));
    stage.caller_leaves(newcomer(1)).await;
    withdrawn(&stage.carries_out(plan).await);
    assert_eq!(stage.has(newcomer(1)), on_host(&before));
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
}

#[tokio::test]
async fn a_victim_that_leaves_after_all_does_not_keep_what_was_given_back_to_it() {
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let mut agent = stage.take_agent();
    let life = async {
        let (one, two) = (agent.notice().await, agent.notice().await);
        // One cannot be ended: all is called off, and what was taken goes back at once.
        agent.failed(&one).await;
        let (_, _) = (agent.spare().await, agent.spare().await);
        let (gone, lives) = match one.server_id.0 == victim(1) {
            true => (&two, &one),
            false => (&one, &two),
        };
        for n in [1, 2] {
            assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
        }
        // Nova had taken it from the other one just before it came back.
        let sql = format!(
            "UPDATE instances SET deleted = id, host = NULL WHERE uuid = '{}'",
            gone.server_id.0
        );
        stage.bench.nova.cell.sql(&sql).await;
        agent.gone(gone).await;
        agent.spared(lives).await;
    };
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), life);
    withdrawn(&outcome);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
    assert_eq!(stage.has(victim(2)), BTreeMap::new());
    assert!(stage.has(newcomer(1)).is_empty());
}

#[tokio::test]
async fn a_newcomer_that_another_answer_has_brought_to_the_same_place_keeps_it() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let claim = plan.newcomers[0].claim.clone();
    stage.caller_leaves(newcomer(1)).await;
    // Nova runs it where the plan would put it: another scheduler has answered, and there is room
    // for all.
    stage.comes(newcomer(1), 9).await;
    let others_leave = |model: &mut Model| {
        for n in [3, 4] {
            assert_eq!(write(model, victim(n), &[]), 204);
        }
    };
    let after = ScriptedStep::After(Box::new(others_leave));
    stage.bench.placement.once(POST, after);
    withdrawn(&stage.carries_out(plan).await);
    let held = crate::facts::amounts(&claim.allocations);
    assert_eq!(stage.has(newcomer(1)), held);
}
