//! The swap: what victims hold becomes what the newcomer holds, in one write or not at all.

use super::agents::Agent;
use super::full_host::{VICTIM, holding, on_host, replay, victim, write};
use super::preemptions::Stage;
use super::{host, newcomer, other_claims};
use crate::evacuate::PreemptionResult;
use crate::preemption::{PreemptionState, WithdrawalReason};
use ebbtide_placement_model::{Model, ScriptedStep, TransportFault};
use serde_json::{Value, json};

const POST: &str = "POST /allocations";
/// What the newcomer of four VCPUs claims.
const CLAIM: [(&str, u64); 3] = [("VCPU", 4), ("MEMORY_MB", 512), ("DISK_GB", 1)];

fn room() -> PreemptionResult {
    PreemptionResult::Room(json!("the place"))
}

/// So many victims are told, and are gone.
async fn leave(agent: &mut Agent, victims: usize) {
    for _ in 0..victims {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    }
}

#[tokio::test]
async fn a_swap_is_one_write_in_which_victims_hold_nothing_and_the_newcomer_all() {
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let (victims, generation) = ([victim(1), victim(2)], plan.victims[0].generation);
    let mut agent = stage.take_agent();
    let leaving = async {
        let notice = agent.notice().await;
        // Before any agent hears of it.
        assert_eq!(stage.posts().len(), 1);
        assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
        for victim in victims {
            assert!(stage.has(victim).is_empty());
        }
        agent.gone(&notice).await;
        leave(&mut agent, 1).await;
    };
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), leaving);
    assert_eq!(outcome, room());
    let body = &stage.posts()[0];
    for victim in victims {
        let entry = &body[victim.to_string()];
        assert_eq!(entry["allocations"], json!({}));
        assert_eq!(entry["consumer_generation"], json!(generation));
    }
    let entry = &body[newcomer(1).to_string()];
    assert_eq!(entry["consumer_generation"], Value::Null);
    assert_eq!(stage.has(victim(3)), on_host(&VICTIM), "no part of it");
    assert_eq!(stage.bench.used(1), 8);
}

#[tokio::test]
async fn what_a_victim_keeps_stays_with_it_in_the_same_write() {
    let mut stage = Stage::new().await;
    let mut plan = stage.plan(newcomer(1), &[1, 2], 3).await;
    let generation = plan.victims[1].generation;
    // The newcomer needs no more of it.
    let keeps = [("VCPU", 1), ("MEMORY_MB", 1024), ("DISK_GB", 1)];
    plan.victims[1].keeps = Some(holding(&keeps, Some(generation)));
    let mut agent = stage.take_agent();
    let leaving = async {
        let notice = agent.notice().await;
        assert_eq!(stage.has(victim(2)), on_host(&keeps));
        assert_eq!(stage.bench.used(1), 8, "none of it is free");
        agent.gone(&notice).await;
        leave(&mut agent, 1).await;
    };
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), leaving);
    assert_eq!(outcome, room());
    assert_eq!(stage.posts().len(), 1);
}

#[tokio::test]
async fn a_swap_whose_victim_was_changed_since_the_plan_is_refused_and_changes_nothing() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let status = stage
        .bench
        .placement
        .model(|m| write(m, victim(2), &VICTIM));
    assert_eq!(status, 204);
    let id = plan.id;
    let outcome = stage.carries_out(plan).await;
    assert!(
        matches!(outcome, PreemptionResult::Refused(_)),
        "{outcome:?}"
    );
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
    assert_eq!(stage.end_of(id).await.state, PreemptionState::Refused);
}

#[tokio::test]
async fn a_swap_whose_answer_was_lost_is_read_and_not_sent_again() {
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let placement = &stage.bench.placement;
    placement.once(POST, ScriptedStep::Fault(TransportFault::AnswerLost));
    let mut agent = stage.take_agent();
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), leave(&mut agent, 2));
    assert_eq!(outcome, room());
    assert_eq!(stage.posts().len(), 1);
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
}

#[tokio::test]
async fn a_swap_that_placement_has_not_heard_is_sent_again() {
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let placement = &stage.bench.placement;
    placement.once(POST, ScriptedStep::Fault(TransportFault::Silence));
    let mut agent = stage.take_agent();
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), leave(&mut agent, 2));
    assert_eq!(outcome, room());
    let posts = stage.posts();
    assert_eq!(posts.len(), 2);
    assert_eq!(posts[0], posts[1]);
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
}

#[tokio::test]
async fn a_newcomer_that_another_scheduler_has_placed_does_not_tell_that_this_swap_was_taken() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let placement = &stage.bench.placement;
    // This swap is not heard, and the newcomer gets the same place by another one.
    placement.once(POST, ScriptedStep::Fault(TransportFault::Silence));
    let other = |model: &mut Model| {
        for n in [3, 4] {
            assert_eq!(write(model, victim(n), &[]), 204);
        }
        assert_eq!(write(model, newcomer(1), &CLAIM), 204);
    };
    let asks = format!("GET /allocations/{}", newcomer(1));
    placement.once(&asks, ScriptedStep::Before(Box::new(other)));
    let outcome = stage.carries_out(plan).await;
    assert!(
        matches!(outcome, PreemptionResult::Refused(_)),
        "{outcome:?}"
    );
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM), "not evicted");
    }
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM), "the other one's");
}

#[tokio::test]
async fn a_swap_whose_newcomer_was_deleted_before_it_was_read_is_given_back() {
    let stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let placement = &stage.bench.placement;
    placement.once(POST, ScriptedStep::Fault(TransportFault::AnswerLost));
    let path = format!("/allocations/{}", newcomer(1));
    let asks = format!("GET {path}");
    let deleted = move |model: &mut Model| {
        assert_eq!(replay(model, "DELETE", &path, &Value::Null), 204);
    };
    placement.once(&asks, ScriptedStep::Before(Box::new(deleted)));
    let outcome = stage.carries_out(plan).await;
    let why = Some(WithdrawalReason::NewcomersGone);
    assert!(
        matches!(&outcome, PreemptionResult::Withdrawn(said, _) if *said == why),
        "{outcome:?}"
    );
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
}

#[tokio::test]
async fn a_swap_where_another_preemptions_victim_still_runs_is_given_back() {
    let stage = Stage::new().await;
    // Another scheduler's preemption: its newcomer was deleted, and its victims still run.
    let open = stage.plan(newcomer(7), &[3, 4], 4).await;
    let row = stage.written_by_another(&open).await;
    stage.bench.placement.model(|model| {
        for n in [3, 4] {
            assert_eq!(write(model, victim(n), &[]), 204);
        }
        // Another consumer claims the capacity that looks free.
        assert_eq!(other_claims(model, newcomer(8), host(1), 2), 204);
    });
    let plan = stage.plan(newcomer(1), &[1], 2).await;
    let outcome = stage.carries_out(plan).await;
    let why = Some(WithdrawalReason::HostOverfull);
    assert!(
        matches!(&outcome, PreemptionResult::Withdrawn(said, _) if *said == why),
        "{outcome:?}"
    );
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
    assert!(stage.has(newcomer(1)).is_empty());
    assert!(!stage.row(row.id).await.finished);
}

#[tokio::test]
async fn a_request_without_room_gets_that_of_the_victims_who_leave_for_it() {
    let mut stage = Stage::new().await;
    let mut agent = stage.take_agent();
    let leaving = async {
        let notice = agent.notice().await;
        assert_eq!(stage.posts().len(), 1);
        // The newcomer needs three of the two victims' four VCPUs; no other consumer gets the
        // fourth.
        assert_eq!(stage.bench.used(1), 8);
        agent.gone(&notice).await;
        leave(&mut agent, 1).await;
    };
    let (answer, ()) = tokio::join!(stage.bench.ask(newcomer(1), 3), leaving);
    assert_eq!(super::place(&answer.unwrap()), "compute1");
    assert_eq!(stage.bench.holds(newcomer(1)), [(host(1), 3)]);
    assert_eq!(stage.posts().len(), 1);
}

#[tokio::test]
async fn a_swap_that_another_schedulers_claim_meets_is_given_back() {
    let stage = Stage::new().await;
    // The newcomer takes what is free here, and what one victim has.
    stage.bench.placement.model(|model| model.forget(victim(4)));
    let plan = stage.plan(newcomer(1), &[1], 4).await;
    let other = |model: &mut Model| {
        assert_eq!(other_claims(model, newcomer(9), host(1), 2), 204);
    };
    let placement = &stage.bench.placement;
    placement.once(POST, ScriptedStep::During(Box::new(other)));
    let outcome = stage.carries_out(plan).await;
    let why = Some(WithdrawalReason::HostOverfull);
    assert!(
        matches!(&outcome, PreemptionResult::Withdrawn(said, _) if *said == why),
        "{outcome:?}"
    );
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM), "spared");
    assert!(stage.has(newcomer(1)).is_empty());
    assert_eq!(stage.bench.holds(newcomer(9)), [(host(1), 2)]);
    assert!(placement.model(|model| model.over_capacity()).is_empty());
}

#[tokio::test]
async fn a_claim_that_meets_a_swap_and_fits_beside_it_changes_nothing() {
    let mut stage = Stage::new().await;
    stage.bench.placement.model(|model| model.forget(victim(4)));
    let plan = stage.plan(newcomer(1), &[1], 2).await;
    let other = |model: &mut Model| {
        assert_eq!(other_claims(model, newcomer(9), host(1), 2), 204);
    };
    let placement = &stage.bench.placement;
    placement.once(POST, ScriptedStep::During(Box::new(other)));
    let mut agent = stage.take_agent();
    let (outcome, ()) = tokio::join!(stage.carries_out(plan), leave(&mut agent, 1));
    assert_eq!(outcome, room());
    assert_eq!(stage.bench.used(1), 8);
}

/// The known generation of the host, and that in Placement.
fn generations(stage: &Stage) -> (Option<i64>, Option<i64>) {
    let providers = &stage.bench.selector.facts.providers;
    let now = stage
        .bench
        .placement
        .model(|model| model.provider(host(1)).map(|known| known.generation));
    (
        providers.known_generation(host(1)),
        now.and_then(|now| i64::try_from(now).ok()),
    )
}

#[tokio::test]
async fn a_swap_and_its_return_count_as_writes_of_their_scheduler() {
    let stage = Stage::new().await;
    let (known, now) = generations(&stage);
    assert_eq!(known, now);
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    // Given back: no request waits for it.
    stage.caller_leaves(newcomer(1)).await;
    let outcome = stage.carries_out(plan).await;
    assert!(
        matches!(outcome, PreemptionResult::Withdrawn(..)),
        "{outcome:?}"
    );
    assert!(stage.posts().len() > 1, "the swap and its return");
    let (counted, written) = generations(&stage);
    assert!(written > now);
    assert!(
        counted > known && counted <= written,
        "{counted:?} of {written:?}"
    );
}

#[tokio::test]
async fn a_full_host_that_lost_a_trait_since_it_was_read_loses_no_victim() {
    let stage = Stage::new().await;
    stage.bench.placement.model(|model| {
        model.change_provider(host(1), |provider| {
            provider.traits.insert("COMPUTE_STATUS_DISABLED".to_owned());
        });
    });
    let error = stage.bench.ask(newcomer(1), 3).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(stage.posts(), [] as [Value; 0], "no swap");
}

/// What is asked of Placement for a request that needs victims, without the identifiers, until the
/// first notice: no other request follows it here.
async fn questions_of_a_preemption(others: bool) -> Vec<String> {
    let mut stage = Stage::new().await;
    stage.bench.selector.facts.others.set_in_services(others);
    let mut agent = stage.take_agent();
    let before = stage.bench.placement.seen().len();
    let leaving = async {
        let notice = agent.notice().await;
        let seen = stage.bench.placement.seen();
        agent.gone(&notice).await;
        leave(&mut agent, 1).await;
        seen
    };
    let (answer, seen) = tokio::join!(stage.bench.ask(newcomer(1), 3), leaving);
    answer.unwrap();
    let asked = seen[before..].iter().map(|seen| {
        let path = seen.what.split('?').next().unwrap_or_default();
        path.replace(&host(1).to_string(), "HOST")
    });
    let mut asked: Vec<String> = asked.collect();
    asked.sort_unstable();
    asked
}

#[tokio::test]
async fn a_request_that_needs_victims_asks_three_questions_and_beside_others_five() {
    const ALONE: [&str; 3] = [
        "GET /allocation_candidates",
        "GET /resource_providers/HOST/allocations",
        "POST /allocations",
    ];
    assert_eq!(questions_of_a_preemption(false).await, ALONE);
    let with_others = questions_of_a_preemption(true).await;
    let (inventories, usages) = (
        "GET /resource_providers/HOST/inventories",
        "GET /resource_providers/HOST/usages",
    );
    assert_eq!(
        with_others,
        [ALONE[0], ALONE[1], inventories, usages, ALONE[2]]
    );
}
