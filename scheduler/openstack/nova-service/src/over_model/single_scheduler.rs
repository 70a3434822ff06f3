//! The only scheduler of a cloud: its look at a host runs beside the claim.

use super::full_host::open_ledger;
use super::{Bench, host, newcomer, other_claims};
use crate::evacuate::{Evacuations, PreemptionDriver};
use crate::metrics::Metrics;
use crate::preemption::PreemptionPolicy;
use ebbtide_bus::{InProcessBroker, QueuePrefix};
use ebbtide_placement_model::{Model, ScriptedStep};
use ebbtide_store::ledger::Ledger;
use std::sync::Arc;

/// A scheduler with a ledger, and no other scheduler in Nova's database.
async fn alone(hosts: i64) -> (Bench, Ledger) {
    let mut bench = Bench::of_hosts(hosts).await;
    let url = format!("sqlite:{}", bench.file("ledger.db").display());
    let (ledger, own) = (open_ledger(&url).await, open_ledger(&url).await);
    let owner = own.register("scheduler-1").await.unwrap();
    let evacuations = Evacuations::new(
        bench.selector.facts.clone(),
        own,
        owner,
        Arc::new(InProcessBroker::new().connect()),
        QueuePrefix::new("ebbtide").unwrap(),
        PreemptionPolicy::default(),
        bench.tasks.clone(),
        Metrics::default(),
    );
    bench.selector.preempting = PreemptionDriver::ready(evacuations);
    bench.selector.facts.others.set_in_services(false);
    bench.look().await;
    (bench, ledger)
}

/// What one request asks of Placement: `look` and `claim`, in their order.
async fn questions(bench: &Bench, instance: u128) -> Vec<&'static str> {
    let before = bench.placement.seen().len();
    bench.ask(newcomer(instance), 1).await.unwrap();
    let seen = bench.placement.seen();
    let asked = seen[before..].iter();
    asked
        .map(|seen| match seen.what.starts_with("PUT /allocations/") {
            true => "claim",
            false if seen.what.starts_with("GET /resource_providers/") => "look",
            false => panic!("{}", seen.what),
        })
        .collect()
}

fn take_five(model: &mut Model) {
    assert_eq!(other_claims(model, newcomer(1000), host(1), 5), 204);
}

#[tokio::test]
async fn it_looks_beside_its_claim_until_another_scheduler_registers() {
    let (bench, ledger) = alone(2).await;
    assert_eq!(questions(&bench, 1).await, ["look", "claim"]);
    ledger.register("scheduler-2").await.unwrap();
    assert_eq!(questions(&bench, 2).await, ["claim", "look"]);
}

#[tokio::test]
async fn a_look_that_sees_the_claim_is_repeated_after_it() {
    let (bench, _ledger) = alone(1).await;
    // The look finds the generation that the claim is about to make: each change adds one.
    let raise = |model: &mut Model| model.change_provider(host(1), |_| ());
    let lower = |model: &mut Model| {
        model.change_provider(host(1), |provider| provider.generation -= 2);
    };
    let (look, claim) = ("GET /resource_providers/", "PUT /allocations/");
    bench
        .placement
        .once(look, ScriptedStep::Before(Box::new(raise)));
    bench
        .placement
        .once(claim, ScriptedStep::Before(Box::new(lower)));
    assert_eq!(questions(&bench, 1).await, ["look", "claim", "look"]);
    assert_eq!(bench.used(1), 1, "the claim stays");
}

#[tokio::test]
async fn a_host_that_changed_since_it_was_read_gets_nothing() {
    let (bench, _ledger) = alone(1).await;
    bench.placement.model(|model| {
        model.change_provider(host(1), |provider| {
            provider.traits.insert("COMPUTE_STATUS_DISABLED".to_owned());
        });
    });
    let error = bench.ask(newcomer(1), 1).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.used(1), 0, "the claim was given back");
}

#[tokio::test]
async fn a_scheduler_that_starts_during_the_claim_is_looked_for_after_it() {
    let (bench, _ledger) = alone(1).await;
    let others = Arc::clone(&bench.selector.facts.others);
    let meets = move |model: &mut Model| {
        others.set_in_services(true);
        take_five(model);
    };
    bench
        .placement
        .once("PUT /allocations/", ScriptedStep::During(Box::new(meets)));
    let error = bench.ask(newcomer(1), 5).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.used(1), 5, "only the other scheduler's claim stays");
}

#[tokio::test]
async fn two_registered_schedulers_whose_claims_meet_do_not_overfill_a_host() {
    let (bench, ledger) = alone(1).await;
    ledger.register("scheduler-2").await.unwrap();
    bench.placement.once(
        "PUT /allocations/",
        ScriptedStep::During(Box::new(take_five)),
    );
    let error = bench.ask(newcomer(1), 5).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.used(1), 5);
}

#[tokio::test]
async fn a_trait_that_goes_between_look_and_claim_counts_from_the_next_request_on() {
    let (bench, _ledger) = alone(1).await;
    let lose = |model: &mut Model| {
        model.change_provider(host(1), |provider| {
            provider.traits.insert("COMPUTE_STATUS_DISABLED".to_owned());
        });
    };
    let claim = "PUT /allocations/";
    bench
        .placement
        .once(claim, ScriptedStep::Before(Box::new(lose)));
    // No answer shows whether the trait went before the claim or right after it.
    bench.ask(newcomer(1), 1).await.unwrap();
    let error = bench.ask(newcomer(2), 1).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    assert_eq!(bench.used(1), 1);
}
