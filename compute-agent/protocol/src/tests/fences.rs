//! Victims that do not end, with and without a fence.

use super::cases::{settle, types};
use super::world::{Fate, SimulatedHost};
use crate::{AgentPolicy, DriverCall};
use ebbtide_model::InterruptionBehaviour::{self, Hibernate, Terminate};
use ebbtide_model::message::{Body, EvacuationEnd};

fn world(fence_tries: u32) -> SimulatedHost {
    SimulatedHost::new(AgentPolicy {
        fence_tries,
        ..AgentPolicy::default()
    })
}

/// A victim whose grace period is over, and whom the driver fails to end.
fn unending(w: &mut SimulatedHost, behaviour: InterruptionBehaviour) {
    w.notice_with(0, 0, behaviour, 1);
    settle(w);
    w.advance(30_000);
    for _ in 0..3 {
        w.complete(0, Fate::Fails);
        w.advance(60_000);
    }
    // The last look: it is still there.
    w.complete(0, Fate::Works);
}

fn fences(w: &SimulatedHost) -> bool {
    w.calls.values().any(|(_, what)| *what == DriverCall::Fence)
}

fn reason(w: &SimulatedHost) -> String {
    w.reports
        .iter()
        .find_map(|m| match &m.body {
            Body::EvacuationFailed(m) => Some(m.reason.clone()),
            _ => None,
        })
        .expect("a failure was reported")
}

#[test]
fn a_victim_that_cannot_be_terminated_is_fenced_and_reported_when_its_room_is_free() {
    let mut w = world(3);
    unending(&mut w, Terminate);
    assert!(fences(&w));
    w.complete(0, Fate::Works);
    assert_eq!(
        types(&w),
        ["evacuation.draining"],
        "the fence's word alone is nothing"
    );
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Fenced));
    assert!(w.unsettled.is_empty());
}

#[test]
fn without_a_fence_it_stays_and_that_is_reported() {
    let mut w = world(0);
    unending(&mut w, Terminate);
    assert!(!fences(&w));
    w.come_to_rest().unwrap();
    assert!(reason(&w).starts_with("after 3 tries:"), "{}", reason(&w));
}

#[test]
fn what_a_tenant_wants_kept_is_never_fenced() {
    let mut w = world(3);
    unending(&mut w, Hibernate);
    assert!(!fences(&w));
    w.come_to_rest().unwrap();
    assert!(reason(&w).starts_with("after 3 tries:"), "{}", reason(&w));
}

#[test]
fn a_fence_that_fails_is_tried_again_and_then_both_failures_are_told() {
    let mut w = world(2);
    unending(&mut w, Terminate);
    w.complete(0, Fate::Fails);
    assert!(!fences(&w), "not at once");
    w.advance(1_000);
    assert!(fences(&w));
    w.complete(0, Fate::Fails);
    w.come_to_rest().unwrap();
    let reason = reason(&w);
    assert!(
        reason.contains("could not terminate the server")
            && reason.contains("could not fence the server"),
        "{reason}"
    );
}

#[test]
fn a_fence_that_lies_frees_no_room() {
    let mut w = world(2);
    unending(&mut w, Terminate);
    w.complete(0, Fate::OnlyClaims);
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), None);
    let reason = reason(&w);
    assert!(
        reason.contains("it was fenced, and then: the victim was to be gone, and after 10 looks: its room is not free"),
        "{reason}"
    );
}

#[test]
fn a_victim_whose_room_does_not_get_free_is_fenced_too() {
    let mut w = world(1);
    w.notice(0, 0);
    settle(&mut w);
    w.advance(30_000);
    w.complete(0, Fate::OnlyClaims);
    while !fences(&w) {
        w.complete(0, Fate::Works);
        w.advance(60_000);
    }
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Fenced));
}

#[test]
fn an_agent_killed_while_it_fences_ends_the_victim_after_all() {
    let mut w = world(3);
    unending(&mut w, Terminate);
    assert!(fences(&w));
    w.take_effect_unheard(0);
    w.crash();
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
    assert!(w.unsettled.is_empty());
}
