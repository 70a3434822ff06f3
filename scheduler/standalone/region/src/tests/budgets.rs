//! Disruption budgets.

use super::world::{SimulatedRegion, normal, spot, with};
use crate::{CreateGroup, DeleteBudget, DeleteGroup, PutBudget};
use ebbtide_model::message::{Body, Evacuated, EvacuationEnd};
use ebbtide_model::{
    BudgetScope, DisruptionBudget, EvacuationState, GroupId, GroupPolicy, Seconds, ServerGroup,
    ServerStatus,
};
use uuid::Uuid;

fn budget(world: &mut SimulatedRegion, scope: BudgetScope, max_victims: u32, window: u32) {
    let budget = DisruptionBudget {
        scope,
        max_victims,
        window: Seconds(window),
    };
    world.command(PutBudget(budget)).unwrap();
}

fn cattle() -> BudgetScope {
    BudgetScope::Project("cattle".to_owned())
}

#[test]
fn a_project_loses_no_more_than_its_budget_within_the_window() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let flavor = with(&spot(2), &[("ebbtide:grace_seconds", "0")]);
    for _ in 0..4 {
        world.create(&flavor);
    }
    budget(&mut world, cattle(), 2, 100);
    let too_much = world.create(&normal(6));
    assert_eq!(world.status(too_much), ServerStatus::Error);
    let pet = world.create(&normal(4));
    world.run(3);
    assert!(world.runs(pet));
    let none_left = world.create(&normal(2));
    assert_eq!(world.status(none_left), ServerStatus::Error);
    world.restart_scheduler();
    let none_left = world.create(&normal(2));
    assert_eq!(
        world.status(none_left),
        ServerStatus::Error,
        "the budget remembers across restarts"
    );
    world.run(100);
    let later = world.create(&normal(2));
    world.run(3);
    assert!(world.runs(later), "the window has moved on");
}

#[test]
fn an_evacuation_under_way_counts_however_old_it_is_and_a_spared_victim_never() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let slow = with(&spot(2), &[("ebbtide:grace_seconds", "300")]);
    world.create(&slow);
    world.create(&slow);
    budget(&mut world, cattle(), 1, 10);
    let first = world.create(&normal(2));
    world.run(60);
    let second = world.create(&normal(2));
    assert_eq!(world.status(second), ServerStatus::Error);
    world.delete(first);
    world.flush();
    let third = world.create(&normal(2));
    assert_eq!(world.status(third), ServerStatus::Waiting);
}

#[test]
fn a_group_has_a_budget_of_its_own() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let id = GroupId(Uuid::from_u128(77));
    let group = ServerGroup {
        id,
        name: "quorum".to_owned(),
        project_id: "cattle".to_owned(),
        policy: GroupPolicy::SoftAntiAffinity,
        max_server_per_host: 1,
    };
    world.command(CreateGroup { group, quota: None }).unwrap();
    let mut request = world.request(&spot(2), 3);
    request.group_id = Some(id);
    let (members, _) = world.ask(request).unwrap();
    let other = world.create(&spot(2));
    budget(&mut world, BudgetScope::Group(id), 1, 1000);
    let pet = world.create(&normal(4));
    let chosen = members
        .iter()
        .filter(|s| !world.evacuations(s.id).is_empty())
        .count();
    assert_eq!(chosen, 1);
    assert_eq!(world.evacuations(other).len(), 1);
    assert_eq!(world.status(pet), ServerStatus::Waiting);
    let scope = BudgetScope::Group(id);
    world.command(DeleteGroup("quorum".to_owned())).unwrap();
    assert!(
        !world.database.budgets.contains_key(&scope),
        "its budget goes with it"
    );
    let error = world.command(DeleteBudget(scope)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-002");
}

#[test]
fn one_victim_counts_once_however_many_evacuations_it_took() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(2));
    let other = world.create(&normal(2));
    budget(&mut world, cattle(), 2, 3000);
    world.host("host-a").crash();
    world.create(&normal(2));
    world.run(40);
    world.host("host-a").queue.clear();
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(310);
    world.host("host-a").crash();
    world.create(&normal(2));
    let [first, second] = world.evacuations(victim)[..] else {
        panic!("it was chosen twice")
    };
    assert_eq!(
        (first.state, second.state.is_final()),
        (EvacuationState::Failed, false)
    );
    let gone = Evacuated {
        evacuation_id: first.id,
        host: "host-a".to_owned(),
        server_id: victim,
        how: EvacuationEnd::Terminated,
        at: world.now,
        unbilled_seconds: None,
        storage: None,
    };
    let report = world.report("host-a", Body::Evacuated(gone));
    world.reports.push_back(report);
    world.read_one();
    let ends: Vec<EvacuationState> = world.evacuations(victim).iter().map(|e| e.state).collect();
    assert_eq!(ends, [EvacuationState::Evacuated; 2]);
    world.host("host-a").guests.remove(&victim);
    let now = world.now;
    world.host("host-a").restart(now);
    world.delete(other);
    world.run(15);
    world.create(&spot(2));
    let pet = world.create(&normal(2));
    assert_eq!(
        world.status(pet),
        ServerStatus::Waiting,
        "one of two is left"
    );
    let none_left = world.create(&normal(2));
    assert_eq!(world.status(none_left), ServerStatus::Error);
}

#[test]
fn memory_does_not_grow_with_what_is_over() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let flavor = with(&spot(4), &[("ebbtide:grace_seconds", "0")]);
    for _ in 0..20 {
        let cattle = world.create(&flavor);
        let pet = world.create(&normal(4));
        world.run(3);
        assert_eq!(world.status(cattle), ServerStatus::Preempted);
        world.delete(pet);
        world.run(1);
    }
    // Evacuations of the last minute, and of the ten seconds until the next purge.
    let kept = world.region.evacuations.len();
    assert!((15..=18).contains(&kept), "{kept} of 20 in 80 s");
    world.run(615);
    let region = &world.region;
    assert_eq!(region.evacuations.len(), 0);
    assert_eq!(region.servers.deleted().len(), 0);
    assert_eq!((region.servers.len(), region.servers.rest_count()), (0, 0));
    assert_eq!(region.servers.calls().len(), 0);
    // The indexes follow from the records, so they are empty, too.
    assert_eq!(region.check_consistency(), Ok(()));
}
