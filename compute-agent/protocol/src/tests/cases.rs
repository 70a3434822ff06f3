//! Single stories about evacuations, one for each rule.

use super::world::{Fate, GRACE, SimulatedHost, evacuation, server};
use crate::{AgentPolicy, DriverCall};
use ebbtide_model::message::{Body, EvacuationEnd, HostedState, Message};
use ebbtide_model::{InterruptionBehaviour, Seconds};

pub(super) fn world() -> SimulatedHost {
    SimulatedHost::new(AgentPolicy::default())
}

/// Delivers everything, lets all calls work and confirms all reports, without letting time pass.
pub(super) fn settle(world: &mut SimulatedHost) {
    loop {
        let before = (world.queue.len(), world.calls.len(), world.reports.len());
        world.deliver_all();
        world.complete(0, Fate::Works);
        world.confirm();
        if before == (0, world.calls.len(), world.reports.len()) && world.calls.is_empty() {
            return;
        }
    }
}

pub(super) fn types(world: &SimulatedHost) -> Vec<&'static str> {
    let name = |m: &Message| m.body.event_type();
    let short = |t: &'static str| t.trim_start_matches("org.ebbtide.").trim_end_matches(".v1");
    world.reports.iter().map(name).map(short).collect()
}

pub(super) fn runs(world: &SimulatedHost, s: u8) -> bool {
    world
        .guests
        .get(&server(s))
        .is_some_and(|g| g.state == HostedState::Running)
}

fn failure(world: &SimulatedHost) -> (String, bool) {
    world
        .reports
        .iter()
        .find_map(|m| match &m.body {
            Body::EvacuationFailed(f) => Some((f.reason.clone(), f.still_running)),
            _ => None,
        })
        .expect("a failure was reported")
}

#[test]
fn a_victim_gets_its_notice_its_time_and_its_end() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining"]);
    let Body::Draining(draining) = &w.reports[0].body else {
        panic!("not draining");
    };
    assert_eq!(draining.notified_at, w.at(0));
    assert_eq!(draining.deadline_at, w.at(0).plus(GRACE));
    assert_eq!(w.unsettled.len(), 1, "the notice is held until the end");
    w.advance(29_999);
    assert!(w.calls.is_empty(), "not a millisecond too early");
    w.advance(1);
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.evacuated"]);
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
    assert!(w.unsettled.is_empty());
    assert!(!w.guests.contains_key(&server(0)));
}

#[test]
fn the_notice_is_held_until_the_final_report_is_confirmed() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.complete(0, Fate::Works);
    w.confirm();
    w.advance(30_000);
    w.complete(0, Fate::Works);
    w.complete(0, Fate::Works);
    assert_eq!(w.unsettled.len(), 1);
    w.confirm();
    assert!(w.unsettled.is_empty());
}

#[test]
fn the_same_notice_twice_ends_one_victim_once_and_does_not_begin_its_time_anew() {
    let mut w = world();
    let notice = w.notice(0, 0);
    settle(&mut w);
    w.advance(20_000);
    w.queue.push(notice.clone());
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.draining"]);
    assert_eq!(
        w.reports[0].id, w.reports[1].id,
        "a repetition is recognisable"
    );
    w.advance(10_000);
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
    w.queue.push(notice);
    settle(&mut w);
    assert_eq!(
        types(&w)[2..],
        ["evacuation.evacuated", "evacuation.evacuated"]
    );
    assert_eq!(w.reports[2].id, w.reports[3].id);
    assert_eq!(w.ended[&server(0)], 1);
    assert!(w.unsettled.is_empty());
}

#[test]
fn a_restart_in_the_grace_period_does_not_move_its_end() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.advance(10_000);
    w.crash();
    settle(&mut w);
    w.advance(19_999);
    assert!(w.calls.is_empty());
    w.advance(1);
    assert_eq!(w.calls.len(), 1);
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
    assert!(w.unsettled.is_empty());
}

#[test]
fn a_report_that_was_not_confirmed_is_repeated_after_a_restart_even_if_the_broker_has_forgotten_all()
 {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.complete(0, Fate::Works);
    w.crash();
    w.queue.clear();
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining"]);
    w.advance(30_000);
    w.complete(0, Fate::Works);
    w.complete(0, Fate::Works);
    w.crash();
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.evacuated"]);
    w.crash();
    settle(&mut w);
    assert_eq!(types(&w).len(), 2, "what was confirmed is not repeated");
}

#[test]
fn a_grace_period_that_ends_while_the_agent_is_down_is_over() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.now = w.now.plus(Seconds(3_600));
    w.crash();
    settle(&mut w);
    assert_eq!(w.how(0), None, "the scheduler may object");
    w.advance(5_000);
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn a_notice_that_comes_too_late_is_not_followed_and_a_later_attempt_is() {
    let mut w = world();
    w.notice(0, 0);
    w.advance(60_001);
    w.deliver_all();
    assert!(w.calls.is_empty(), "its guest is not even told");
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.failed"]);
    let (reason, still_running) = failure(&w);
    assert!(
        reason.contains("was to be given before 1970-01-01T00:17:40Z"),
        "{reason}"
    );
    assert!(still_running && runs(&w, 0) && w.unsettled.is_empty());
    w.notice_with(0, 0, InterruptionBehaviour::Terminate, 2);
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn a_guest_that_was_told_too_late_is_told_that_it_may_stay() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.advance(60_001);
    w.complete(0, Fate::Works);
    let (_, action) = w.calls.values().next().cloned().expect("the guest is told");
    assert_eq!(action, DriverCall::WithdrawNotice(evacuation(0)));
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.failed"]);
    assert!(runs(&w, 0));
}

#[test]
fn a_notice_for_which_no_time_was_left_fails_without_a_word_to_the_guest() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.complete(0, Fate::NotBegun);
    assert!(w.calls.is_empty(), "there is nothing to take back");
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.failed"]);
    let (reason, still_running) = failure(&w);
    assert!(reason.contains("10 ms were left"), "{reason}");
    assert!(still_running && runs(&w, 0) && w.unsettled.is_empty());
    w.notice_with(0, 0, InterruptionBehaviour::Terminate, 2);
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn a_guest_that_an_earlier_try_may_have_told_is_told_that_it_may_stay_when_the_next_is_not_begun() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    w.complete(0, Fate::WorksButFails);
    w.advance(10_000);
    w.complete(0, Fate::NotBegun);
    let (_, action) = w.calls.values().next().cloned().expect("the guest is told");
    assert_eq!(action, DriverCall::WithdrawNotice(evacuation(0)));
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.failed"]);
    assert!(runs(&w, 0));
}

#[test]
fn a_victim_that_is_spared_in_time_lives_on_and_its_guest_is_told() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.spare(0, 0);
    w.deliver_all();
    let (_, action) = w.calls.values().next().cloned().expect("the guest is told");
    assert_eq!(action, DriverCall::WithdrawNotice(evacuation(0)));
    w.come_to_rest().unwrap();
    w.advance(100_000);
    w.come_to_rest().unwrap();
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.spared"]);
    assert!(runs(&w, 0) && w.unsettled.is_empty());
}

#[test]
fn a_guest_that_cannot_be_told_that_it_may_stay_stays_all_the_same() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.spare(0, 0);
    w.deliver_all();
    for _ in 0..AgentPolicy::default().notice_tries {
        w.complete(0, Fate::Fails);
        w.advance(60_000);
    }
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.spared"]);
    assert!(runs(&w, 0));
}

#[test]
fn a_spare_after_the_act_began_is_answered_with_the_evacuation() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.advance(30_000);
    w.spare(0, 0);
    w.deliver_all();
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining", "evacuation.evacuated"]);
    assert!(w.unsettled.is_empty());
    w.spare(0, 0);
    settle(&mut w);
    assert_eq!(
        types(&w)[2..],
        ["evacuation.evacuated"],
        "and again afterwards"
    );
}

#[test]
fn a_spare_after_an_attempt_that_failed_keeps_a_later_attempt_from_being_followed() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    for _ in 0..AgentPolicy::default().notice_tries {
        w.complete(0, Fate::Fails);
        w.advance(60_000);
    }
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.failed"]);
    w.spare(0, 0);
    settle(&mut w);
    w.notice_with(0, 0, InterruptionBehaviour::Terminate, 2);
    settle(&mut w);
    w.advance(60_000);
    settle(&mut w);
    assert_eq!(
        types(&w)[1..],
        ["evacuation.spared", "evacuation.spared"],
        "\"failed\" could be the answer to the first attempt"
    );
    assert!(runs(&w, 0) && w.unsettled.is_empty());
}

#[test]
fn a_spare_that_overtakes_its_notice_is_remembered_across_a_restart() {
    let mut w = world();
    w.spare(0, 0);
    settle(&mut w);
    w.crash();
    w.notice(0, 0);
    w.come_to_rest().unwrap();
    assert_eq!(types(&w), ["evacuation.spared", "evacuation.spared"]);
    assert!(runs(&w, 0) && w.asked.is_empty());
}

#[test]
fn a_release_ends_the_grace_period_also_when_it_overtakes_its_notice() {
    for early in [false, true] {
        let mut w = world();
        if early {
            w.release(0, 0);
            w.deliver_all();
            w.notice(0, 0);
        } else {
            w.notice(0, 0);
            settle(&mut w);
            w.release(0, 0);
        }
        settle(&mut w);
        assert_eq!(w.how(0), Some(EvacuationEnd::Terminated), "early: {early}");
        assert_eq!(w.now, w.at(0), "no time has passed");
    }
}

#[test]
fn a_guest_that_releases_or_powers_itself_off_is_ended_at_once() {
    for off in [false, true] {
        let mut w = world();
        w.notice_with(0, 0, InterruptionBehaviour::Hibernate, 1);
        settle(&mut w);
        if off {
            w.guest_powers_off(0);
        } else {
            w.guest_releases(0, 0);
        }
        w.observe();
        settle(&mut w);
        assert_eq!(w.how(0), Some(EvacuationEnd::Hibernated), "off: {off}");
    }
}

#[test]
fn a_word_of_the_guest_about_another_evacuation_does_not_count() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.guest_releases(9, 0);
    w.observe();
    assert!(w.calls.is_empty());
}

#[test]
fn a_victim_that_is_not_there_any_more_is_already_gone() {
    let mut before = world();
    before.lose(0);
    before.notice(0, 0);
    settle(&mut before);
    assert_eq!(types(&before), ["evacuation.evacuated"]);
    assert_eq!(before.how(0), Some(EvacuationEnd::AlreadyGone));

    let mut meanwhile = world();
    meanwhile.notice(0, 0);
    settle(&mut meanwhile);
    meanwhile.lose(0);
    meanwhile.observe();
    settle(&mut meanwhile);
    assert_eq!(meanwhile.how(0), Some(EvacuationEnd::AlreadyGone));

    let mut at_the_end = world();
    at_the_end.notice(0, 0);
    settle(&mut at_the_end);
    at_the_end.lose(0);
    at_the_end.advance(30_000);
    settle(&mut at_the_end);
    assert_eq!(at_the_end.how(0), Some(EvacuationEnd::AlreadyGone));
}

#[test]
fn a_server_that_was_not_to_be_seen_for_a_moment_is_not_reported_as_gone() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    let guest = w.guests.remove(&server(0)).unwrap();
    w.observe();
    w.guests.insert(server(0), guest);
    settle(&mut w);
    assert_eq!(types(&w), ["evacuation.draining"]);
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn an_interruption_that_fails_is_tried_again_and_then_reported() {
    let mut w = world();
    w.notice_with(0, 0, InterruptionBehaviour::Hibernate, 1);
    settle(&mut w);
    w.advance(30_000);
    for wait in [1_000, 2_000, 4_000] {
        assert_eq!(w.calls.len(), 1);
        w.complete(0, Fate::Fails);
        w.advance(wait);
    }
    settle(&mut w);
    let (reason, still_running) = failure(&w);
    assert!(
        reason.contains("after 3 tries") && reason.contains("hibernate"),
        "{reason}"
    );
    assert!(still_running && runs(&w, 0));
    assert_eq!(w.asked[&server(0)], 3);
}

#[test]
fn a_victim_that_moves_to_another_host_is_evacuated() {
    let mut w = world();
    w.notice_with(0, 0, InterruptionBehaviour::LiveMigrate, 1);
    settle(&mut w);
    w.advance(30_000);
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), Some(EvacuationEnd::Migrated));
}

#[test]
fn a_victim_that_cannot_move_ends_by_the_second_choice() {
    for (second, how) in [
        (InterruptionBehaviour::Terminate, EvacuationEnd::Terminated),
        (InterruptionBehaviour::Hibernate, EvacuationEnd::Hibernated),
    ] {
        let mut w = SimulatedHost::new(AgentPolicy {
            live_migrate_fallback: second,
            ..AgentPolicy::default()
        });
        w.start(0);
        w.notice_with(0, 0, InterruptionBehaviour::LiveMigrate, 1);
        settle(&mut w);
        w.advance(30_000);
        for wait in [1_000, 2_000, 4_000] {
            w.complete(0, Fate::Fails);
            w.advance(wait);
        }
        w.come_to_rest().unwrap();
        assert_eq!(w.how(0), Some(how));
    }
}

#[test]
fn an_interruption_that_only_seemed_to_fail_is_an_evacuation() {
    let mut w = world();
    w.notice_with(0, 0, InterruptionBehaviour::Stop, 1);
    settle(&mut w);
    w.advance(30_000);
    for _ in 0..3 {
        w.complete(0, Fate::WorksButFails);
        w.advance(60_000);
    }
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Stopped));
}

#[test]
fn a_victim_is_reported_as_evacuated_when_its_room_is_free_and_not_before() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.advance(30_000);
    w.complete(0, Fate::OnlyClaims);
    for wait in [1_000, 2_000, 4_000] {
        w.complete(0, Fate::Works);
        w.advance(wait);
        assert_eq!(types(&w), ["evacuation.draining"]);
    }
    w.lose(0);
    settle(&mut w);
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn a_room_that_never_gets_free_is_a_failure_and_not_a_free_room() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.advance(30_000);
    w.complete(0, Fate::OnlyClaims);
    w.come_to_rest().unwrap();
    let (reason, still_running) = failure(&w);
    assert!(
        still_running && reason.contains("after 10 looks: its room is not free"),
        "{reason}"
    );
}

#[test]
fn only_the_operator_turns_a_failed_hibernation_into_a_termination() {
    let policy = AgentPolicy {
        escalate_to_terminate: true,
        ..AgentPolicy::default()
    };
    let mut w = SimulatedHost::new(policy);
    w.notice_with(0, 0, InterruptionBehaviour::Hibernate, 1);
    settle(&mut w);
    w.advance(30_000);
    for _ in 0..3 {
        w.complete(0, Fate::Fails);
        w.advance(60_000);
    }
    w.come_to_rest().unwrap();
    assert_eq!(w.how(0), Some(EvacuationEnd::Terminated));
}

#[test]
fn the_driver_is_told_the_grace_period_and_an_end_that_is_not_too_late() {
    let mut w = world();
    w.notice(0, 0);
    w.deliver_all();
    let Some((_, DriverCall::GiveNotice(told))) = w.calls.values().next().cloned() else {
        panic!("no notice");
    };
    assert_eq!((told.grace, told.not_before), (GRACE, w.at(30)));
}
