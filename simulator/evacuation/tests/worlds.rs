//! Tests of the simulator, and with it of everything that it drives.

#![allow(
    clippy::expect_used,
    reason = "a helper of tests that cannot go on fails"
)]

use ebbtide_evacuation_simulator::cheapest::{Candidate, cheapest, cheapest_of_all, cost};
use ebbtide_evacuation_simulator::{
    DEFAULT_STEPS, EvacuationCounts, FaultCounts, LIFETIMES_FROM, MARKETS_FROM, Mutation,
    Simulator, StepPositions, WorldKind, parse_regressions, script,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// In every run of the tests.
const SEEDS: u64 = 1000;
/// A broken rule is found within so many seeds.
const FOUND_WITHIN: u64 = 1000;

fn simulator() -> Simulator {
    Simulator::new().expect("the engine's defaults are right")
}

/// Seeds on two threads; fails with the story of the first that breaks a promise.
fn run_all(world: WorldKind, from: u64) -> (EvacuationCounts, FaultCounts) {
    let simulator = simulator();
    let next = AtomicU64::new(from);
    let sum = Mutex::new((EvacuationCounts::default(), FaultCounts::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + SEEDS {
                        return;
                    }
                    let outcome = simulator.run(world, seed, DEFAULT_STEPS);
                    if outcome.violation.is_some() {
                        fail(&simulator, world, seed);
                    }
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.0.merge(outcome.ends);
                    sum.1.merge(&outcome.faults);
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn fail(simulator: &Simulator, world: WorldKind, seed: u64) -> ! {
    let shrunk = simulator
        .shrink(world, seed, DEFAULT_STEPS)
        .expect("it fails again");
    panic!(
        "{}\n{:?}\nfor regressions.txt: {} {seed} {DEFAULT_STEPS} {}",
        shrunk.outcome.event_log.join("\n"),
        shrunk.outcome.violation,
        world.as_str(),
        shrunk.places
    );
}

#[test]
fn a_thousand_seeds_of_a_standalone_region_break_no_promise() {
    let (ends, faults) = run_all(WorldKind::Region, 0);
    // A world in which nothing happens proves nothing.
    assert!(
        ends.evacuated > 1000 && ends.spared > 300 && ends.failed > 200 && ends.resumed > 500,
        "{ends:?}"
    );
    assert!(ends.moved > 250, "{ends:?}");
    assert!(ends.reclaimed > 100, "{ends:?}");
    assert!(faults.total() > 20_000, "{faults:?}");
}

#[test]
fn a_thousand_seeds_with_maximum_lifetimes_break_no_promise() {
    let (ends, _) = run_all(WorldKind::Region, LIFETIMES_FROM);
    assert!(ends.expired > 300 && ends.evacuated > 1000, "{ends:?}");
}

#[test]
fn a_thousand_seeds_with_a_market_break_no_promise() {
    let (ends, _) = run_all(WorldKind::Region, MARKETS_FROM);
    assert!(
        ends.outbid > 1000 && ends.spared > 100 && ends.resumed > 500,
        "{ends:?}"
    );
}

#[test]
fn a_thousand_seeds_of_the_nova_service_break_no_promise() {
    let (ends, faults) = run_all(WorldKind::Nova, 0);
    assert!(
        ends.evacuated > 1000 && ends.spared > 50 && ends.failed > 200,
        "{ends:?}"
    );
    assert!(ends.reclaimed > 100, "{ends:?}");
    assert!(faults.total() > 20_000, "{faults:?}");
}

#[test]
fn a_thousand_seeds_of_the_nova_service_with_maximum_lifetimes_break_no_promise() {
    let (ends, faults) = run_all(WorldKind::Nova, LIFETIMES_FROM);
    assert!(ends.expired > 300 && ends.evacuated > 1000, "{ends:?}");
    assert!(faults.total() > 20_000, "{faults:?}");
}

#[test]
fn every_kind_of_fault_happens() {
    let simulator = simulator();
    let mut faults = FaultCounts::default();
    for world in WorldKind::ALL {
        for seed in 0..60 {
            faults.merge(&simulator.run(world, seed, DEFAULT_STEPS).faults);
        }
    }
    for (fault, count) in faults.iter() {
        assert!(count > 0, "{} never happens", fault.as_str());
    }
}

#[test]
fn every_rule_that_is_broken_on_purpose_is_found() {
    for mutation in Mutation::ALL {
        let simulator = simulator().breaking(*mutation);
        let first = mutation.first_seed();
        let found = (first..first + FOUND_WITHIN).find(|seed| {
            let outcome = simulator.run(mutation.world(), *seed, DEFAULT_STEPS);
            outcome.violation.is_some()
        });
        assert!(
            found.is_some(),
            "{} breaks no promise in {FOUND_WITHIN} seeds",
            mutation.as_str()
        );
    }
}

#[test]
fn at_least_ten_rules_can_be_broken() {
    assert!(Mutation::ALL.len() >= 10);
    for mutation in Mutation::ALL {
        assert_eq!(mutation.as_str().parse(), Ok(*mutation));
    }
    let error = "no-such-rule".parse::<Mutation>().unwrap_err();
    assert!(error.contains("notice-before-commit"), "{error}");
}

#[test]
fn worlds_that_failed_once_do_not_fail_again() {
    let all = parse_regressions(include_str!("../regressions.txt")).expect("the file can be read");
    assert!(!all.is_empty());
    let simulator = simulator();
    for regression in all {
        let (world, seed) = (regression.world, regression.seed);
        let outcome = if regression.places.0.is_empty() {
            simulator.run(world, seed, regression.steps)
        } else {
            simulator.replay(world, seed, regression.steps, &regression.places)
        };
        assert_eq!(
            outcome.violation,
            None,
            "{regression:?}\n{}",
            outcome.event_log.join("\n")
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_story() {
    let simulator = simulator();
    for world in WorldKind::ALL {
        for seed in 0..5 {
            let digest = |seed| simulator.run(world, seed, 200).digest;
            assert_eq!(digest(seed), digest(seed));
            assert_ne!(digest(seed), digest(seed + 100));
        }
    }
}

#[test]
fn a_failing_world_is_made_small_and_can_be_played_again() {
    let mutation = Mutation::SpareIgnored;
    let simulator = simulator().breaking(mutation);
    let world = mutation.world();
    let seed = (0..FOUND_WITHIN)
        .find(|seed| simulator.run(world, *seed, 200).violation.is_some())
        .expect("it is found");
    let shrunk = simulator.shrink(world, seed, 200).expect("it fails");
    assert!(shrunk.places.0.len() < 30, "{}", shrunk.places);
    let again = simulator.replay(world, seed, 200, &shrunk.places);
    assert_eq!(again.violation, shrunk.outcome.violation);
    assert_eq!(again.event_log, shrunk.outcome.event_log);
    let told = again.event_log.join("\n");
    assert!(told.contains("may stay after all"), "{told}");
    // Nothing of what is left can be left out.
    for n in 0..shrunk.places.0.len() {
        let mut fewer = shrunk.places.clone();
        fewer.0.remove(n);
        let outcome = simulator.replay(world, seed, 200, &fewer);
        let same = outcome.violation.map(|v| v.promise);
        assert_ne!(same, again.violation.as_ref().map(|v| v.promise), "{fewer}");
    }
}

#[test]
fn places_are_written_and_read_in_runs() {
    let places: StepPositions = "9, 0-3,7".parse().expect("they can be read");
    assert_eq!(places.0, [0, 1, 2, 3, 7, 9]);
    let often = "0-999999,".repeat(10_000);
    assert!(often.parse::<StepPositions>().is_err(), "80 GB of places");
    assert_eq!(places.to_string(), "0-3,7,9");
    assert_eq!("".parse(), Ok(StepPositions::default()));
    for wrong in ["x", "3-1", "-4", "1-99999999999", "1000000"] {
        assert!(wrong.parse::<StepPositions>().is_err(), "{wrong}");
    }
}

#[test]
fn a_longer_script_begins_like_a_shorter_one() {
    let (short, long) = (script(7, 50), script(7, 60));
    assert_eq!(short, long[..50]);
}

#[test]
fn a_line_of_regressions_that_cannot_be_read_is_named() {
    for (text, what) in [
        ("region 1", "line 1: write WORLD SEED STEPS"),
        ("# nothing\nmoon 1 2", "line 2: there is no world"),
        ("region x 2", "line 1: \"x\" is not a number"),
        ("region 1 2 5-3", "line 1: \"5-3\" runs backwards"),
    ] {
        let error = parse_regressions(text).unwrap_err();
        assert!(error.starts_with(what), "{error}");
    }
}

#[test]
fn the_cheapest_of_all_sets_is_found() {
    let of = |frees, cost| Candidate { frees, cost };
    let host = vec![of(1, 5.0), of(2, 7.0), of(4, 11.0)];
    assert_eq!(cheapest(&host, 0), Some(0.0));
    assert_eq!(cheapest(&host, 3), Some(11.0), "one of 4 before 1 and 2");
    assert_eq!(cheapest(&host, 7), Some(23.0));
    assert_eq!(cheapest(&host, 8), None);
    let hosts = [(0, host), (1, vec![of(1, 1.0)])];
    assert_eq!(cheapest_of_all(&hosts, 1, 2), Some(1.0));
    assert_eq!(cheapest_of_all(&hosts, 2, 2), Some(8.0));
    assert_eq!(cheapest_of_all(&hosts, 9, 2), None);
    assert_eq!(cost(3_660_500), 60.5);
}
