//! The main scenario, from a full cloud to a normal server that runs.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot, with};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::Change;
use ebbtide_model::{CloudEvent, DecisionOutcome, EvacuationState, ServerStatus, Timestamp};

#[test]
fn a_normal_request_on_a_full_cloud_runs_where_the_cheapest_victims_were() {
    // The last of the paper's tables: the cheapest set over all hosts is evicted, and no other
    // server.
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4), ("host-c", 4)]);
    let minutes = |world: &SimulatedRegion, n: i64| {
        Timestamp::from_millis(world.now.as_millis() - n * 60_000)
    };
    let mut cattle = Vec::new();
    for (host, ages) in [
        ("host-a", [50, 50]),
        ("host-b", [61, 1]),
        ("host-c", [40, 100]),
    ] {
        for age in ages {
            let id = world.new_id();
            let mut adopt = world.adopt(host, &spot(2), id);
            adopt.launched_at = Some(minutes(&world, age));
            world.command(adopt).unwrap();
            cattle.push(id);
        }
    }
    world.flush();
    assert!(
        cattle
            .iter()
            .all(|id| world.status(*id) == ServerStatus::Active)
    );
    let pet = world.create(&normal(3));
    // host-b: one victim is at minute 1 of its second hour, the other at minute 1 of its first.
    // Both together cost 2 minutes.
    assert_eq!(world.place(pet), Some("host-b"));
    let decision = world.database.decisions.values().last().unwrap();
    assert!(matches!(&decision.outcome, DecisionOutcome::Placed(p) if p[0].victims.len() == 2));
    assert_eq!(world.status(pet), ServerStatus::Waiting);
    assert_eq!(world.state(cattle[2]), EvacuationState::Draining);
    world.run(29);
    assert_eq!(
        world.status(pet),
        ServerStatus::Waiting,
        "the grace period is not over"
    );
    assert!(world.runs(cattle[2]) && world.runs(cattle[3]));
    world.run(2);
    assert_eq!(world.status(pet), ServerStatus::Active);
    assert!(world.runs(pet));
    for victim in &cattle[2..4] {
        assert_eq!(world.state(*victim), EvacuationState::Evacuated);
        assert_eq!(world.status(*victim), ServerStatus::Preempted);
        let fault = world.server(*victim).fault.as_ref().unwrap();
        assert_eq!(fault.code, "EB-FAULT-003");
        assert!(
            !fault.message.contains(&pet.to_string()),
            "no tenant hears of another one"
        );
    }
    for other in [0, 1, 4, 5] {
        assert_eq!(world.status(cattle[other]), ServerStatus::Active);
        assert!(world.evacuations(cattle[other]).is_empty());
    }
    everything_is_over(&world);
}

#[test]
fn the_claim_the_evacuations_and_the_notices_are_one_transaction() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victims = [world.create(&spot(2)), world.create(&spot(2))];
    let pet = world.claim(&normal(4));
    let has =
        |wanted: &dyn Fn(&Change) -> bool| world.last_changes.iter().filter(|c| wanted(c)).count();
    assert_eq!(has(&|c| matches!(c, Change::PutDecision(_))), 1);
    let waiting = |c: &Change| matches!(c, Change::PutServer(s) if s.id == pet && s.status == ServerStatus::Waiting);
    assert_eq!(has(&waiting), 1);
    for victim in victims {
        let claimed = |c: &Change| {
            matches!(c, Change::PutEvacuation(e)
                if e.victim_id == victim && e.preemptor_id == Some(pet) && e.state == EvacuationState::Claimed)
        };
        assert_eq!(has(&claimed), 1);
    }
    let notices = |c: &Change| match c {
        Change::Enqueue(m) => {
            matches!(Message::from_bytes(&m.body).unwrap().body, Body::Notice(_))
        }
        _ => false,
    };
    assert_eq!(has(&notices), 2);
    assert_eq!(
        world.unsent("notice"),
        2,
        "nothing has been sent before it is durable"
    );
}

#[test]
fn no_victim_is_selected_while_there_is_free_capacity() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let cattle = world.create_on("host-a", &spot(4));
    let pet = world.create(&normal(4));
    assert_eq!(world.place(pet), Some("host-b"));
    assert_eq!(world.status(pet), ServerStatus::Active);
    assert!(world.evacuations(cattle).is_empty());
}

#[test]
fn an_evacuation_is_told_in_every_state_it_comes_to() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.claim(&normal(4));
    world.flush();
    world.run(40);
    let told: Vec<EvacuationState> = world
        .events
        .iter()
        .filter_map(|event| match event {
            CloudEvent::Evacuation(e) if e.victim_id == victim => Some(e.state),
            _ => None,
        })
        .collect();
    let expected = [
        EvacuationState::Claimed,
        EvacuationState::Notified,
        EvacuationState::Draining,
        EvacuationState::Evacuated,
    ];
    assert_eq!(told, expected);
    let e = world.evacuation(victim);
    let times = [
        Some(e.claimed_at),
        e.notified_at,
        e.draining_at,
        e.deadline_at,
        e.ended_at,
    ];
    assert!(times.iter().all(Option::is_some));
    assert_eq!(
        e.deadline_at.unwrap().millis_since(e.draining_at.unwrap()),
        30_000
    );
}

#[test]
fn victims_end_as_their_flavor_says() {
    for (word, status, kept) in [
        ("terminate", ServerStatus::Preempted, false),
        ("stop", ServerStatus::Stopped, true),
        ("hibernate", ServerStatus::Hibernated, true),
    ] {
        let mut world = SimulatedRegion::new(&[("host-a", 4)]);
        let flavor = with(
            &spot(4),
            &[
                ("ebbtide:interruption", word),
                ("ebbtide:grace_seconds", "5"),
            ],
        );
        let victim = world.create(&flavor);
        let pet = world.create(&normal(4));
        world.run(7);
        assert_eq!(world.status(victim), status);
        assert_eq!(world.hosts["host-a"].guests.contains_key(&victim), kept);
        assert!(
            world.runs(pet),
            "its own grace of 5 s counts, not the region's"
        );
        world.run(60);
        assert_eq!(
            world.status(victim),
            status,
            "the heartbeats do not call it lost"
        );
    }
}

#[test]
fn the_disk_of_a_stopped_victim_stays_allocated_until_it_is_deleted() {
    for (word, status) in [
        ("stop", ServerStatus::Stopped),
        ("hibernate", ServerStatus::Hibernated),
    ] {
        // 40 GiB, of which the victim keeps 30.
        let mut world = SimulatedRegion::new(&[("host-a", 4)]);
        let with_disk = |mut flavor: ebbtide_model::Flavor, disk_gb| {
            flavor.disk_gb = disk_gb;
            flavor.name = format!("{}-{disk_gb}", flavor.name);
            flavor
        };
        let keeps = with(&spot(4), &[("ebbtide:interruption", word)]);
        let victim = world.create(&with_disk(keeps, 30));
        let hungry = world.create(&with_disk(normal(1), 20));
        assert_eq!(world.status(hungry), ServerStatus::Error);
        assert_eq!(
            world.status(victim),
            ServerStatus::Active,
            "its end would free no disk"
        );
        world.create(&with_disk(normal(1), 10));
        world.run(40);
        assert_eq!(world.status(victim), status);
        let hungry = world.create(&with_disk(normal(1), 1));
        assert_eq!(world.status(hungry), ServerStatus::Error);

        world.host("host-a").hanging.insert("delete the server");
        world.delete(victim);
        world.flush();
        let hungry = world.create(&with_disk(normal(1), 1));
        assert_eq!(
            world.status(hungry),
            ServerStatus::Error,
            "the disk is there until the agent has said otherwise"
        );
        world.host("host-a").hanging.clear();
        world.flush();
        assert_eq!(world.status(victim), ServerStatus::Deleted);
        let fed = world.create(&with_disk(normal(1), 30));
        assert_eq!(world.status(fed), ServerStatus::Active);
    }
}

#[test]
fn a_stopped_victim_takes_no_room_while_it_is_deleted() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&with(&spot(4), &[("ebbtide:interruption", "stop")]));
    world.create(&normal(2));
    world.run(40);
    assert_eq!(world.status(victim), ServerStatus::Stopped);
    world.host("host-a").hanging.insert("delete the server");
    world.delete(victim);
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Deleting);
    let pet = world.create(&normal(2));
    assert_eq!(
        world.status(pet),
        ServerStatus::Active,
        "the room was free all the time"
    );
    world.host("host-a").hanging.clear();
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Deleted);
}
