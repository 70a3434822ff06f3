//! A request that finds room: what is claimed, and what is left when something goes wrong.

use super::{Bench, host, newcomer, other_claims, place};
use ebbtide_placement_model::{ScriptedStep, TransportFault};
use std::collections::BTreeMap;

#[tokio::test]
async fn an_answered_instance_holds_what_it_asked_for_where_it_was_placed_and_nowhere_else() {
    let bench = Bench::of_hosts(2).await;
    let answer = bench.ask(newcomer(1), 3).await.unwrap();
    let on = if place(&answer) == "compute1" {
        host(1)
    } else {
        host(2)
    };
    assert_eq!(bench.holds(newcomer(1)), [(on, 3)]);
    let owner = bench
        .placement
        .model(|model| model.consumer(newcomer(1)).cloned())
        .unwrap();
    assert_eq!(owner.project_id, "806f9478362a4a8684a7e275e6ca3b4f");
    assert_eq!(bench.placement.asked("PUT /allocations/"), 1);
}

#[tokio::test]
async fn a_claim_that_placement_refuses_is_not_an_answer() {
    let bench = Bench::of_hosts(1).await;
    // Another process takes the host between our look and our claim.
    let full = |model: &mut ebbtide_placement_model::Model| {
        assert_eq!(other_claims(model, newcomer(9), host(1), 8), 204);
    };
    bench
        .placement
        .once("PUT /allocations/", ScriptedStep::Before(Box::new(full)));
    let error = bench.ask(newcomer(1), 3).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.holds(newcomer(1)), []);
    assert_eq!(bench.used(1), 8);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_and_not_made_again() {
    let bench = Bench::of_hosts(2).await;
    bench.placement.once(
        "PUT /allocations/",
        ScriptedStep::Fault(TransportFault::AnswerLost),
    );
    bench.ask(newcomer(1), 3).await.unwrap();
    assert_eq!(bench.holds(newcomer(1)).len(), 1);
    assert_eq!(bench.used(1) + bench.used(2), 3);
    assert_eq!(bench.placement.asked("PUT /allocations/"), 1);
}

#[tokio::test]
async fn a_claim_that_may_have_been_taken_does_not_stay_beside_the_next_one() {
    let bench = Bench::of_hosts(2).await;
    // Taken, but neither that nor what the instance holds is heard of until patience ends.
    bench.placement.once(
        "PUT /allocations/",
        ScriptedStep::Fault(TransportFault::AnswerLost),
    );
    let asks = format!("GET /allocations/{}", newcomer(1));
    bench.placement.plan(
        "PUT /allocations/",
        0,
        3,
        ScriptedStep::Fault(TransportFault::Silence),
    );
    bench
        .placement
        .plan(&asks, 0, 4, ScriptedStep::Fault(TransportFault::Silence));
    let answer = bench.ask(newcomer(1), 3).await;
    let held = bench.holds(newcomer(1));
    match answer {
        Ok(_) => assert_eq!(held.len(), 1, "{held:?}"),
        Err(_) => assert_eq!(held, [], "it got no place and holds nothing"),
    }
    assert!(bench.used(1) + bench.used(2) <= 3);
}

#[tokio::test]
async fn a_claim_that_lands_after_its_request_got_no_host_is_taken_back() {
    let bench = Bench::of_hosts(1).await;
    // Placement is slow: the client gives up, and then Placement is away for as long as is waited.
    let (claim, late) = ("PUT /allocations/", TransportFault::Late);
    bench.placement.once(claim, ScriptedStep::Fault(late));
    let silence = || ScriptedStep::Fault(TransportFault::NotHeard);
    bench.placement.plan(claim, 1, u32::MAX, silence());
    let error = bench.ask(newcomer(1), 3).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.holds(newcomer(1)), []);
    bench.placement.mend();
    assert_eq!(bench.placement.land_late(), [204]);
    assert_eq!(bench.holds(newcomer(1)), [(host(1), 3)], "it came late");
    let facts = &bench.selector.facts;
    // Nova's conductor has not heard yet that there is no host, and may be asking again.
    facts.take_back_late_claims().await;
    assert_eq!(bench.holds(newcomer(1)), [(host(1), 3)]);
    bench.forget_expected(newcomer(1)).await;
    facts.take_back_late_claims().await;
    assert_eq!(bench.holds(newcomer(1)), [], "taken back");
    assert!(facts.read(|cloud| cloud.consumer(newcomer(1)).is_none()));
}

#[tokio::test]
async fn a_claim_that_lands_after_the_next_one_is_refused() {
    let bench = Bench::of_hosts(2).await;
    let late = ScriptedStep::Fault(TransportFault::Late);
    bench.placement.once("PUT /allocations/", late);
    bench.ask(newcomer(1), 3).await.unwrap();
    let held = bench.holds(newcomer(1));
    assert_eq!(held.len(), 1);
    assert_eq!(bench.placement.land_late(), [409]);
    assert_eq!(bench.holds(newcomer(1)), held);
}

#[tokio::test]
async fn a_request_that_comes_again_replaces_what_was_claimed_for_it_and_does_not_add_to_it() {
    let bench = Bench::of_hosts(2).await;
    bench.ask(newcomer(1), 2).await.unwrap();
    // The scheduler died before it answered; the other host is the better one now.
    let (on, _) = bench.holds(newcomer(1))[0];
    let status = bench
        .placement
        .model(|model| other_claims(model, newcomer(9), on, 6));
    assert_eq!(status, 204);
    bench.look().await;
    let answer = bench.ask_as(newcomer(1), 2, true).await.unwrap();
    let held = bench.holds(newcomer(1));
    assert_eq!(held.len(), 1, "{held:?}");
    let placed = BTreeMap::from([("compute1", host(1)), ("compute2", host(2))]);
    assert_eq!(held[0].0, placed[place(&answer).as_str()]);
}

#[tokio::test]
async fn a_request_that_nothing_is_left_for_holds_nothing() {
    let bench = Bench::of_hosts(1).await;
    bench.placement.always(
        "PUT /allocations/",
        ScriptedStep::Fault(TransportFault::Refused(409)),
    );
    let error = bench.ask(newcomer(1), 3).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.used(1), 0);
    assert!(
        bench.placement.asked("PUT /allocations/") > 0,
        "it was tried"
    );
}

/// How often the generation of a host was asked for, and nothing else of it.
fn looks(bench: &Bench) -> usize {
    let seen = bench.placement.seen();
    let is_look = |what: &str| {
        let path = what.strip_prefix("GET /resource_providers/");
        path.is_some_and(|path| !path.is_empty() && !path.contains(['/', '?']))
    };
    seen.iter().filter(|seen| is_look(&seen.what)).count()
}

#[tokio::test]
async fn an_ordinary_request_asks_placement_for_a_claim_and_for_one_look_after_it() {
    let bench = Bench::of_hosts(3).await;
    bench.look().await;
    let before = bench.placement.seen().len();
    bench.ask(newcomer(1), 3).await.unwrap();
    let seen = bench.placement.seen();
    let asked: Vec<&str> = seen[before..].iter().map(|seen| &*seen.what).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].starts_with("PUT /allocations/"), "{asked:?}");
    assert_eq!(looks(&bench), 1, "{asked:?}");
}

#[tokio::test]
async fn a_claim_on_a_host_that_had_changed_is_given_back_and_decided_again() {
    let bench = Bench::of_hosts(2).await;
    bench.look().await;
    for n in 1..=2 {
        let status = bench
            .placement
            .model(|model| other_claims(model, newcomer(90 + n), host(n as i64), 1));
        assert_eq!(status, 204);
    }
    bench.ask(newcomer(1), 3).await.unwrap();
    assert_eq!(bench.holds(newcomer(1)).len(), 1);
    assert_eq!(bench.used(1) + bench.used(2), 1 + 1 + 3);
    assert_eq!(bench.placement.asked("PUT /allocations/"), 2);
    // Where another writer was seen, the next request looks before its claim, and after it.
    let before = looks(&bench);
    bench.ask(newcomer(2), 3).await.unwrap();
    assert!(looks(&bench) >= before + 2);
    assert_eq!(bench.holds(newcomer(2)).len(), 1);
}

#[tokio::test]
async fn a_claim_that_another_writer_meets_is_given_back() {
    let bench = Bench::of_hosts(1).await;
    bench.look().await;
    // Between the claim and the look after it.
    let other = |model: &mut ebbtide_placement_model::Model| {
        assert_eq!(other_claims(model, newcomer(9), host(1), 1), 204);
    };
    bench
        .placement
        .once("PUT /allocations/", ScriptedStep::After(Box::new(other)));
    bench.ask(newcomer(1), 3).await.unwrap();
    assert_eq!(bench.holds(newcomer(1)), [(host(1), 3)]);
    assert_eq!(bench.used(1), 4);
    assert!(bench.placement.asked("PUT /allocations/") >= 2);
}
