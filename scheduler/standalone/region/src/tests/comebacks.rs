//! Servers that were stopped or hibernated for a preemptor are resumed automatically.

use super::host::Fate;
use super::world::{SimulatedRegion, normal, spot, with};
use crate::{ComebackConfig, CreateGroup, DisableHost, EnableHost, RegionConfig};
use ebbtide_model::message::{Body, Evacuated, EvacuationEnd, StartFailed};
use ebbtide_model::{
    Comeback, DecisionOutcome, Flavor, GroupId, GroupPolicy, Seconds, Server, ServerGroup,
    ServerId, ServerStatus,
};
use uuid::Uuid;

/// Longer than the first wait before a resumption, which is 30 s.
const A_WHILE: u32 = 45;

fn sleeper(vcpus: u32) -> Flavor {
    let specs = [
        ("ebbtide:interruption", "hibernate"),
        ("ebbtide:grace_seconds", "5"),
    ];
    with(&spot(vcpus), &specs)
}

fn config(comeback: ComebackConfig) -> RegionConfig {
    RegionConfig {
        comeback,
        ..RegionConfig::default()
    }
}

fn without_reserve() -> ComebackConfig {
    ComebackConfig {
        reserve_percent: 0,
        ..ComebackConfig::default()
    }
}

fn comeback(world: &SimulatedRegion, id: ServerId) -> Comeback {
    world.server(id).comeback.clone().expect("it was kept")
}

/// A server that was hibernated for another server, which runs in its place.
fn hibernated(world: &mut SimulatedRegion) -> (ServerId, ServerId) {
    let victim = world.create(&sleeper(4));
    let pet = world.create(&normal(4));
    world.run(10);
    assert_eq!(world.status(victim), ServerStatus::Hibernated);
    assert!(world.runs(pet));
    (victim, pet)
}

#[test]
fn a_hibernated_victim_goes_on_by_itself_when_there_is_room() {
    for kind in ["hibernate", "stop"] {
        let mut world = SimulatedRegion::new(&[("host-a", 4)]);
        let victim = world.create(&with(&spot(4), &[("ebbtide:interruption", kind)]));
        let pet = world.create(&normal(4));
        world.run(60);
        assert!(world.server(victim).waits_to_come_back());
        assert!(!world.runs(victim));
        world.delete(pet);
        world.run(3);
        let server: &Server = world.server(victim);
        assert_eq!(server.status, ServerStatus::Active, "{kind}");
        assert!(world.runs(victim));
        assert_eq!((server.fault.as_ref(), server.ended_at), (None, None));
        assert!(
            server.launched_at
                > comeback(&world, victim)
                    .resumed_at
                    .map(|at| at.minus(Seconds(1)))
        );
        let decision = server.decision_id.expect("it was decided");
        let decision = &world.database.decisions[&decision];
        assert!(matches!(&decision.outcome, DecisionOutcome::Placed(p) if p[0].victims.is_empty()));
    }
}

#[test]
fn it_stays_away_for_a_while_although_there_is_room() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    let not_before = comeback(&world, victim).not_before;
    world.delete(pet);
    world.flush();
    while world.now.plus(Seconds(1)) < not_before {
        world.run(1);
        assert_eq!(world.status(victim), ServerStatus::Hibernated);
    }
    world.run(2);
    assert!(world.runs(victim));
}

#[test]
fn no_server_resumes_into_promised_capacity() {
    let mut world = SimulatedRegion::with_config(&[("host-a", 8)], config(without_reserve()));
    let (first, second) = (world.create(&sleeper(4)), world.create(&sleeper(4)));
    let pets = [world.create(&normal(4)), world.create(&normal(4))];
    world.run(60);
    // The capacity of one pet is free, but a larger request waits for it and for another victim's.
    let spot = with(&spot(4), &[("ebbtide:grace_seconds", "300")]);
    world.delete(pets[0]);
    world.flush();
    let other = world.create(&spot);
    assert!(world.runs(other));
    world.delete(pets[1]);
    world.flush();
    let large = world.claim(&normal(8));
    world.flush();
    assert_eq!(world.status(large), ServerStatus::Waiting);
    world.run(200);
    assert_eq!(world.status(large), ServerStatus::Waiting);
    for id in [first, second] {
        assert_eq!(world.status(id), ServerStatus::Hibernated);
    }
    world.run(200);
    assert!(world.runs(large));
    world.delete(large);
    world.run(5);
    assert!(world.runs(first) && world.runs(second));
}

#[test]
fn who_was_deleted_by_its_owner_does_not_come_back() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    world.delete(victim);
    world.delete(pet);
    world.run(100);
    assert_eq!(world.status(victim), ServerStatus::Deleted);
}

#[test]
fn with_comebacks_switched_off_it_stays_as_it_is() {
    let off = ComebackConfig {
        enabled: false,
        ..ComebackConfig::default()
    };
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config(off));
    let (victim, pet) = hibernated(&mut world);
    world.delete(pet);
    world.run(4000);
    assert_eq!(world.status(victim), ServerStatus::Hibernated);
}

#[test]
fn a_server_that_is_evicted_again_soon_waits_twice_as_long() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, mut pet) = hibernated(&mut world);
    let mut stays = Vec::new();
    for _ in 0..9 {
        let now = comeback(&world, victim);
        stays.push(now.not_before.millis_since(now.since) / 1000);
        world.delete(pet);
        world.run(u32::try_from(stays[stays.len() - 1]).expect("seconds") + 2);
        assert!(world.runs(victim));
        pet = world.create(&normal(4));
        world.run(20);
    }
    assert_eq!(stays, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    // A server that has run for the whole window starts with the first wait again.
    world.delete(pet);
    world.run(3600 + 3610);
    assert!(world.runs(victim));
    world.create(&normal(4));
    world.run(20);
    let now = comeback(&world, victim);
    assert_eq!(
        (now.preempted, now.not_before),
        (1, now.since.plus(Seconds(30)))
    );
}

#[test]
fn an_attempt_that_fails_goes_back_into_the_queue_with_its_reason() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    world.delete(pet);
    world.flush();
    let fails = [Fate::NoRoom, Fate::NoRoom];
    world
        .host("host-a")
        .fates
        .insert("start the server", fails.into());
    world.run(A_WHILE);
    let now = comeback(&world, victim);
    assert_eq!(world.status(victim), ServerStatus::Hibernated);
    assert_eq!(now.tries, 1);
    let reason = now.reason.expect("it says why");
    assert!(reason.contains("not enough room"), "{reason}");
    world.run(40);
    assert_eq!(comeback(&world, victim).tries, 2);
    world.run(70);
    assert!(world.runs(victim));
    assert_eq!(world.unsent("delete"), 0);
}

#[test]
fn what_was_lost_is_not_made_anew() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    world.delete(pet);
    world.host("host-a").guests.remove(&victim);
    world.run(100);
    let now = comeback(&world, victim);
    assert!(!world.runs(victim));
    assert!(
        now.reason
            .expect("why")
            .contains("what was kept of it is not there")
    );
}

#[test]
fn a_silent_agent_is_asked_again_and_the_room_stays_taken() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    world.delete(pet);
    world.flush();
    world.host("host-a").hanging.insert("start the server");
    world.run(A_WHILE);
    assert_eq!(world.status(victim), ServerStatus::Building);
    world.run(700);
    let server = world.server(victim);
    assert_eq!((server.status, server.starts), (ServerStatus::Building, 3));
    // The capacity stays occupied: another request would have to preempt it.
    let small = world.create(&spot(1));
    assert_eq!(world.status(small), ServerStatus::Error);
    world.host("host-a").hanging.clear();
    world.run(5);
    assert!(world.runs(victim));
    assert_eq!(world.status(victim), ServerStatus::Active);
}

#[test]
fn an_answer_to_an_earlier_start_is_not_taken_for_this_ones() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    world.delete(pet);
    world.flush();
    world.host("host-a").hanging.insert("start the server");
    world.run(A_WHILE);
    for attempt in [0, 1, 3] {
        let late = StartFailed {
            server_id: victim,
            host: "host-a".to_owned(),
            reason: "long ago".to_owned(),
            attempt,
            may_run: false,
        };
        let report = world.report("host-a", Body::StartFailed(late));
        world.reports.push_back(report);
        world.flush();
        assert_eq!(world.status(victim), ServerStatus::Building, "{attempt}");
    }
}

#[test]
fn an_unknown_start_result_is_queried_again() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    world.delete(pet);
    world.flush();
    world.host("host-a").hanging.insert("start the server");
    world.run(A_WHILE);
    let unknown = StartFailed {
        server_id: victim,
        host: "host-a".to_owned(),
        reason: "the result is unknown".to_owned(),
        attempt: world.server(victim).starts,
        may_run: true,
    };
    let report = world.report("host-a", Body::StartFailed(unknown));
    world.reports.push_back(report);
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Building);
    let before = world.server(victim).starts;
    world.run(70);
    assert_eq!(world.server(victim).starts, before + 1);
}

#[test]
fn a_late_word_about_an_evacuation_of_an_earlier_life_does_not_end_this_one() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&sleeper(4));
    world.host("host-a").hanging.insert("hibernate the server");
    let pet = world.create(&normal(4));
    world.run(100);
    // The agent was too slow: the evacuation failed, and the victim is selected again for the next
    // request.
    let first = world.evacuation(victim).id;
    assert_eq!(world.status(pet), ServerStatus::Error);
    world.host("host-a").hanging.clear();
    world.run(400);
    let hibernated = world.status(victim) == ServerStatus::Hibernated;
    if !hibernated {
        let pet = world.create(&normal(4));
        world.run(20);
        world.delete(pet);
    }
    world.run(100);
    assert!(world.runs(victim));
    let late = Evacuated {
        evacuation_id: first,
        host: "host-a".to_owned(),
        server_id: victim,
        how: EvacuationEnd::Hibernated,
        at: world.now,
        unbilled_seconds: None,
        storage: None,
    };
    let report = world.report("host-a", Body::Evacuated(late));
    world.reports.push_back(report);
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Active);
}

#[test]
fn a_restarted_scheduler_lets_the_same_ones_come_back() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    let before = comeback(&world, victim);
    world.restart_scheduler();
    world.delete(pet);
    world.run(15);
    assert_eq!(comeback(&world, victim), before);
    world.restart_scheduler();
    world.run(20);
    assert!(world.runs(victim));
    // A restart in the middle of the resumption.
    let pet = world.create(&normal(4));
    world.run(20);
    world.delete(pet);
    world.host("host-a").hanging.insert("start the server");
    world.run(70);
    assert_eq!(world.status(victim), ServerStatus::Building);
    world.restart_scheduler();
    world.host("host-a").hanging.clear();
    world.run(2);
    assert_eq!(world.status(victim), ServerStatus::Active);
}

#[test]
fn projects_take_turns_and_the_longest_wait_is_first() {
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config(without_reserve()));
    let mut of = |project: &str| {
        let mut request = world.request(&sleeper(1), 1);
        project.clone_into(&mut request.project_id);
        let (servers, _) = world.ask(request).expect("a right request");
        world.run(1);
        servers[0].id
    };
    let rich = [of("rich"), of("rich"), of("rich")];
    let poor = of("poor");
    let pets = [(); 4].map(|()| world.create(&normal(1)));
    world.run(100);
    for id in rich.iter().chain([&poor]) {
        assert_eq!(world.status(*id), ServerStatus::Hibernated);
    }
    let mut order = Vec::new();
    for pet in pets {
        world.delete(pet);
        world.run(3);
        let back = rich.iter().chain([&poor]).copied();
        let new: Vec<ServerId> = back
            .filter(|id| world.runs(*id) && !order.contains(id))
            .collect();
        order.extend(new);
    }
    // All were evicted at the same time: the smaller id goes first, then the project without a
    // resumption.
    assert_eq!(order, [rich[0], poor, rich[1], rich[2]]);
}

#[test]
fn small_ones_may_pass_a_large_one_and_do_not_keep_it_waiting_for_ever() {
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config(without_reserve()));
    let large = world.create(&sleeper(4));
    let pets = [(); 2].map(|()| world.create(&normal(2)));
    world.run(60);
    assert_eq!(world.status(large), ServerStatus::Hibernated);
    world.delete(pets[0]);
    world.run(1);
    let small = world.create(&sleeper(2));
    let third = world.create(&normal(2));
    world.run(60);
    assert_eq!(world.status(small), ServerStatus::Hibernated);
    world.delete(third);
    world.run(5);
    // The large one does not fit, so the small one goes before it.
    assert!(world.runs(small));
    let third = world.create(&normal(2));
    world.run(600);
    assert_eq!(world.status(small), ServerStatus::Hibernated);
    world.delete(third);
    world.run(60);
    // Now the large one reserves the capacity, until it starts or its period is over.
    assert_eq!(world.status(small), ServerStatus::Hibernated);
    world.delete(pets[1]);
    world.run(2);
    assert!(world.runs(large));
}

#[test]
fn the_reserve_stays_free_unless_the_host_is_empty() {
    let reserve = ComebackConfig {
        reserve_percent: 50,
        ..ComebackConfig::default()
    };
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config(reserve));
    let victim = world.create(&sleeper(3));
    let pets = [world.create(&normal(3)), world.create(&normal(1))];
    world.run(60);
    world.delete(pets[0]);
    world.run(100);
    assert_eq!(world.status(victim), ServerStatus::Hibernated);
    world.delete(pets[1]);
    world.run(2);
    assert!(world.runs(victim));
}

#[test]
fn only_so_many_come_back_at_once() {
    let two = ComebackConfig {
        at_once: 2,
        ..without_reserve()
    };
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config(two));
    let all = [(); 4].map(|()| world.create(&sleeper(1)));
    let pet = world.create(&normal(4));
    world.run(60);
    world.delete(pet);
    world.flush();
    world.host("host-a").hanging.insert("start the server");
    world.run(20);
    let building = |world: &SimulatedRegion| {
        let of = all
            .iter()
            .filter(|id| world.status(**id) == ServerStatus::Building);
        of.count()
    };
    assert_eq!(building(&world), 2);
    world.host("host-a").hanging.clear();
    world.run(5);
    assert!(all.iter().all(|id| world.runs(*id)));
}

#[test]
fn who_may_not_be_there_any_more_hears_why() {
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config(without_reserve()));
    let apart = ServerGroup {
        id: GroupId(Uuid::from_u128(77)),
        name: "apart".to_owned(),
        project_id: "cattle".to_owned(),
        policy: GroupPolicy::AntiAffinity,
        max_server_per_host: 1,
    };
    world
        .command(CreateGroup {
            group: apart.clone(),
            quota: None,
        })
        .expect("a new group");
    let mut grouped = |flavor: &Flavor| {
        let mut request = world.request(flavor, 1);
        request.group_id = Some(apart.id);
        let (servers, _) = world.ask(request).expect("a right request");
        world.flush();
        servers[0].id
    };
    let first = grouped(&sleeper(2));
    let pet = world.create(&normal(4));
    world.run(10);
    assert_eq!(world.status(first), ServerStatus::Hibernated);
    world.delete(pet);
    world.flush();
    let mut request = world.request(&spot(2), 1);
    request.group_id = Some(apart.id);
    let (servers, _) = world.ask(request).expect("a right request");
    world.flush();
    assert!(world.runs(servers[0].id));
    world.run(A_WHILE);
    let now = comeback(&world, first);
    assert_eq!(world.status(first), ServerStatus::Hibernated);
    let reason = now.reason.expect("why");
    assert!(
        reason.to_lowercase().contains("group") || reason.contains("affinity"),
        "{reason}"
    );
    world.delete(servers[0].id);
    world.run(120);
    assert!(world.runs(first));
}

#[test]
fn no_server_resumes_on_a_host_that_is_disabled_or_down() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    let name = "host-a".to_owned();
    let reason = "repair".to_owned();
    world
        .command(DisableHost {
            name: name.clone(),
            reason,
        })
        .expect("it is there");
    world.delete(pet);
    world.run(100);
    assert_eq!(world.status(victim), ServerStatus::Hibernated);
    world.command(EnableHost(name)).expect("it is there");
    world.run(2);
    assert!(world.runs(victim));
}

#[test]
fn who_is_on_its_way_back_is_not_taken_for_running_because_it_ran_in_an_earlier_life() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let (victim, pet) = hibernated(&mut world);
    // Another scheduler knows only what is in the database.
    world.restart_scheduler();
    world.delete(pet);
    world.host("host-a").hanging.insert("start the server");
    world.run(A_WHILE);
    assert_eq!(world.status(victim), ServerStatus::Building);
    world.create(&normal(4));
    assert_eq!(world.status(victim), ServerStatus::Evacuating);
    // The agent is busy with the start and does not answer the notice in time.
    world.run(35);
    assert_eq!(world.status(victim), ServerStatus::Building);
    world.host("host-a").hanging.clear();
    world.run(5);
    assert!(world.server(victim).status != ServerStatus::Building);
}
