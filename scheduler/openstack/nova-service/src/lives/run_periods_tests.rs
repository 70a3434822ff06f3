use super::*;
use crate::preemption::{Holding, PreemptionState, Victim};
use ebbtide_model::{EvacuationCause, EvacuationId, InterruptionBehaviour};
use ebbtide_nova::model::{Flavor, OrderedMap};
use ebbtide_nova_db::InstanceFlavor;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

const SECOND: i64 = 1_000_000;

fn server() -> ServerId {
    ServerId(Uuid::from_u128(7))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

fn history(launched: Option<i64>, gone: Option<i64>) -> ServerHistory {
    let specs: OrderedMap<String> = [
        ("ebbtide:preemptible", "true"),
        ("ebbtide:price_per_hour", "0.02"),
        ("ebbtide:max_lifetime_seconds", "86400"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into_iter()
    .collect();
    ServerHistory {
        uuid: server().to_string(),
        display_name: Some("web".to_owned()),
        project_id: Some("science".to_owned()),
        host: Some("compute1".to_owned()),
        availability_zone: Some("nova".to_owned()),
        flavor: Some(Arc::new(InstanceFlavor {
            current: Flavor {
                name: "spot".to_owned(),
                extra_specs: Some(specs),
                ..Flavor::default()
            },
            new: None,
            old: None,
        })),
        launched_at: launched.map(|second| second * SECOND),
        gone_at: gone.map(|second| second * SECOND),
        changes: Vec::new(),
    }
}

fn with(launched: i64, changes: &[(i64, PowerChange)], gone: Option<i64>) -> ServerHistory {
    ServerHistory {
        changes: changes
            .iter()
            .map(|(second, change)| (second * SECOND, *change))
            .collect(),
        ..history(Some(launched), gone)
    }
}

fn victim(state: VictimState) -> Victim {
    Victim {
        server: server(),
        name: String::new(),
        cost: 0.0,
        evacuation: EvacuationId(Uuid::from_u128(8)),
        host: "compute1".to_owned(),
        had: Holding {
            allocations: json!({}),
            mappings: None,
            project_id: "science".to_owned(),
            user_id: "u".to_owned(),
            generation: None,
        },
        generation: 1,
        keeps: None,
        behaviour: InterruptionBehaviour::Terminate,
        grace: Seconds(60),
        flavor: "spot".to_owned(),
        launched_at: Some(at(100)),
        released: false,
        state,
    }
}

fn record(cause: EvacuationCause, planned: i64, how: EvacuationEnd, ended: i64) -> Preemption {
    let state = VictimState::Evacuated {
        how,
        at: at(ended),
        unbilled: None,
        recorded: true,
    };
    let mut record =
        Preemption::without_newcomers(Uuid::nil(), cause, victim(state), at(100), at(planned));
    record.state = PreemptionState::Done;
    record
}

/// The life that a record has ended, as begin, end and how.
fn ended(record: &Preemption, history: Option<&ServerHistory>) -> Vec<(i64, i64, LifeEnd)> {
    let lives = evictions(record).filter_map(|one| life_of_victim(&one, history));
    lives.map(short).collect()
}

fn short(life: PastLife) -> (i64, i64, LifeEnd) {
    let second = |at: Timestamp| at.as_millis() / 1000;
    assert_eq!(i64::from(life.starts), second(life.launched_at));
    (second(life.launched_at), second(life.ended_at), life.end)
}

fn seen(history: &ServerHistory) -> Vec<(i64, i64, LifeEnd)> {
    lives_of(history).into_iter().map(short).collect()
}

#[test]
fn run_periods_are_what_a_clock_that_looks_each_second_sees() {
    use PowerChange::{Deletes, Starts, Stops};
    let mut rng = Pcg64::seed_from_u64(31);
    for _ in 0..20_000 {
        let launched = rng.random_range(0..12);
        let mut changes: Vec<(i64, PowerChange)> = (0..rng.random_range(0..6))
            .map(|_| {
                let change = [Starts, Stops, Deletes][rng.random_range(0..3)];
                (rng.random_range(0..30), change)
            })
            .collect();
        changes.sort_unstable();
        let gone = rng.random_bool(0.5).then(|| rng.random_range(30..33));
        let run_periods = run_periods(&with(launched, &changes, gone));
        // Each begins when the one before has ended, and only the last one may go on.
        for pair in run_periods.windows(2) {
            assert!(pair[0].ended.unwrap().0 <= pair[1].began);
        }
        assert!(gone.is_none() || run_periods.iter().all(|period| period.ended.is_some()));
        // Whether it runs from one second to the next, by the last thing that was done to it.
        for second in 0..40 {
            let mut before = changes
                .iter()
                .filter(|(at, _)| (launched..=second).contains(at));
            let last = before.next_back().map_or(Starts, |(_, change)| *change);
            let runs =
                second >= launched && last == Starts && gone.is_none_or(|gone| second < gone);
            let within = |period: &&RunPeriod| {
                period.began <= at(second) && period.ended.is_none_or(|(end, _)| end > at(second))
            };
            let found = run_periods.iter().filter(within).count();
            assert_eq!(
                found,
                usize::from(runs),
                "{second}: {launched} {changes:?} {gone:?} {run_periods:?}"
            );
        }
    }
}

#[test]
fn a_server_that_its_owner_ended_has_lives_that_nothing_but_its_owner_ended() {
    use PowerChange::{Deletes, Starts, Stops};
    // It was deleted: at the request, not when Nova was done.
    let gone = with(100, &[(200, Deletes)], Some(203));
    assert_eq!(seen(&gone), [(100, 200, LifeEnd::Deleted)]);
    // An operator's purge leaves no actions.
    let gone = with(100, &[], Some(203));
    assert_eq!(seen(&gone), [(100, 203, LifeEnd::Deleted)]);
    let all = [(200, Stops), (300, Starts), (400, Deletes)];
    assert_eq!(
        seen(&with(100, &all, Some(401))),
        [(100, 200, LifeEnd::Stopped), (300, 400, LifeEnd::Deleted)]
    );
    // It is there and runs: only what is over counts.
    assert_eq!(
        seen(&with(100, &all[..2], None)),
        [(100, 200, LifeEnd::Stopped)]
    );
    // It never came up.
    assert_eq!(seen(&history(None, Some(9))), []);
    // A normal server is nothing to learn from.
    let mut normal = gone;
    normal.flavor = Some(Arc::new(InstanceFlavor {
        current: Flavor::default(),
        new: None,
        old: None,
    }));
    assert_eq!(seen(&normal), []);
}

#[test]
fn a_victim_has_a_life_that_the_provider_ended_with_its_cause() {
    use PowerChange::{Deletes, Starts, Stops};
    let preempted = record(
        EvacuationCause::Preemption,
        190,
        EvacuationEnd::Terminated,
        200,
    );
    let gone = with(100, &[(199, Deletes)], Some(200));
    let life = (100, 199, LifeEnd::Preempted);
    assert_eq!(ended(&preempted, Some(&gone)), [life]);
    // The same life, by its key, as the one that Nova shows as deleted.
    let key = |lives: Vec<PastLife>| lives.iter().map(PastLife::key).collect::<Vec<_>>();
    let by_ledger = evictions(&preempted).filter_map(|one| life_of_victim(&one, Some(&gone)));
    assert_eq!(key(by_ledger.collect()), key(lives_of(&gone)));
    // Nova has not shown it yet, and the rows are archived.
    let there = with(100, &[], None);
    for history in [Some(&there), None] {
        assert_eq!(ended(&preempted, history), [(100, 200, LifeEnd::Preempted)]);
    }
    for (cause, end) in [
        (EvacuationCause::MaxLifetime, LifeEnd::MaxLifetime),
        (EvacuationCause::OutOfBid, LifeEnd::OutOfBid),
    ] {
        let record = record(cause, 190, EvacuationEnd::Stopped, 200);
        let stopped = with(100, &[(200, Stops)], None);
        assert_eq!(ended(&record, Some(&stopped)), [(100, 200, end)]);
    }
    // It had been stopped and started before, and was started again by its owner since.
    let restarted = with(
        100,
        &[(120, Stops), (150, Starts), (200, Stops), (500, Starts)],
        None,
    );
    assert_eq!(
        ended(&preempted, Some(&restarted)),
        [(150, 200, LifeEnd::Preempted)]
    );
    // It was unshelved since, which Nova writes as a launch.
    assert_eq!(
        ended(&preempted, Some(&with(500, &[], None))),
        [(100, 200, LifeEnd::Preempted)]
    );
}

#[test]
fn an_end_is_not_the_providers_if_the_server_did_not_run_when_it_was_chosen_or_lives_on() {
    use PowerChange::{Deletes, Stops};
    // Stopped by its owner long before; what went was its place.
    let record_of = |how| record(EvacuationCause::Preemption, 190, how, 200);
    let stopped = with(100, &[(150, Stops)], None);
    assert_eq!(
        ended(&record_of(EvacuationEnd::Stopped), Some(&stopped)),
        []
    );
    // Deleted before the plan, and after it: its notice was on its way.
    let gone = |second| with(100, &[(second, Deletes)], Some(second + 1));
    let already = record_of(EvacuationEnd::AlreadyGone);
    assert_eq!(ended(&already, Some(&gone(170))), []);
    assert_eq!(
        ended(&already, Some(&gone(195))),
        [(100, 195, LifeEnd::Preempted)]
    );
    // Moved to another host.
    let moved = record_of(EvacuationEnd::Migrated);
    assert_eq!(ended(&moved, Some(&with(100, &[], None))), []);
    // Spared, or still leaving.
    let mut spared = record_of(EvacuationEnd::Terminated);
    for state in [
        VictimState::Spared,
        VictimState::Claimed,
        VictimState::Draining { deadline: at(300) },
    ] {
        spared.victims[0].state = state;
        assert_eq!(ended(&spared, Some(&with(100, &[], None))), []);
    }
}

#[test]
fn a_life_has_the_terms_of_the_flavor_that_nova_wrote_into_the_server() {
    let life = lives_of(&with(100, &[], Some(200))).remove(0);
    assert_eq!(life.max_lifetime, Some(Seconds(86_400)));
    assert_eq!(life.price_per_hour.to_string(), "0.02");
    assert_eq!(
        [
            life.name.as_str(),
            &life.project_id,
            &life.flavor,
            &life.host,
            &life.zone
        ],
        ["web", "science", "spot", "compute1", "nova"]
    );
}
