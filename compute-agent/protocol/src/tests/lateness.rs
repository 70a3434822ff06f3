//! The agent ends no victim without the scheduler's knowledge: none unannounced, none late, and
//! none because a clock was set.

use super::cases::{runs, settle, types, world};
use super::world::{Fate, SimulatedHost};
use crate::{AgentCore, AgentInput, AgentPolicy, JournalRecord, ReportId};
use ebbtide_model::message::{Body, EvacuationEnd};
use ebbtide_model::{Seconds, Timestamp};

/// A victim that has been told, and the scheduler knows.
fn told() -> SimulatedHost {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining"]);
    w
}

/// The chance to object, and what is under way after it.
fn run_without_objection(w: &mut SimulatedHost) {
    w.advance(4_999);
    assert!(w.calls.is_empty(), "{:?}", w.calls);
    w.advance(1);
    assert_eq!(w.calls.len(), 1);
    settle(w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn no_victim_ends_before_the_broker_confirms_that_the_grace_period_runs() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.complete(0, Fate::Works);
    w.advance(60_000);
    assert!(w.calls.is_empty(), "the report is still under way");
    w.confirm();
    run_without_objection(&mut w);
}

#[test]
fn an_agent_that_was_not_heard_and_gets_a_spare_has_ended_no_victim() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.complete(0, Fate::Works);
    w.advance(60_000);
    w.confirm();
    w.spare(0, 0);
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.spared"]);
    w.advance(60_000);
    assert!(w.calls.is_empty() && runs(&w, 0));
}

#[test]
fn an_agent_that_was_down_hears_first_whether_it_comes_too_late() {
    let mut w = told();
    w.now = w.now.plus(Seconds(3_600));
    w.spare(0, 0);
    w.crash();
    assert!(w.calls.is_empty(), "the spare is in its queue");
    settle(&mut w);
    assert!(runs(&w, 0));
    assert!(
        types(&w).ends_with(&["evacuation.spared"]),
        "{:?}",
        types(&w)
    );
}

/// An agent that was down for an hour, in which the scheduler gave up on evacuation 0 of its server
/// and began evacuation 1.
fn begun_anew() -> SimulatedHost {
    let mut w = told();
    w.now = w.now.plus(Seconds(3_600));
    w.crash();
    settle(&mut w);
    w.notice(1, 0);
    settle(&mut w);
    w
}

#[test]
fn a_spare_means_the_evacuations_that_were_given_up_before_it_too() {
    let mut w = begun_anew();
    w.advance(1_000);
    w.spare(1, 0);
    settle(&mut w);
    w.advance(60_000);
    settle(&mut w);
    assert!(runs(&w, 0), "{:?}", types(&w));
    let spared = |kind: &&&str| **kind == "evacuation.spared";
    assert_eq!(types(&w).iter().filter(spared).count(), 2);
}

#[test]
fn a_spare_whose_notice_was_never_sent_means_those_before_it_too() {
    let mut w = told();
    w.now = w.now.plus(Seconds(3_600));
    w.crash();
    w.spare(1, 0);
    settle(&mut w);
    w.advance(60_000);
    settle(&mut w);
    assert!(runs(&w, 0), "{:?}", types(&w));
}

#[test]
fn a_spare_of_an_evacuation_that_was_given_up_leaves_the_later_one_alone() {
    let mut w = begun_anew();
    let spare = w.spare(0, 0);
    settle(&mut w);
    w.queue.push(spare);
    settle(&mut w);
    w.advance(60_000);
    settle(&mut w);
    w.advance(5_000);
    settle(&mut w);
    assert_eq!(w.how(1), Some(EvacuationEnd::Terminated));
}

#[test]
fn an_agent_that_stood_still_says_so_before_it_goes_on() {
    let mut w = told();
    // The tick comes before whatever waits in the queue.
    w.advance(3_600_000);
    assert!(w.calls.is_empty());
    settle(&mut w);
    assert_eq!(types(&w).len(), 2, "it has said once more where it is");
    run_without_objection(&mut w);
}

#[test]
fn a_little_late_is_not_late() {
    let mut w = told();
    w.advance(31_900);
    assert_eq!(w.calls.len(), 1);
}

#[test]
fn a_clock_that_is_set_takes_no_time_from_a_guest_and_gives_it_none() {
    for by_ms in [600_000, -600_000, 2_000, -2_000] {
        let mut w = told();
        w.advance(10_000);
        w.set_clock(by_ms);
        settle(&mut w);
        let Body::Draining(again) = &w.reports[1].body else {
            panic!("the scheduler is not told of the new time");
        };
        assert_eq!(again.deadline_at.millis_since(w.now), 20_000);
        w.advance(19_999);
        assert!(w.calls.is_empty(), "set by {by_ms} ms: too early");
        w.advance(1);
        assert_eq!(w.calls.len(), 1, "set by {by_ms} ms: too late");
    }
}

#[test]
fn what_was_to_be_tried_again_is_tried_when_it_would_have_been() {
    let mut w = told();
    w.advance(30_000);
    w.complete(0, Fate::Fails);
    w.set_clock(-600_000);
    settle(&mut w);
    w.advance(1_000);
    assert_eq!(w.calls.len(), 1, "the second try");
}

#[test]
fn a_clock_that_was_set_unobserved_moves_the_recorded_times() {
    let mut w = told();
    w.advance(10_000);
    for by_ms in [600_000, -600_000] {
        let records: Vec<JournalRecord> = w.core.records();
        let moved = records.into_iter().map(|r| r.by_clock_set(by_ms));
        let now = Timestamp::from_millis(w.now.as_millis() + by_ms);
        let (mut core, _) = AgentCore::restore("host-a", AgentPolicy::default(), moved, now);
        core.handle(now, AgentInput::Published(ReportId(1)));
        let wakes = core.next_wakeup().unwrap();
        assert_eq!(wakes.millis_since(now), 20_000, "set by {by_ms} ms");
    }
}

#[test]
fn no_guest_has_more_time_left_than_its_grace_period() {
    let mut w = told();
    w.now = Timestamp::from_millis(w.now.as_millis() - 3_600_000);
    w.crash();
    settle(&mut w);
    w.advance(30_000);
    // The grace period is over; the test cannot tell whether it ended a little early.
    w.broken.clear();
    assert_eq!(w.calls.len(), 1);
}
