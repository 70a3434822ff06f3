//! Others write at the same time: other schedulers, and computes that change what a host is.

use super::{Bench, LONG, host, newcomer, other_claims};
use ebbtide_placement_model::{Model, ScriptedStep, TransportFault};
use uuid::Uuid;

const CLAIM: &str = "PUT /allocations/";

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

#[tokio::test]
async fn a_claim_on_a_host_that_loses_a_trait_meanwhile_is_given_back() {
    // The scheduler looks after its claim; where another writer was seen, before it, too.
    for others_were_seen in [false, true] {
        let bench = Bench::of_hosts(1).await;
        if others_were_seen {
            bench.selector.facts.providers.note_other_writer();
        }
        // Between the look and the claim.
        let lose = ScriptedStep::Before(Box::new(lose_a_trait));
        bench.placement.once(CLAIM, lose);
        let error = bench.ask(newcomer(1), 1).await.unwrap_err();
        assert_eq!(error.class, "NoValidHost");
        assert_eq!(bench.holds(newcomer(1)), [], "{others_were_seen}");
    }
}

#[tokio::test]
async fn a_trait_that_is_seen_to_go_while_a_claim_waits_counts() {
    let bench = Bench::of_hosts(1).await;
    let providers = &bench.selector.facts.providers;
    // Another claim of this scheduler on that host is under way.
    let turn = providers.lock_for_look(host(1)).await;
    let meanwhile = async {
        let decided = async {
            while providers.writes_at_rest(host(1)).is_some() {
                tokio::task::yield_now().await;
            }
        };
        let decided = tokio::time::timeout(LONG, decided).await;
        decided.expect("the request decides");
        bench.placement.model(lose_a_trait);
        // The reader of changed providers: from now on the new generation is the known one.
        providers.refresh(host(1)).await.unwrap();
        drop(turn);
    };
    let (answer, ()) = tokio::join!(bench.ask(newcomer(1), 1), meanwhile);
    assert_eq!(answer.unwrap_err().class, "NoValidHost");
    assert_eq!(bench.placement.asked(CLAIM), 1, "it was claimed");
    assert_eq!(bench.holds(newcomer(1)), [], "and given back");
}

#[tokio::test]
async fn a_provider_that_was_made_again_is_not_taken_for_the_known_one() {
    for others_were_seen in [false, true] {
        let bench = Bench::of_hosts(1).await;
        for n in 1..=3 {
            bench.ask(newcomer(n), 1).await.unwrap();
        }
        if others_were_seen {
            bench.selector.facts.providers.note_other_writer();
        }
        bench.placement.model(lose_a_trait);
        // Its generations begin anew, below the known one.
        let again = |provider: &mut ebbtide_placement_model::Provider| provider.generation = 0;
        let model = &bench.placement;
        model.model(|model| model.change_provider(host(1), again));
        let error = bench.ask(newcomer(4), 1).await.unwrap_err();
        assert_eq!(error.class, "NoValidHost");
        assert_eq!(bench.used(1), 3, "{others_were_seen}");
    }
}

/// What can happen to a host between two looks at it.
#[derive(Debug, Clone, Copy)]
enum Event {
    OwnClaim,
    OwnClaimUnheard,
    OwnClaimMet,
    OtherClaim,
    TraitGone,
    TraitBack,
    Refresh,
}

const EVENTS: [Event; 7] = [
    Event::OwnClaim,
    Event::OwnClaimUnheard,
    Event::OwnClaimMet,
    Event::OtherClaim,
    Event::TraitGone,
    Event::TraitBack,
    Event::Refresh,
];

async fn happens(bench: &Bench, event: Event, n: u128) {
    let other = move |model: &mut Model| {
        assert_eq!(other_claims(model, others(n), host(1), 1), 204);
    };
    let step = match event {
        Event::OwnClaimUnheard => Some(ScriptedStep::Fault(TransportFault::AnswerLost)),
        Event::OwnClaimMet => Some(ScriptedStep::During(Box::new(other))),
        _ => None,
    };
    match event {
        Event::OwnClaim | Event::OwnClaimUnheard | Event::OwnClaimMet => {
            if let Some(step) = step {
                bench.placement.once(CLAIM, step);
            }
            // It gets the host, or none while the trait is gone.
            let _ = bench.ask(newcomer(n), 1).await;
            bench.placement.mend();
        }
        Event::OtherClaim => bench.placement.model(other),
        Event::TraitGone => bench.placement.model(lose_a_trait),
        Event::TraitBack => bench.placement.model(|model| {
            model.change_provider(host(1), |provider| provider.traits.clear());
        }),
        Event::Refresh => {
            let providers = &bench.selector.facts.providers;
            providers.refresh(host(1)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_known_generation_never_runs_ahead_after_three_events_in_any_order() {
    let bench = Bench::of_hosts(1).await;
    let orders = EVENTS.iter().flat_map(|first| {
        let second = EVENTS
            .iter()
            .flat_map(|second| EVENTS.map(|third| (*second, third)));
        second.map(|(second, third)| [*first, second, third])
    });
    let mut n = 0;
    for order in orders {
        for event in order {
            n += 1;
            happens(&bench, event, n).await;
            let known = bench.selector.facts.providers.known_generation(host(1));
            let now = generation(&bench);
            assert!(known <= Some(now), "after {order:?} {known:?} of {now}");
            assert!(!matches!(event, Event::Refresh) || known == Some(now));
        }
        // Room for the next ones.
        for n in n - 2..=n {
            bench.placement.model(|model| model.forget(newcomer(n)));
            bench.placement.model(|model| model.forget(others(n)));
            bench.selector.facts.providers.released(newcomer(n));
        }
        bench
            .selector
            .facts
            .providers
            .refresh(host(1))
            .await
            .unwrap();
    }
    assert_eq!(n, 3 * 7 * 7 * 7);
}
