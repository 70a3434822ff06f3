//! Others write at the same time: other schedulers, and computes that change what a host is.

use super::{Bench, host, newcomer, other_claims};
use ebbtide_placement_model::{Model, ScriptedStep};
use uuid::Uuid;

fn generation(bench: &Bench) -> i64 {
    let known = bench
        .placement
        .model(|model| model.provider(host(1)).unwrap().generation);
    i64::try_from(known).unwrap()
}

fn lose_a_trait(model: &mut Model) {
    model.change_provider(host(1), |provider| {
        provider.traits.insert("COMPUTE_STATUS_DISABLED".to_owned());
    });
}

fn others(n: u128) -> Uuid {
    newcomer(1000 + n)
}

#[tokio::test]
async fn two_schedulers_whose_claims_meet_do_not_overfill_a_host() {
    let bench = Bench::of_hosts(1).await;
    let other = |model: &mut Model| assert_eq!(other_claims(model, others(1), host(1), 5), 204);
    bench
        .placement
        .once("PUT /allocations/", ScriptedStep::During(Box::new(other)));
    let error = bench.ask(newcomer(1), 5).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.holds(newcomer(1)), [], "given back");
    assert_eq!(
        bench.holds(others(1)),
        [(host(1), 5)],
        "the other one's stays"
    );
    assert!(
        bench
            .placement
            .model(|model| model.over_capacity())
            .is_empty()
    );
}

#[tokio::test]
async fn claims_that_meet_and_fit_both_stay() {
    let bench = Bench::of_hosts(1).await;
    let other = |model: &mut Model| assert_eq!(other_claims(model, others(1), host(1), 3), 204);
    bench
        .placement
        .once("PUT /allocations/", ScriptedStep::During(Box::new(other)));
    bench.ask(newcomer(1), 5).await.unwrap();
    assert_eq!(bench.used(1), 8);
}

#[tokio::test]
async fn a_host_that_changes_while_a_claim_of_ours_is_written_is_not_taken_for_as_known() {
    let bench = Bench::of_hosts(1).await;
    let providers = &bench.selector.facts.providers;
    // Another request's claim is under way, and has not raised the generation yet.
    let writing = providers.begin_write(host(1));
    bench.placement.model(lose_a_trait);
    let error = bench.ask(newcomer(1), 1).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(
        bench.used(1),
        0,
        "nothing is placed on a host that is disabled"
    );
    drop(writing);
}

#[tokio::test]
async fn a_claim_that_a_refresh_has_seen_is_not_counted_again() {
    let bench = Bench::of_hosts(1).await;
    let facts = &bench.selector.facts;
    bench.ask(newcomer(1), 1).await.unwrap();
    assert_eq!(
        facts.providers.known_generation(host(1)),
        Some(generation(&bench)),
        "counted once"
    );
    // A refresh comes between a claim and its being counted.
    let readings = facts.read(|cloud| cloud.provider_readings(host(1)));
    let status = bench
        .placement
        .model(|model| other_claims(model, others(1), host(1), 1));
    assert_eq!(status, 204);
    facts.providers.refresh(host(1)).await.unwrap();
    facts.write(|cloud| cloud.own_write(host(1), readings));
    assert_eq!(
        facts.providers.known_generation(host(1)),
        Some(generation(&bench))
    );
    // So the next change of another process is seen.
    bench.placement.model(lose_a_trait);
    let error = bench.ask(newcomer(2), 1).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
}

#[tokio::test]
async fn a_host_that_was_disabled_since_it_was_read_gets_nothing() {
    let bench = Bench::of_hosts(2).await;
    bench.placement.model(lose_a_trait);
    for n in 1..=4 {
        bench.ask(newcomer(n), 2).await.unwrap();
    }
    assert_eq!((bench.used(1), bench.used(2)), (0, 8));
}
