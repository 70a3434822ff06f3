//! The scheduler restarts, or its commits fail, at every step of the main scenario; the result is
//! the same.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, engine, normal, spot};
use crate::{CreateServers, Region};
use ebbtide_model::{EvacuationState, HostHealth, ServerStatus};

/// The main scenario; it calls `disturb` with the number of each step, before the step.
fn story(disturb: &mut dyn FnMut(&mut SimulatedRegion, u32)) -> (SimulatedRegion, u32) {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 1)]);
    let mut transition = 0;
    let mut next = |world: &mut SimulatedRegion| {
        transition += 1;
        disturb(world, transition);
    };
    let cattle = world.request(&spot(2), 2);
    let pet = world.request(&normal(4), 1);
    for request in [cattle, pet] {
        next(&mut world);
        // A caller that gets an error for a failed commit repeats its request.
        for _ in 0..2 {
            let create = CreateServers {
                quota: None,
                max_price: None,
                name: "vm".to_owned(),
                request: request.clone(),
                external: false,
            };
            let _ = world.input(create);
        }
        for _ in 0..4 {
            for host in ["host-a", "host-b"] {
                next(&mut world);
                world.send_one(host);
                next(&mut world);
                let now = world.now;
                world.host(host).deliver(now);
                world.host(host).complete_all(now);
                world.confirm_one(host);
                next(&mut world);
                world.read_one();
            }
        }
        world.flush();
    }
    for _ in 0..40 {
        next(&mut world);
        world.run(1);
    }
    world.run(60);
    (world, transition)
}

fn is_the_same_end(world: &SimulatedRegion) {
    let mut ends: Vec<ServerStatus> = world.database.servers.values().map(|s| s.status).collect();
    ends.sort_by_key(|s| s.as_str());
    let expected = [
        ServerStatus::Active,
        ServerStatus::Preempted,
        ServerStatus::Preempted,
    ];
    assert_eq!(ends, expected);
    let evacuations: Vec<EvacuationState> = world
        .database
        .evacuations
        .values()
        .map(|e| e.state)
        .collect();
    assert_eq!(evacuations, [EvacuationState::Evacuated; 2]);
    assert!(
        world.hosts["host-a"].ended.values().all(|n| *n == 1),
        "each victim is ended once"
    );
    everything_is_over(world);
}

#[test]
fn a_restart_at_any_step_of_the_story_gives_the_same_end() {
    let (world, steps) = story(&mut |_, _| {});
    is_the_same_end(&world);
    assert!(steps > 80);
    for at in 1..=steps {
        let (world, _) = story(&mut |world, transition| {
            if transition == at {
                world.restart_scheduler();
            }
        });
        is_the_same_end(&world);
    }
}

#[test]
fn a_commit_that_fails_at_any_step_of_the_story_gives_the_same_end() {
    let (_, steps) = story(&mut |_, _| {});
    for at in 1..=steps {
        let (world, _) = story(&mut |world, transition| {
            if transition == at {
                world.fail_commit_after = Some(0);
            }
        });
        is_the_same_end(&world);
    }
}

#[test]
fn an_agent_that_crashes_at_any_step_of_the_story_gives_the_same_end() {
    let (_, steps) = story(&mut |_, _| {});
    for at in 1..=steps {
        let (world, _) = story(&mut |world, transition| {
            if transition == at {
                let now = world.now;
                world.host("host-a").restart(now);
            }
        });
        is_the_same_end(&world);
    }
}

#[test]
fn a_message_that_was_sent_and_not_noted_is_sent_again_and_followed_once() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.claim(&normal(4));
    for _ in 0..3 {
        world.fail_commit_after = Some(0);
        world.send_one("host-a");
        assert_eq!(world.unsent("notice"), 1, "the row is still there");
    }
    world.flush();
    world.run(40);
    assert_eq!(world.hosts["host-a"].ended[&victim], 1);
    assert!(world.runs(pet));
    everything_is_over(&world);
}

#[test]
fn a_scheduler_that_was_away_for_long_does_not_punish_agents_for_it() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let victim = world.create_on("host-a", &spot(4));
    world.run(5);
    world.host("host-b").crash();
    world.run(100);
    let pet = world.create(&normal(4));
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.now = world.now.plus(ebbtide_model::Seconds(3600));
    world.restart_scheduler();
    assert_eq!(world.region.host("host-a").unwrap().health, HostHealth::Up);
    assert_eq!(
        world.region.host("host-b").unwrap().health,
        HostHealth::Down,
        "that one was silent before the scheduler was"
    );
    world.tick();
    assert_eq!(
        world.state(victim),
        EvacuationState::Draining,
        "its report may be in the queue"
    );
    // Its agent returns late, too, and gives the scheduler the time to object.
    world.run(10);
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
    assert!(world.runs(pet));
}

#[test]
fn a_host_that_stays_silent_after_a_restart_is_down_a_minute_later() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.run(5);
    world.host("host-a").crash();
    world.restart_scheduler();
    world.run(50);
    assert_eq!(world.region.host("host-a").unwrap().health, HostHealth::Up);
    world.run(15);
    assert_eq!(
        world.region.host("host-a").unwrap().health,
        HostHealth::Down
    );
}

#[test]
fn a_victim_goes_on_resting_after_a_restart() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.host("host-a").crash();
    world.create(&normal(4));
    world.run(40);
    assert_eq!(world.state(victim), EvacuationState::Failed);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(10);
    world.restart_scheduler();
    let early = world.create(&normal(4));
    assert_eq!(world.status(early), ServerStatus::Error);
    world.run(300);
    let later = world.create(&normal(4));
    assert_eq!(world.status(later), ServerStatus::Waiting);
}

#[test]
fn a_configuration_out_of_range_names_its_key() {
    let config = crate::RegionConfig {
        notice_attempts: 0,
        ..crate::RegionConfig::default()
    };
    let error = config.check().unwrap_err();
    assert_eq!(error.code(), "EB-REGION-001");
    assert!(
        error
            .to_string()
            .contains("region.notice_attempts = 0: use 1 to 100"),
        "{error}"
    );
}

#[test]
fn a_repeated_request_does_not_bring_a_deleted_server_back_after_a_restart() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let request = world.request(&normal(2), 1);
    let create = CreateServers {
        quota: None,
        max_price: None,
        name: "vm".to_owned(),
        request,
        external: false,
    };
    let id = world
        .command(create.clone())
        .map(|_| *world.database.servers.keys().next().expect("it was made"))
        .expect("there is room");
    world.flush();
    world.delete(id);
    world.flush();
    assert_eq!(world.status(id), ServerStatus::Deleted);
    world.restart_scheduler();
    let error = world.command(create).expect_err("it is gone");
    assert!(error.to_string().contains("gone already"), "{error}");
    assert_eq!(world.status(id), ServerStatus::Deleted);
}

#[test]
fn an_inventory_out_of_range_in_the_database_is_refused() {
    let world = SimulatedRegion::new(&[("host-a", 4)]);
    let mut snapshot = world.database.snapshot();
    for inventory in snapshot.hosts[0].inventory.values_mut() {
        inventory.allocation_ratio = 1e30;
    }
    let Err(error) = Region::restore(world.config.clone(), engine(), snapshot, world.now) else {
        panic!("an impossible allocation ratio was accepted");
    };
    let said = error.to_string();
    assert!(said.contains("allocation"), "{said}");
}
