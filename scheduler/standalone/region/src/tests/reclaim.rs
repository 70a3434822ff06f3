//! Hosts that an outside owner takes back.

use super::world::{SimulatedRegion, normal, spot, with};
use crate::{
    DisableHost, EnableHost, PutBudget, ReclaimHost, RegionConfig, RegionError, ReturnHost,
};
use ebbtide_engine::HostReclaim;
use ebbtide_model::{
    BudgetScope, DisruptionBudget, EvacuationCause, EvacuationState, Flavor, HostHealth,
    ReclaimDeadline, ReclaimTerms, Seconds, ServerId, ServerStatus, StayReason,
};

fn terms(owner: &str) -> ReclaimTerms {
    ReclaimTerms {
        owner: owner.to_owned(),
        reason: "job 1234".to_owned(),
        deadline: ReclaimDeadline::None,
        max_cost: None,
    }
}

fn within(seconds: u32) -> ReclaimTerms {
    ReclaimTerms {
        deadline: ReclaimDeadline::After(Seconds(seconds)),
        ..terms("slurm:1")
    }
}

fn slow(vcpus: u32, grace: &str) -> Flavor {
    with(&spot(vcpus), &[("ebbtide:grace_seconds", grace)])
}

impl SimulatedRegion {
    fn reclaim(&mut self, host: &str, terms: ReclaimTerms) -> Result<HostReclaim, RegionError> {
        self.command(ReclaimHost {
            name: host.to_owned(),
            terms,
        })
    }

    fn give_back(&mut self, host: &str) {
        let back = ReturnHost {
            name: host.to_owned(),
            keep_disabled: false,
        };
        self.command(back).expect("it is there");
    }

    fn health(&self, host: &str) -> (HostHealth, Option<String>) {
        let host = self.region.host(host).expect("it is there");
        (host.health, host.host.disabled_reason)
    }

    fn stays(&self, host: &str) -> Vec<(ServerId, StayReason)> {
        let reclaim = self.region.reclaim(host, self.now).expect("it is there");
        reclaim.expect("it is reclaimed").eviction.stay
    }
}

#[test]
fn every_preemptible_server_of_the_host_leaves_and_no_new_one_comes() {
    let mut world = SimulatedRegion::new(&[("host-a", 8), ("host-b", 2)]);
    let flavor = slow(2, "30");
    let (one, two) = (
        world.create_on("host-a", &flavor),
        world.create_on("host-a", &flavor),
    );
    let pet = world.create_on("host-a", &normal(2));
    let elsewhere = world.create_on("host-b", &flavor);
    world.run(5);
    let begun = world.reclaim("host-a", terms("slurm:1")).unwrap();
    assert_eq!(begun.eviction.stay, [(pet, StayReason::Normal)]);
    assert_eq!(begun.reclaim.charged.len(), 2);
    let reason = Some("reclaimed by slurm:1: job 1234".to_owned());
    assert_eq!(world.health("host-a"), (HostHealth::Disabled, reason));
    for id in [one, two] {
        let evacuation = world.evacuation(id);
        assert_eq!(evacuation.cause, EvacuationCause::Reclaim);
        assert_eq!(evacuation.reclaim_owner.as_deref(), Some("slurm:1"));
        assert_eq!(evacuation.victim_name, world.server(id).name);
        assert_eq!(
            (evacuation.preemptor_id, evacuation.grace),
            (None, Seconds(30))
        );
    }
    world.run(20);
    assert!(world.runs(one), "its grace period runs");
    world.run(20);
    assert_eq!(world.status(one), ServerStatus::Preempted);
    assert_eq!(world.status(two), ServerStatus::Preempted);
    let fault = world.server(one).fault.as_ref().expect("it says why");
    assert!(fault.message.contains("taken back"), "{fault:?}");
    assert!(world.runs(pet) && world.runs(elsewhere));
    let late = world.create(&spot(2));
    assert_eq!(world.status(late), ServerStatus::Error, "no host takes it");
    assert_eq!(world.stays("host-a"), [(pet, StayReason::Normal)]);
    world.give_back("host-a");
    assert_eq!(world.health("host-a"), (HostHealth::Up, None));
    let next = world.create(&spot(2));
    world.run(3);
    assert!(world.runs(next));
}

#[test]
fn no_grace_period_is_longer_than_the_deadline_and_repeating_changes_nothing() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let patient = world.create(&slow(2, "300"));
    let quick = world.create(&slow(2, "5"));
    world.run(5);
    let first = world.reclaim("host-a", within(60)).unwrap();
    world.run(10);
    let second = world.reclaim("host-a", within(60)).unwrap();
    assert_eq!(first.reclaim, second.reclaim);
    assert_eq!(world.evacuation(patient).grace, Seconds(60));
    assert_eq!(world.evacuation(quick).grace, Seconds(5));
    world.run(55);
    for id in [patient, quick] {
        assert_eq!(world.status(id), ServerStatus::Preempted);
        assert_eq!(world.evacuations(id).len(), 1);
    }
}

#[test]
fn a_host_that_is_returned_spares_what_has_not_been_acted_upon() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let quick = world.create(&slow(2, "2"));
    let patient = world.create(&slow(2, "300"));
    world.run(5);
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.run(10);
    assert_eq!(world.status(quick), ServerStatus::Preempted);
    world.give_back("host-a");
    world.run(5);
    assert_eq!(world.state(patient), EvacuationState::Spared);
    assert_eq!(world.status(patient), ServerStatus::Active);
    let why = world.evacuation(patient).reason.clone();
    assert_eq!(why.as_deref(), Some("the host was returned by its owner"));
    world.give_back("host-a");
    world.run(400);
    assert!(world.runs(patient), "returning it twice is safe");
    assert_eq!(world.evacuations(patient).len(), 1);
}

#[test]
fn a_notice_that_was_never_sent_is_withdrawn() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&slow(2, "5"));
    world.run(5);
    world.broker_up = false;
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.give_back("host-a");
    assert_eq!(world.unsent("notice"), 0);
    world.broker_up = true;
    world.run(60);
    assert!(world.runs(id));
}

#[test]
fn a_return_spares_no_victim_of_a_preemption() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&slow(4, "60"));
    world.run(5);
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.give_back("host-a");
    world.run(3);
    let pet = world.create(&normal(4));
    assert_eq!(world.status(pet), ServerStatus::Waiting);
    // The owner takes the host again and returns it while the victim leaves for a normal server.
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.give_back("host-a");
    world.run(70);
    assert_eq!(world.status(id), ServerStatus::Preempted);
    assert!(world.runs(pet));
}

#[test]
fn what_may_not_leave_now_is_named_and_leaves_as_soon_as_it_may() {
    let config = RegionConfig {
        default_protected_seconds: Seconds(100),
        ..RegionConfig::default()
    };
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config);
    let flavor = with(&spot(2), &[("ebbtide:grace_seconds", "5")]);
    let id = world.create(&flavor);
    world.run(10);
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    let until = world.server(id).launched_at.expect("it runs");
    let until = until.plus(Seconds(100));
    assert_eq!(
        world.stays("host-a"),
        [(id, StayReason::Protected { until })]
    );
    world.restart_scheduler();
    world.run(60);
    assert!(world.runs(id));
    world.run(60);
    assert_eq!(world.status(id), ServerStatus::Preempted);
    assert_eq!(world.stays("host-a"), []);
}

#[test]
fn a_disruption_budget_counts_reclaims_and_limits_them() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let flavor = slow(2, "0");
    let all: Vec<ServerId> = (0..3).map(|_| world.create(&flavor)).collect();
    world.run(5);
    let budget = DisruptionBudget {
        scope: BudgetScope::Project("cattle".to_owned()),
        max_victims: 2,
        window: Seconds(100),
    };
    world.command(PutBudget(budget)).unwrap();
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.run(10);
    let gone = |world: &SimulatedRegion| {
        let gone = |id: &&ServerId| world.status(**id) == ServerStatus::Preempted;
        all.iter().filter(gone).count()
    };
    assert_eq!(gone(&world), 2);
    let stays: Vec<_> = world
        .stays("host-a")
        .into_iter()
        .map(|(_, why)| why)
        .collect();
    assert_eq!(stays, [StayReason::Budget]);
    world.run(100);
    assert_eq!(gone(&world), 3, "the window has moved on");
}

#[test]
fn the_maximum_cost_holds_over_the_whole_reclaim() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let flavor = slow(2, "0");
    let all: Vec<ServerId> = (0..3).map(|_| world.create(&flavor)).collect();
    world.run(100);
    // The default cost module: the seconds of the started hour, a little more than 100 each.
    let limited = ReclaimTerms {
        max_cost: Some(250.0),
        ..terms("slurm:1")
    };
    let begun = world.reclaim("host-a", limited).unwrap();
    assert_eq!(begun.reclaim.charged.len(), 2);
    world.run(100);
    let stays = world.stays("host-a");
    assert!(
        matches!(stays[..], [(id, StayReason::MaxCost { cost })] if all.contains(&id) && cost > 100.0)
    );
    let unlimited = world.reclaim("host-a", terms("slurm:1")).unwrap();
    assert_eq!(unlimited.reclaim.since, begun.reclaim.since);
    world.run(10);
    assert_eq!(world.stays("host-a"), []);
}

#[test]
fn on_a_silent_host_servers_get_their_notices_when_it_is_heard_again() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&slow(2, "5"));
    world.run(5);
    world.host("host-a").crash();
    world.run(120);
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    assert_eq!(world.stays("host-a"), [(id, StayReason::HostSilent)]);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(40);
    assert_eq!(world.status(id), ServerStatus::Preempted);
}

#[test]
fn a_failed_evacuation_is_tried_again_after_its_rest() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&slow(2, "1"));
    world.run(5);
    world.host("host-a").crash();
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.run(60);
    assert_eq!(world.state(id), EvacuationState::Failed);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(400);
    assert_eq!(world.status(id), ServerStatus::Preempted);
    let reclaim = world.region.reclaim("host-a", world.now).unwrap();
    let charged = reclaim.expect("it is reclaimed").reclaim.charged;
    assert_eq!(charged.len(), 1, "the repeated evacuation is charged once");
}

#[test]
fn a_preview_says_the_same_and_changes_nothing() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&slow(2, "5"));
    world.run(5);
    let previewed = world
        .region
        .preview_reclaim("host-a", within(60), world.now);
    let previewed = previewed.unwrap();
    assert_eq!(previewed.eviction.leave.len(), 1);
    assert_eq!(world.region.reclaims(world.now).unwrap(), []);
    world.run(20);
    assert!(world.runs(id));
    let begun = world.reclaim("host-a", within(60)).unwrap();
    let (leaves, _) = previewed.eviction.leave[0];
    assert!(begun.reclaim.charged.contains_key(&leaves));
}

#[test]
fn one_owner_has_a_host_and_operators_do_not_enable_it() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    let other = world.reclaim("host-a", terms("maintenance")).unwrap_err();
    assert_eq!(other.code(), "EB-REGION-008");
    let enable = world.command(EnableHost("host-a".to_owned())).unwrap_err();
    assert_eq!(enable.code(), "EB-REGION-008");
    let unknown = world.reclaim("host-z", terms("slurm:1")).unwrap_err();
    assert_eq!(unknown.code(), "EB-REGION-002");
    let past = ReclaimTerms {
        deadline: ReclaimDeadline::At(world.now),
        ..terms("slurm:1")
    };
    world.reclaim("host-a", past).expect_err("it is over");
}

#[test]
fn an_operators_reason_comes_back_with_the_host() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let disable = |name: &str| DisableHost {
        name: name.to_owned(),
        reason: "new memory".to_owned(),
    };
    world.command(disable("host-a")).unwrap();
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.reclaim("host-b", terms("slurm:1")).unwrap();
    world.command(disable("host-b")).unwrap();
    let reason = Some("reclaimed by slurm:1: job 1234".to_owned());
    assert_eq!(world.health("host-b").1, reason);
    for host in ["host-a", "host-b"] {
        world.give_back(host);
        let reason = Some("new memory".to_owned());
        assert_eq!(world.health(host), (HostHealth::Disabled, reason));
    }
    let mut third = SimulatedRegion::new(&[("host-a", 4)]);
    third.reclaim("host-a", terms("slurm:1")).unwrap();
    let keep = ReturnHost {
        name: "host-a".to_owned(),
        keep_disabled: true,
    };
    third.command(keep).unwrap();
    let reason = Some("returned by slurm:1".to_owned());
    assert_eq!(third.health("host-a"), (HostHealth::Disabled, reason));
}

#[test]
fn a_server_that_is_kept_does_not_come_back_to_a_reclaimed_host() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let stops = [
        ("ebbtide:grace_seconds", "2"),
        ("ebbtide:interruption", "stop"),
    ];
    let id = world.create(&with(&spot(2), &stops));
    world.run(5);
    world.reclaim("host-a", terms("slurm:1")).unwrap();
    world.run(120);
    assert_eq!(world.status(id), ServerStatus::Stopped);
    assert_eq!(world.stays("host-a"), [(id, StayReason::Kept)]);
    world.give_back("host-a");
    world.run(120);
    assert_eq!(world.status(id), ServerStatus::Active);
}
