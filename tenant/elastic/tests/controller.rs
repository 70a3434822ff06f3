//! The manager alone, driven by figures, as a live cluster would drive it.

use ebbtide_elastic::{
    Controller, ControllerAction, ControllerEvent, ElasticError, ElasticPolicy, ServerId,
    ServerState,
};
use proptest::prelude::*;

const MINUTE: u64 = 60_000_000;

fn load(long: u32) -> ControllerEvent {
    let on_demand = 3_960;
    ControllerEvent::Load { long, on_demand }
}

fn idle(_: ServerId) -> u64 {
    0
}

fn policy() -> ElasticPolicy {
    ElasticPolicy::new(80, 3.0, 0.5).unwrap()
}

fn launched(actions: &[ControllerAction]) -> Vec<ServerId> {
    let ids = actions.iter().filter_map(|action| match action {
        ControllerAction::Launch(id) => Some(*id),
        _ => None,
    });
    ids.collect()
}

/// A controller with `count` servers that are up, at time 0.
fn with_up(policy: ElasticPolicy, long: u32, count: usize) -> Controller {
    let mut controller = Controller::new(policy);
    let actions = controller.handle(0, load(long), &mut idle).unwrap();
    assert_eq!(launched(&actions).len(), count);
    for id in launched(&actions) {
        controller
            .handle(0, ControllerEvent::Up(id), &mut idle)
            .unwrap();
    }
    controller
}

#[test]
fn the_formulas_are_those_of_the_paper() {
    let text = include_str!("vectors/004_coaster.json");
    let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
    let rows = vectors["formula_vectors"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap();
        let policy = ElasticPolicy::new(number("N") as u32, number("r"), number("p")).unwrap();
        assert_eq!(f64::from(policy.budget()), number("K"), "{row}");
        assert_eq!(f64::from(policy.on_demand()), number("on_demand"), "{row}");
        assert_eq!(f64::from(policy.most()), number("T"), "{row}");
    }
}

#[test]
fn what_cannot_be_split_is_not_paid_twice() {
    // N p = 2.5: two servers are given up, and r = 2.7 buys five for them.
    let policy = ElasticPolicy::new(5, 2.7, 0.5).unwrap();
    assert_eq!((policy.on_demand(), policy.budget()), (3, 5));
}

#[test]
fn growth_is_aggressive_and_counts_what_is_on_its_way() {
    let mut controller = Controller::new(policy());
    assert_eq!(controller.handle(0, load(3_762), &mut idle), Ok(vec![]));
    let actions = controller.handle(1, load(3_800), &mut idle).unwrap();
    assert_eq!(launched(&actions).len(), 40);
    assert_eq!(controller.handle(2, load(3_800), &mut idle), Ok(vec![]));
    let actions = controller.handle(3, load(3_801), &mut idle).unwrap();
    assert_eq!(launched(&actions), [ServerId(40), ServerId(41)]);
}

#[test]
fn a_budget_used_up_asks_for_nothing() {
    let mut controller = with_up(policy(), 3_920, 120);
    assert_eq!(controller.handle(1, load(3_960), &mut idle), Ok(vec![]));
    assert_eq!(controller.census().active, 120);
    // Draining servers are still paid: what they leave can be used when they are gone.
    let drained = controller.handle(2, load(3_800), &mut idle).unwrap();
    assert!(matches!(drained.as_slice(), [ControllerAction::Drain(_)]));
    assert_eq!(controller.census().all(), 120);
}

#[test]
fn shrinking_is_one_server_a_report_the_one_with_least_to_do() {
    let mut controller = with_up(policy(), 3_800, 40);
    let mut work = |id: ServerId| if id == ServerId(7) { 1 } else { 5 };
    let actions = controller.handle(1, load(3_000), &mut work);
    assert_eq!(actions, Ok(vec![ControllerAction::Drain(ServerId(7))]));
    assert_eq!(
        controller.handle(2, ControllerEvent::Tick, &mut work),
        Ok(vec![])
    );
    // Among equals the youngest.
    let actions = controller.handle(3, load(3_000), &mut work);
    assert_eq!(actions, Ok(vec![ControllerAction::Drain(ServerId(39))]));
}

#[test]
fn with_a_pace_time_alone_goes_on_shrinking() {
    let policy = policy().release_interval(2 * MINUTE).unwrap();
    let mut controller = with_up(policy, 3_800, 40);
    assert_eq!(
        controller.handle(MINUTE, load(0), &mut idle).unwrap().len(),
        1
    );
    assert_eq!(
        controller.handle(2 * MINUTE, load(0), &mut idle),
        Ok(vec![])
    );
    assert_eq!(controller.wake_us(), Some(3 * MINUTE));
    let actions = controller
        .handle(3 * MINUTE, ControllerEvent::Tick, &mut idle)
        .unwrap();
    assert!(matches!(actions.as_slice(), [ControllerAction::Drain(_)]));
}

#[test]
fn a_server_drains_before_it_is_released() {
    let mut controller = with_up(policy(), 3_763, 2);
    let actions = controller.handle(1, load(0), &mut idle).unwrap();
    let [ControllerAction::Drain(id)] = actions.as_slice() else {
        panic!("{actions:?}");
    };
    assert_eq!(controller.state(*id), Some(ServerState::Draining));
    let actions = controller.handle(2, ControllerEvent::Drained(*id), &mut idle);
    assert_eq!(actions, Ok(vec![ControllerAction::Release(*id)]));
    assert_eq!(controller.census().all(), 2);
    controller
        .handle(3, ControllerEvent::Gone(*id), &mut idle)
        .unwrap();
    assert_eq!(controller.census().all(), 1);
    assert_eq!(controller.state(*id), None);
}

#[test]
fn a_server_that_drains_is_kept_before_a_new_one_is_asked_for() {
    let mut controller = with_up(policy(), 3_800, 40);
    let actions = controller.handle(1, load(0), &mut idle).unwrap();
    let [ControllerAction::Drain(id)] = actions.as_slice() else {
        panic!("{actions:?}");
    };
    let actions = controller.handle(2, load(3_801), &mut idle).unwrap();
    assert_eq!(actions.first(), Some(&ControllerAction::Keep(*id)));
    assert_eq!(launched(&actions).len(), 2);
    // The report that it is drained was on its way: it is out of date.
    assert_eq!(
        controller.handle(3, ControllerEvent::Drained(*id), &mut idle),
        Ok(vec![])
    );
    assert_eq!(controller.state(*id), Some(ServerState::Active));
}

#[test]
fn an_interrupted_server_is_replaced_at_once() {
    let mut controller = with_up(policy(), 3_800, 40);
    let actions = controller.handle(5, ControllerEvent::Gone(ServerId(3)), &mut idle);
    assert_eq!(actions, Ok(vec![ControllerAction::Launch(ServerId(40))]));
}

#[test]
fn a_server_that_is_told_of_its_end_is_drained_and_replaced_before_it_is_gone() {
    let mut controller = with_up(policy(), 3_800, 40);
    let id = ServerId(3);
    let actions = controller.handle(5, ControllerEvent::Notice(id), &mut idle);
    assert_eq!(
        actions,
        Ok(vec![
            ControllerAction::Drain(id),
            ControllerAction::Launch(ServerId(40))
        ])
    );
    assert_eq!(controller.state(id), Some(ServerState::Leaving));
    // Told twice is told once; and however many are missing, it is not kept.
    assert_eq!(
        controller.handle(6, ControllerEvent::Notice(id), &mut idle),
        Ok(vec![])
    );
    let actions = controller.handle(7, load(3_920), &mut idle).unwrap();
    assert!(!actions.contains(&ControllerAction::Keep(id)));
    // All that the budget has room for while it is there, and the last one when it is gone.
    assert_eq!(controller.census().all(), 120);
    let actions = controller
        .handle(8, ControllerEvent::Gone(id), &mut idle)
        .unwrap();
    assert_eq!(launched(&actions).len(), 1);
    // One that drains already is told, too; one that is not up yet is not waited for.
    let mut controller = with_up(policy(), 3_763, 2);
    let actions = controller.handle(1, load(0), &mut idle).unwrap();
    assert_eq!(actions, [ControllerAction::Drain(ServerId(1))]);
    let told = controller.handle(2, ControllerEvent::Notice(ServerId(1)), &mut idle);
    assert_eq!(told, Ok(vec![]));
    let actions = controller.handle(3, load(3_763), &mut idle);
    assert_eq!(actions, Ok(vec![ControllerAction::Launch(ServerId(2))]));
    let actions = controller.handle(4, ControllerEvent::Notice(ServerId(2)), &mut idle);
    assert_eq!(
        actions,
        Ok(vec![
            ControllerAction::Release(ServerId(2)),
            ControllerAction::Launch(ServerId(3))
        ])
    );
}

#[test]
fn a_server_that_never_comes_up_is_given_up_and_replaced() {
    let policy = policy().launch_timeout(5 * MINUTE).unwrap();
    let mut controller = Controller::new(policy);
    let first = controller.handle(0, load(3_763), &mut idle).unwrap();
    assert_eq!(
        first,
        [
            ControllerAction::Launch(ServerId(0)),
            ControllerAction::Launch(ServerId(1))
        ]
    );
    controller
        .handle(1, ControllerEvent::Up(ServerId(1)), &mut idle)
        .unwrap();
    assert_eq!(controller.wake_us(), Some(5 * MINUTE));
    let actions = controller
        .handle(5 * MINUTE, ControllerEvent::Tick, &mut idle)
        .unwrap();
    assert_eq!(
        actions,
        [
            ControllerAction::Release(ServerId(0)),
            ControllerAction::Launch(ServerId(2))
        ]
    );
    // It comes up in the last moment: the release is on its way all the same.
    controller
        .handle(5 * MINUTE + 1, ControllerEvent::Up(ServerId(0)), &mut idle)
        .unwrap();
    assert_eq!(controller.state(ServerId(0)), Some(ServerState::Releasing));
}

#[test]
fn the_ratio_counts_servers_that_are_up() {
    let mut controller = Controller::new(policy());
    assert_eq!(controller.long_load_ratio(), None);
    controller.handle(0, load(3_762), &mut idle).unwrap();
    assert_eq!(controller.long_load_ratio(), Some(0.95));
    controller.handle(0, load(3_800), &mut idle).unwrap();
    assert_eq!(controller.long_load_ratio(), Some(3_800.0 / 3_960.0));
    for id in 0..40 {
        controller
            .handle(1, ControllerEvent::Up(ServerId(id)), &mut idle)
            .unwrap();
    }
    assert_eq!(controller.long_load_ratio(), Some(0.95));
}

#[test]
fn events_that_cannot_be_are_refused_and_change_nothing() {
    let mut controller = with_up(policy(), 3_763, 2);
    controller
        .handle(9, ControllerEvent::Tick, &mut idle)
        .unwrap();
    let before = controller.census();
    for (at, event, problem) in [
        (8, load(0), "time ran backwards"),
        (9, ControllerEvent::Up(ServerId(0)), "came up a second time"),
        (
            9,
            ControllerEvent::Up(ServerId(99)),
            "is not one of ours, or is gone",
        ),
        (
            9,
            ControllerEvent::Gone(ServerId(99)),
            "is not one of ours, or is gone",
        ),
        (
            9,
            ControllerEvent::Drained(ServerId(99)),
            "is not one of ours, or is gone",
        ),
    ] {
        let error = controller.handle(at, event, &mut idle).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert_eq!(error.code(), "EB-ELASTIC-007");
        assert_eq!(controller.census(), before);
    }
    let mut waiting = Controller::new(policy());
    waiting.handle(0, load(3_763), &mut idle).unwrap();
    let error = waiting.handle(1, ControllerEvent::Drained(ServerId(0)), &mut idle);
    assert!(error.unwrap_err().to_string().contains("was never up"));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let wrong = [
        ElasticPolicy::new(0, 3.0, 0.5),
        ElasticPolicy::new(1_000_001, 3.0, 0.5),
        ElasticPolicy::new(80, 0.999, 0.5),
        ElasticPolicy::new(80, f64::NAN, 0.5),
        ElasticPolicy::new(80, f64::INFINITY, 0.5),
        ElasticPolicy::new(80, 3.0, -0.1),
        ElasticPolicy::new(80, 3.0, 1.1),
        ElasticPolicy::new(80, 3.0, f64::NAN),
        ElasticPolicy::new(1_000_000, 1_000.0, 1.0),
        policy().threshold(0.0),
        policy().threshold(1.01),
        policy().threshold(f64::NAN),
        policy().launch_timeout(0),
        policy().launch_timeout(u64::MAX),
        policy().release_interval(u64::MAX),
    ];
    for (at, policy) in wrong.into_iter().enumerate() {
        let error = policy.unwrap_err();
        assert!(
            matches!(error, ElasticError::Setting { .. }),
            "{at}: {error}"
        );
        assert_eq!(error.code(), "EB-ELASTIC-001");
    }
}

/// What a cloud does with one of its servers, at random.
#[derive(Debug, Clone, Copy)]
enum Step {
    Load(u32, u32),
    Up(prop::sample::Index),
    Drained(prop::sample::Index),
    Gone(prop::sample::Index),
    Notice(prop::sample::Index),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        4 => (0u32..60, 40u32..60).prop_map(|(long, all)| Step::Load(long.min(all), all)),
        4 => index().prop_map(Step::Up),
        3 => index().prop_map(Step::Drained),
        2 => index().prop_map(Step::Gone),
        1 => index().prop_map(Step::Notice),
        2 => (0u64..200_000_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_the_cloud_does_the_budget_holds_and_no_server_is_released_undrained(
        steps in steps(),
        (ratio, share, threshold) in (1.0f64..4.0, 0.0f64..=1.0, 0.05f64..=1.0),
        pace in prop_oneof![Just(0), Just(MINUTE)],
        timeout in prop_oneof![Just(MINUTE), Just(1_000 * MINUTE)],
    ) {
        let policy = ElasticPolicy::new(10, ratio, share).unwrap().threshold(threshold).unwrap();
        let policy = policy.release_interval(pace).unwrap().launch_timeout(timeout).unwrap();
        let mut controller = Controller::new(policy);
        let (mut now, mut last_drain) = (0, None);
        for step in steps {
            let servers: Vec<(ServerId, ServerState)> = controller.servers().collect();
            let of = |index: prop::sample::Index, states: &[ServerState]| {
                let some: Vec<ServerId> = servers.iter().filter(|(_, s)| states.contains(s)).map(|(id, _)| *id).collect();
                (!some.is_empty()).then(|| *index.get(&some))
            };
            let event = match step {
                Step::Load(long, on_demand) => Some(ControllerEvent::Load { long, on_demand }),
                Step::Up(at) => of(at, &[ServerState::Provisioning]).map(ControllerEvent::Up),
                Step::Drained(at) => of(at, &[ServerState::Draining, ServerState::Leaving, ServerState::Active]).map(ControllerEvent::Drained),
                Step::Gone(at) => (!servers.is_empty()).then(|| ControllerEvent::Gone(at.get(&servers).0)),
                Step::Notice(at) => (!servers.is_empty()).then(|| ControllerEvent::Notice(at.get(&servers).0)),
                Step::Wait(us) => { now += us; Some(ControllerEvent::Tick) }
            };
            let Some(event) = event else { continue };
            let actions = controller.handle(now, event, &mut idle).unwrap();
            let census = controller.census();
            prop_assert!(census.all() <= policy.budget());
            let mut drains = 0;
            for action in &actions {
                match action {
                    ControllerAction::Release(id) => {
                        let before = servers.iter().find(|(one, _)| one == id).unwrap().1;
                        // It was never up, or has told that it is drained.
                        let drained = event == ControllerEvent::Drained(*id) && before != ServerState::Active;
                        prop_assert!(before == ServerState::Provisioning || drained, "{:?} {:?}", id, before);
                        prop_assert_eq!(controller.state(*id), Some(ServerState::Releasing));
                    }
                    ControllerAction::Drain(id) => {
                        drains += 1;
                        let told = event == ControllerEvent::Notice(*id);
                        let state = if told { ServerState::Leaving } else { ServerState::Draining };
                        prop_assert_eq!(controller.state(*id), Some(state));
                    }
                    ControllerAction::Launch(id) => prop_assert_eq!(controller.state(*id), Some(ServerState::Provisioning)),
                    ControllerAction::Keep(id) => prop_assert_eq!(controller.state(*id), Some(ServerState::Active)),
                }
            }
            // Conservative: one at a time, and at its pace.
            if let ControllerEvent::Notice(id) = event {
                // Its own drain is the provider's pace, not ours.
                drains -= u32::from(actions.contains(&ControllerAction::Drain(id)));
            }
            prop_assert!(drains <= 1);
            if drains == 1 {
                prop_assert!(last_drain.is_none_or(|last| now >= last + pace));
                last_drain = Some(now);
            }
            // Aggressive: nothing is missing that the budget allows.
            let usable = census.provisioning + census.active;
            prop_assert!(usable >= controller.target() || census.all() == policy.budget());
            // Nothing is late that was not seen to.
            prop_assert!(controller.wake_us().is_none_or(|wake| wake > now));
        }
    }

    #[test]
    fn wanted_is_the_least_number_that_brings_the_ratio_down(
        (long, on_demand) in (0u32..500, 1u32..500),
        (ratio, share, threshold) in (1.0f64..4.0, 0.0f64..=1.0, 1u32..=100),
    ) {
        let policy = ElasticPolicy::new(100, ratio, share).unwrap();
        let policy = policy.threshold(f64::from(threshold) / 100.0).unwrap();
        // In whole numbers: 100 N_long <= threshold (on_demand + t).
        let enough = |t: &u32| 100 * u64::from(long) <= u64::from(threshold) * u64::from(on_demand + t);
        let budget = policy.budget();
        let least = (0..budget).find(enough).unwrap_or(budget);
        prop_assert_eq!(policy.target(long, on_demand), least);
    }
}

#[test]
fn a_server_that_was_there_before_is_neither_asked_for_again_nor_forgotten() {
    let mut controller = Controller::new(policy());
    let up = controller.adopt(0, true);
    let coming = controller.adopt(0, false);
    assert_eq!(controller.census().up(), 1);
    // 40 are wanted, two are there.
    let actions = controller.handle(1, load(3_800), &mut idle).unwrap();
    assert_eq!(launched(&actions).len(), 38);
    controller
        .handle(2, ControllerEvent::Up(coming), &mut idle)
        .unwrap();
    assert_eq!(controller.state(coming), Some(ServerState::Active));
    let actions = controller.handle(3, load(0), &mut idle).unwrap();
    assert_eq!(
        actions
            .iter()
            .filter(|a| matches!(a, ControllerAction::Drain(_)))
            .count(),
        1
    );
    controller
        .handle(4, ControllerEvent::Gone(up), &mut idle)
        .unwrap();
    assert_eq!(controller.state(up), None);
}
