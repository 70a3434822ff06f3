//! Every life that ends is recorded once, with how it ended.

use super::world::{SimulatedRegion, normal, spot, with};
use ebbtide_model::{LifeEnd, PastLife, Seconds, ServerId, ServerStatus, Timestamp};

fn lives(world: &SimulatedRegion, id: ServerId) -> Vec<&PastLife> {
    let all = world.database.lives.values();
    all.filter(|life| life.server_id == id).collect()
}

fn ends(world: &SimulatedRegion, id: ServerId) -> Vec<LifeEnd> {
    lives(world, id).into_iter().map(|life| life.end).collect()
}

#[test]
fn a_victim_has_lived_from_its_launch_until_it_was_gone() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.run(100);
    let launched = world.server(victim).launched_at.expect("it runs");
    world.create(&normal(4));
    world.run(100);
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    let written = lives(&world, victim);
    assert_eq!(written.len(), 1);
    let life = written[0];
    assert_eq!((life.end, life.launched_at), (LifeEnd::Preempted, launched));
    assert_eq!(Some(life.ended_at), world.server(victim).ended_at);
    assert_eq!((life.host.as_str(), life.zone.as_str()), ("host-a", "nova"));
    assert!(life.preemptible);
}

#[test]
fn an_owner_who_deletes_it_has_ended_it_unless_it_had_its_notice_already() {
    let slow = with(&spot(4), &[("ebbtide:grace_seconds", "60")]);
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let first = world.create_on("host-a", &slow);
    let second = world.create_on("host-b", &slow);
    world.run(10);
    world.delete(first);
    let asked = world.now;
    world.run(10);
    assert_eq!(ends(&world, first), [LifeEnd::Deleted]);
    assert_eq!(lives(&world, first)[0].ended_at, asked);
    world.create_on("host-a", &normal(4));
    world.create_on("host-b", &normal(4));
    world.run(5);
    assert_eq!(world.status(second), ServerStatus::Evacuating);
    world.delete(second);
    world.run(10);
    assert_eq!(ends(&world, second), [LifeEnd::Preempted]);
}

#[test]
fn one_that_was_spared_and_is_deleted_later_was_ended_by_its_owner() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    world.run(5);
    world.delete(pet);
    world.run(60);
    assert_eq!(ends(&world, victim), []);
    world.delete(victim);
    world.run(10);
    assert_eq!(ends(&world, victim), [LifeEnd::Deleted]);
}

#[test]
fn one_that_comes_back_has_several_lives_and_the_end_of_a_lifetime_is_named() {
    let specs = [
        ("ebbtide:interruption", "stop"),
        ("ebbtide:grace_seconds", "20"),
        ("ebbtide:max_lifetime_seconds", "300"),
    ];
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&with(&spot(4), &specs));
    world.run(310);
    assert_eq!(ends(&world, id), [LifeEnd::MaxLifetime]);
    world.run(90);
    assert_eq!(world.status(id), ServerStatus::Active);
    world.delete(id);
    world.run(10);
    assert_eq!(ends(&world, id), [LifeEnd::MaxLifetime, LifeEnd::Deleted]);
    let written = lives(&world, id);
    assert!(written[0].ended_at <= written[1].launched_at);
    let first = written[0];
    let lived = first.ended_at.millis_since(first.launched_at);
    assert!(
        lived >= 280_000,
        "a lifetime less its grace period: {lived} ms"
    );
}

#[test]
fn one_that_is_not_there_any_more_was_lost_and_one_that_turns_up_again_lives_on() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&spot(4));
    world.run(30);
    let launched = world.server(id).launched_at;
    let gone = world.host("host-a").guests.remove(&id).unwrap();
    world.run(60);
    assert_eq!(world.status(id), ServerStatus::Error);
    assert_eq!(ends(&world, id), [LifeEnd::Lost]);
    world.host("host-a").guests.insert(id, gone);
    world.run(60);
    assert_eq!(world.status(id), ServerStatus::Active);
    world.delete(id);
    world.run(10);
    // The record of the whole life has replaced that of its first part.
    assert_eq!(ends(&world, id), [LifeEnd::Deleted]);
    assert_eq!(Some(lives(&world, id)[0].launched_at), launched);
}

#[test]
fn one_that_never_ran_has_no_life() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let _running = world.create(&with(&spot(4), &[("ebbtide:grace_seconds", "60")]));
    world.run(5);
    let pet = world.create(&normal(4));
    world.run(5);
    assert_eq!(world.status(pet), ServerStatus::Waiting);
    world.delete(pet);
    world.run(Seconds(10).0);
    assert!(lives(&world, pet).is_empty());
}

#[test]
fn one_that_lived_before_it_was_adopted_and_is_spared_while_it_is_started_has_ended_no_life() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.host("host-a").hanging.insert("start the server");
    let id = world.new_id();
    let mut adopt = world.adopt("host-a", &spot(4), id);
    adopt.launched_at = Some(Timestamp::from_millis(world.now.as_millis() - 1_000));
    world.command(adopt).expect("there is room");
    world.flush();
    let pet = world.create(&normal(4));
    assert_eq!(world.status(id), ServerStatus::Evacuating);
    world.delete(pet);
    world.run(25);
    assert_eq!(world.status(id), ServerStatus::Building);
    assert!(lives(&world, id).is_empty());
    world.host("host-a").hanging.clear();
    world.run(5);
    assert_eq!(world.status(id), ServerStatus::Active);
    world.delete(id);
    world.run(10);
    assert_eq!(ends(&world, id), [LifeEnd::Deleted]);
}
