//! The small core of an evacuation, explored whole: a claim, its notices and spares, two
//! schedulers, one agent.
//!
//! The record of the preemption and the mind of the agent are the real ones; what is around them
//! (ledger, Placement, broker, hypervisor, caller) is as small as it can be. Every order of steps
//! is tried, with every crash between an effect and its being written down, up to the bounds of
//! each test. `simulator/evacuation` samples much larger worlds.

mod agent;
mod properties;
mod scheduler;
mod world;

use stateright::{Checker, HasDiscoveries, Model};
use world::{Bounds, BrokenInvariant, Small};

/// Explores everything and tells how much that was.
#[allow(
    clippy::print_stderr,
    reason = "how much was explored is what a reader of the test wants to know"
)]
fn explore(model: Small) -> impl Checker<Small> {
    let (bounds, broken) = (model.bounds, model.broken);
    let ends = match broken {
        Some(_) => HasDiscoveries::AnyFailures,
        None => HasDiscoveries::All,
    };
    let checker = model
        .checker()
        .threads(2)
        .finish_when(ends)
        .spawn_bfs()
        .join();
    eprintln!(
        "{bounds:?} {broken:?}: {} states, {} of them different, {} steps deep",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    );
    checker
}

/// Every step can be interrupted once, or anything else can go wrong once.
const ONE_FAULT: Bounds = Bounds {
    seconds: 3,
    faults: 1,
    deliveries: 1,
    at_once: false,
    deletes: false,
};

#[test]
fn no_promise_is_broken_whatever_goes_wrong_once() {
    explore(Small::new(ONE_FAULT)).assert_properties();
}

#[test]
fn no_promise_is_broken_when_messages_come_twice() {
    let bounds = Bounds {
        faults: 0,
        deliveries: 2,
        ..ONE_FAULT
    };
    explore(Small::new(bounds)).assert_properties();
}

#[test]
fn no_promise_is_broken_when_the_answer_goes_at_once() {
    let bounds = Bounds {
        at_once: true,
        ..ONE_FAULT
    };
    explore(Small::new(bounds)).assert_properties();
}

#[test]
#[ignore = "minutes: cargo test -p ebbtide-evacuation-simulator --test exhaustive -- --ignored --nocapture"]
fn no_promise_is_broken_whatever_goes_wrong_twice() {
    let bounds = Bounds {
        faults: 2,
        ..ONE_FAULT
    };
    explore(Small::new(bounds)).assert_properties();
}

#[test]
fn a_newcomer_that_is_deleted_at_any_moment_leaves_no_victim_without_its_allocations() {
    for at_once in [false, true] {
        let bounds = Bounds {
            at_once,
            deletes: true,
            ..ONE_FAULT
        };
        explore(Small::new(bounds)).assert_properties();
    }
}

#[test]
fn every_broken_rule_is_found() {
    for broken in BrokenInvariant::ALL {
        let model = Small {
            broken: Some(broken),
            ..Small::new(Bounds {
                // Nothing is lost by it where the caller waits for the room.
                at_once: broken == BrokenInvariant::AnswerUnwritten,
                ..ONE_FAULT
            })
        };
        let found = explore(model).discoveries();
        assert!(
            !found.is_empty(),
            "{broken:?} breaks no promise that is looked at"
        );
    }
}
