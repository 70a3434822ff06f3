//! Agents that are silent, late, or cannot carry out a request.

use super::checks::everything_is_over;
use super::host::Fate;
use super::world::{SimulatedRegion, normal, spot, with};
use ebbtide_model::message::{Body, Evacuated, EvacuationEnd};
use ebbtide_model::{EvacuationState, Seconds, ServerStatus};

#[test]
fn a_silent_agent_is_told_three_times_and_then_the_preemptor_goes_elsewhere() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    // host-a is the cheaper one: a server that has just started costs nothing.
    let old = world.create_on("host-b", &with(&spot(4), &[("ebbtide:grace_seconds", "0")]));
    world.run(300);
    let silent = [
        world.create_on("host-a", &spot(2)),
        world.create_on("host-a", &spot(2)),
    ];
    world.host("host-a").crash();
    let pet = world.create(&normal(4));
    assert_eq!(world.place(pet), Some("host-a"));
    world.run(9);
    assert_eq!(world.evacuation(silent[0]).attempts, 1);
    world.run(15);
    assert_eq!(world.evacuation(silent[0]).attempts, 3);
    assert_eq!(world.state(silent[0]), EvacuationState::Notified);
    world.run(8);
    let failed: Vec<_> = silent
        .iter()
        .filter(|v| world.state(**v) == EvacuationState::Failed)
        .collect();
    assert_eq!(
        failed.len(),
        1,
        "one failure is enough; the other is to be spared"
    );
    let evacuation = world.evacuation(*failed[0]);
    let why = evacuation.reason.as_deref().unwrap();
    assert!(why.contains("did not answer 3 notices in 30 s"), "{why}");
    assert_eq!(world.place(pet), Some("host-b"));
    assert_eq!(world.server(pet).refused_hosts, ["host-a"]);
    world.run(5);
    assert!(world.runs(pet));
    assert_eq!(world.status(old), ServerStatus::Preempted);
    // The agent comes back with all these notices in its queue.
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(120);
    for victim in silent {
        assert_eq!(world.status(victim), ServerStatus::Active);
        assert!(
            world.runs(victim),
            "a victim was evicted for a preemptor on another host"
        );
    }
    everything_is_over(&world);
}

#[test]
fn an_agent_that_comes_back_in_time_is_obeyed() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    let pet = world.create(&normal(4));
    world.run(25);
    let now = world.now;
    world.host("host-a").restart(now);
    world.flush();
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.run(32);
    assert!(world.runs(pet));
    assert_eq!(world.evacuation(victim).attempts, 3);
    assert_eq!(
        world.hosts["host-a"].ended[&victim], 1,
        "three notices end it once"
    );
    everything_is_over(&world);
}

#[test]
fn while_the_broker_is_away_the_agent_is_not_blamed() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.broker_up = false;
    let pet = world.create(&normal(4));
    world.run(150);
    world.restart_scheduler();
    world.run(150);
    assert_eq!(world.state(victim), EvacuationState::Claimed);
    assert_eq!(world.evacuation(victim).attempts, 1);
    assert_eq!(
        world.unsent("notice"),
        1,
        "an old notice is replaced, not added to"
    );
    world.broker_up = true;
    world.run(35);
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
    assert!(world.runs(pet));
    everything_is_over(&world);
}

#[test]
fn a_notice_that_the_broker_kept_for_too_long_is_followed_by_a_newer_one_and_fails_nothing() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    // The notice is sent, but the broker hangs: the agent gets it much later, and the broker never
    // confirms it.
    world.broker_up = false;
    let pet = world.create(&normal(4));
    let stale = world.outbox["host-a"].front().cloned().unwrap();
    let stale = ebbtide_model::message::Message::from_bytes(&stale.body).unwrap();
    world.run(60);
    assert_eq!(world.evacuation(victim).attempts, 1, "it was replaced");
    world.host("host-a").queue.push_front(stale);
    world.broker_up = true;
    world.flush();
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.run(35);
    assert!(world.runs(pet));
    assert_eq!(world.hosts["host-a"].ended[&victim], 1);
    everything_is_over(&world);
}

#[test]
fn the_agents_time_begins_when_the_broker_has_the_notice() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    world.broker_up = false;
    world.create(&normal(4));
    world.run(8);
    world.broker_up = true;
    world.run(8);
    assert_eq!(world.evacuation(victim).attempts, 1);
    world.run(4);
    assert_eq!(world.evacuation(victim).attempts, 2);
}

#[test]
fn a_broker_that_goes_away_between_two_attempts_is_not_blamed_on_the_agent_either() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    let pet = world.create(&normal(4));
    world.run(12);
    world.broker_up = false;
    world.run(200);
    assert_eq!(world.state(victim), EvacuationState::Notified);
    world.broker_up = true;
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(60);
    // The notices that were in its queue all the time come too late, and the agent says so; it
    // carries out the last attempt.
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
    assert_eq!(world.evacuation(victim).attempts, 3);
    assert_eq!(world.hosts["host-a"].ended[&victim], 1);
    assert!(world.runs(pet));
    everything_is_over(&world);
}

#[test]
fn an_evacuation_that_the_driver_cannot_do_moves_the_preemptor_and_lets_the_victim_rest() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let stubborn = world.create_on("host-a", &spot(4));
    world.run(1);
    let other = world.create_on("host-b", &spot(4));
    let fails = || std::iter::repeat_n(Fate::Fails, 3).collect();
    world
        .host("host-a")
        .fates
        .insert("terminate the server", fails());
    world
        .host("host-b")
        .fates
        .insert("terminate the server", fails());
    let pet = world.create(&normal(4));
    let (first, second) = match world.place(pet) {
        Some("host-a") => (stubborn, other),
        _ => (other, stubborn),
    };
    world.run(45);
    assert_eq!(world.state(first), EvacuationState::Failed);
    assert_eq!(world.status(first), ServerStatus::Active);
    let why = world.evacuation(first).reason.as_deref().unwrap();
    assert!(why.contains("so the test wants it"), "{why}");
    assert_eq!(world.state(second), EvacuationState::Draining);
    world.run(60);
    assert_eq!(
        world.status(pet),
        ServerStatus::Error,
        "both hosts have failed it"
    );
    let fault = world.server(pet).fault.as_ref().unwrap();
    assert!(fault.message.contains("after that"), "{}", fault.message);
    assert!(world.runs(stubborn) && world.runs(other));
    // For a while neither victim is selected again, for any request.
    let early = world.create(&normal(4));
    assert_eq!(world.status(early), ServerStatus::Error);
    world.run(300);
    let later = world.create(&normal(4));
    assert_eq!(world.status(later), ServerStatus::Waiting);
    world.run(60);
    assert!(world.runs(later));
    everything_is_over(&world);
}

#[test]
fn a_victim_that_was_ended_but_holds_its_room_is_found_by_the_heartbeats() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    world.run(2);
    let evacuation_id = world.evacuation(victim).id;
    let failed = Body::EvacuationFailed(ebbtide_model::message::EvacuationFailed {
        evacuation_id,
        host: "host-a".to_owned(),
        server_id: victim,
        reason: "the pages do not come back".to_owned(),
        still_running: false,
        late_attempt: None,
    });
    let report = world.report("host-a", failed);
    world.reports.push_back(report);
    world.read_one();
    assert_eq!(world.state(victim), EvacuationState::Failed);
    assert_eq!(
        world.status(pet),
        ServerStatus::Error,
        "it must not start in room that is not free"
    );
    world.flush();
    world.host("host-a").guests.clear();
    world.run(25);
    assert_eq!(world.status(victim), ServerStatus::Error);
    assert_eq!(
        world.server(victim).fault.as_ref().unwrap().code,
        "EB-FAULT-002"
    );
}

/// Otherwise the server would be in error, as if the host had lost it, and its hour would be
/// charged.
#[test]
fn a_victim_whose_end_was_reported_in_vain_is_asked_for_again_and_was_preempted() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&with(&spot(4), &[("ebbtide:grace_seconds", "5")]));
    world.run(2);
    world.create(&normal(4));
    // The test purges the queue of reports until the scheduler has given up.
    for _ in 0..120 {
        world.now = world.now.plus(Seconds(1));
        while world.send_one("host-a") {}
        let now = world.now;
        let host = world.host("host-a");
        host.deliver(now);
        host.tick(now);
        host.complete_all(now);
        while world.confirm_one("host-a") {}
        world.reports.clear();
        world.tick();
    }
    assert_eq!(world.hosts["host-a"].ended[&victim], 1);
    assert_eq!(world.state(victim), EvacuationState::Failed);
    assert_eq!(world.status(victim), ServerStatus::Active);
    world.run(30);
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    everything_is_over(&world);
}

#[test]
fn who_acts_after_the_scheduler_has_given_up_is_believed() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    world.create(&normal(4));
    world.run(35);
    assert_eq!(world.state(victim), EvacuationState::Failed);
    let evacuation_id = world.evacuation(victim).id;
    let at = world.now;
    let gone = Body::Evacuated(Evacuated {
        evacuation_id,
        host: "host-a".to_owned(),
        server_id: victim,
        how: EvacuationEnd::Terminated,
        at,
        unbilled_seconds: None,
        storage: None,
    });
    let report = world.report("host-a", gone);
    world.reports.push_back(report.clone());
    world.reports.push_back(report);
    world.flush();
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    let next = world.create(&normal(4));
    assert_eq!(
        world.status(next),
        ServerStatus::Building,
        "its room is free"
    );
}

#[test]
fn an_end_that_is_reported_long_after_the_claim_is_still_known() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&with(&spot(4), &[("ebbtide:grace_seconds", "900")]));
    world.create(&normal(4));
    world.run(3);
    world.host("host-a").crash();
    world.run(965);
    assert_eq!(world.state(victim), EvacuationState::Failed);
    let evacuation_id = world.evacuation(victim).id;
    let body = Body::Evacuated(Evacuated {
        evacuation_id,
        host: "host-a".to_owned(),
        server_id: victim,
        how: EvacuationEnd::Terminated,
        at: world.now,
        unbilled_seconds: None,
        storage: None,
    });
    let report = world.report("host-a", body);
    world.reports.push_back(report);
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
}

#[test]
fn an_agent_that_never_says_whether_a_spared_victim_lives_does_not_keep_it_for_ever() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    world.run(5);
    world.host("host-a").crash();
    world.delete(pet);
    world.run(100);
    assert_eq!(world.state(victim), EvacuationState::Failed);
    assert_eq!(world.status(victim), ServerStatus::Active);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(60);
    // The grace period ended while the agent was away, but the spare was in the queue when it
    // returned.
    assert_eq!(
        world.status(victim) == ServerStatus::Active,
        world.runs(victim)
    );
    everything_is_over(&world);
}

#[test]
fn the_last_attempt_of_a_notice_is_void_when_the_scheduler_gives_up() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    world.create(&normal(4));
    world.run(29);
    let limits: Vec<i64> = world.hosts["host-a"]
        .queue
        .iter()
        .filter_map(|m| match &m.body {
            Body::Notice(n) => Some(
                n.begin_before
                    .millis_since(world.evacuation(victim).claimed_at),
            ),
            _ => None,
        })
        .collect();
    assert_eq!(limits.len(), 3);
    let patience = Seconds(30).as_millis();
    assert!(
        limits
            .iter()
            .all(|l| (patience..patience + 3000).contains(l)),
        "{limits:?}"
    );
}

#[test]
fn an_evacuation_that_was_given_up_and_done_all_the_same_ends_the_next_one_too() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    world.create(&normal(4));
    world.run(40);
    let first = world.evacuation(victim).id;
    world.run(300);
    world.hosts.get_mut("host-a").unwrap().queue.clear();
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(12);
    world.host("host-a").crash();
    let pet = world.create(&normal(4));
    assert_eq!(world.evacuations(victim).len(), 2);
    world.host("host-a").guests.clear();
    let gone = Body::Evacuated(Evacuated {
        evacuation_id: first,
        host: "host-a".to_owned(),
        server_id: victim,
        how: EvacuationEnd::Terminated,
        at: world.now,
        unbilled_seconds: None,
        storage: None,
    });
    let report = world.report("host-a", gone);
    world.reports.push_back(report);
    world.read_one();
    let states: Vec<EvacuationState> = world.evacuations(victim).iter().map(|e| e.state).collect();
    assert_eq!(states, [EvacuationState::Evacuated; 2]);
    assert_eq!(world.status(pet), ServerStatus::Building);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(60);
    assert!(world.runs(pet));
    everything_is_over(&world);
}
