//! Works with a bid on a price that crosses it: the checkpoint scheme ACC, live. Two minutes are a
//! paid hour here; a second stands for half a minute of the simulator's.

use crate::run::Run;
use crate::sim::{SETTINGS, TICK};
use ebbtide_batch::{Attempt, BidDecision, MemberId, WorkId};
use ebbtide_checkpointing::schemes::Acc;
use ebbtide_checkpointing::{
    BidLifetimes, CheckpointTerms, Period, PriceHistory, Scheme, SchemeAction, SchemeView,
    TerminatedBy, bill,
};
use ebbtide_model::Money;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A paid hour, milliseconds.
const HOUR: i64 = 120_000;
/// Before its end: two checkpoints of three seconds, and the margin of ten.
const T_CD: i64 = 16_000;
const T_TD: i64 = 13_000;
const LOW: u64 = 40_000;
const BID: u64 = 50_000;
const HIGH: u64 = 90_000;
const ONLY: MemberId = MemberId { stage: 0, index: 0 };

fn settings() -> String {
    let policy = "[policy]\nhour_seconds = 120\n";
    let more = SETTINGS.replace("[policy]\n", policy);
    // Hot spares would be kept for five hours.
    more.replace("spare_seconds = 10", "spare_seconds = 600")
}

fn work(run: &mut Run, seconds: i64, saves: bool, more: &[(&str, Value)]) -> WorkId {
    run.sim.saves = saves;
    let mut document = json!({"name": "w", "dir": "/shared/w", "command": "./render", "cpus": 2,
        "length": format!("{seconds}s"), "max_price": "0.05"});
    if saves {
        document["checkpoint"] = json!({"command": "./save", "cost": "1s"});
    }
    for (key, value) in more {
        document[key] = value.clone();
    }
    let work = run.submit(document);
    run.sim.lengths.insert((work, ONLY), seconds * 1_000);
    work
}

fn until(run: &mut Run, at: i64) {
    while run.sim.now < at {
        run.step(true);
    }
}

fn attempts(run: &Run, work: WorkId) -> Vec<Attempt> {
    run.controller.book().works[&work]
        .member(ONLY)
        .attempts
        .clone()
}

/// Begins a work of so many seconds while the price is low; when its first server was launched.
fn begun(run: &mut Run, seconds: i64, saves: bool) -> (WorkId, i64) {
    run.sim.prices = vec![(0, LOW)];
    let work = work(run, seconds, saves, &[]);
    while run.sim.launched("p1").is_none() {
        run.step(true);
    }
    (work, run.sim.launched("p1").unwrap())
}

fn looks(attempt: &Attempt) -> Vec<(BidDecision, i64)> {
    attempt
        .bid
        .iter()
        .map(|look| (look.decision, look.at))
        .collect()
}

#[test]
fn at_t_cd_a_member_saves_and_at_t_td_it_is_let_go_and_waits_for_its_price() {
    let mut run = Run::with(&settings());
    let (work, launch) = begun(&mut run, 500, true);
    let end = |hour: i64| launch + hour * HOUR;
    run.sim.prices.extend([
        // The paper's figure 5: within the first hour; until after t_cd of the second; from the
        // third on.
        (end(0) + 30_000, HIGH),
        (end(0) + 90_000, LOW),
        (end(1) + 90_000, HIGH),
        (end(2) - T_CD + 1_500, LOW),
        (end(2) + 60_000, HIGH),
        (end(3) + 50_000, BID),
    ]);
    run.until_over(work);
    let all = attempts(&run, work);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!(
        looks(&all[0]),
        [
            (BidDecision::Checkpoint, end(2) - T_CD),
            (BidDecision::Checkpoint, end(3) - T_CD),
            (BidDecision::LetGo, end(3) - T_TD),
        ]
    );
    // The server is gone before a fourth hour, although a hot spare would have stayed.
    let (node, first, gone) = run.sim.lives[0].clone();
    assert_eq!((node.as_str(), first), ("p1", launch));
    assert!(gone > end(3) - T_TD && gone <= end(3), "{gone} {}", end(3));
    // It waits while the price is above, and goes on with all of its work.
    assert!(all[1].started >= end(3) + 50_000, "{all:#?}");
    assert!(all[1].hourly <= BID && all[1].preemptible, "{all:#?}");
    let ran = all[0].ran(0);
    assert!(all[1].from >= ran - TICK, "{} of {ran}", all[1].from);
    assert_eq!(run.sim.ended[&(work, ONLY)], 1);
}

#[test]
fn a_price_that_rises_after_t_cd_keeps_the_server_for_another_hour() {
    let mut run = Run::with(&settings());
    let (work, launch) = begun(&mut run, 300, true);
    let end = launch + HOUR;
    run.sim.prices.push((end - T_CD + 1_000, HIGH));
    until(&mut run, end + HOUR / 2);
    let all = attempts(&run, work);
    assert_eq!((all.len(), looks(&all[0])), (1, Vec::new()), "{all:#?}");
    // At the end of the second it goes.
    until(&mut run, end + HOUR);
    let all = attempts(&run, work);
    assert_eq!(all[0].let_go(), Some(end + HOUR - T_TD), "{all:#?}");
}

#[test]
fn a_service_that_is_killed_between_the_two_points_goes_on_where_it_was() {
    let mut run = Run::with(&settings());
    let (work, launch) = begun(&mut run, 300, true);
    let end = launch + HOUR;
    run.sim.prices.push((end - 60_000, HIGH));
    until(&mut run, end - T_CD + 1_500);
    run.restart();
    until(&mut run, end - T_TD);
    let wanted = [
        (BidDecision::Checkpoint, end - T_CD),
        (BidDecision::LetGo, end - T_TD),
    ];
    assert_eq!(looks(&attempts(&run, work)[0]), wanted);
    // And after the decision: what was begun is brought to its end.
    run.restart();
    until(&mut run, end + 1_000);
    assert_eq!(run.sim.servers(), 0);
    run.restart();
    until(&mut run, end + HOUR);
    assert_eq!(attempts(&run, work).len(), 1, "the price is still above");
    run.sim.prices.push((run.sim.now, LOW));
    run.until_over(work);
    let all = attempts(&run, work);
    assert_eq!(all.len(), 2);
    assert!(all[1].from > 80_000, "{all:#?}");
}

#[test]
fn a_service_that_was_away_at_t_td_looks_again_at_the_end_of_the_next_hour() {
    let mut run = Run::with(&settings());
    let (work, launch) = begun(&mut run, 400, true);
    let end = launch + HOUR;
    run.sim.prices.push((end - 60_000, HIGH));
    until(&mut run, end - T_CD + 1_500);
    while run.sim.now < end + 2_000 {
        run.sim.tick();
    }
    run.restart();
    until(&mut run, end + HOUR);
    let wanted = [
        (BidDecision::Checkpoint, end - T_CD),
        (BidDecision::Checkpoint, end + HOUR - T_CD),
        (BidDecision::LetGo, end + HOUR - T_TD),
    ];
    assert_eq!(looks(&attempts(&run, work)[0]), wanted);
}

#[test]
fn a_price_that_the_cloud_does_not_say_saves_a_member_and_lets_none_go() {
    let mut run = Run::with(&settings());
    let (work, launch) = begun(&mut run, 500, true);
    let end = launch + HOUR;
    run.sim.prices.push((end - 60_000, HIGH));
    until(&mut run, end - T_CD - 1_000);
    run.sim.silent = true;
    until(&mut run, end + 1_000);
    let all = attempts(&run, work);
    assert_eq!(looks(&all[0]), [(BidDecision::Checkpoint, end - T_CD)]);
    assert_eq!(all[0].bid[0].price, None);
    // It says the price again just before t_h of the second hour: that is in time.
    until(&mut run, end + HOUR - T_TD + 3_000);
    run.sim.silent = false;
    until(&mut run, end + HOUR);
    let all = attempts(&run, work);
    assert_eq!(all[0].bid.last().unwrap().price, Some(HIGH));
    assert!(all[0].let_go().is_some(), "{all:#?}");
}

#[test]
fn a_member_that_cannot_be_saved_stays_and_its_next_hours_are_paid() {
    let mut run = Run::with(&settings());
    let (work, launch) = begun(&mut run, 300, false);
    run.sim.prices.push((launch + 20_000, HIGH));
    run.until_over(work);
    let all = attempts(&run, work);
    assert_eq!((all.len(), looks(&all[0])), (1, Vec::new()), "{all:#?}");
}

#[test]
fn a_server_stays_for_members_of_other_works() {
    let mut run = Run::with(&settings());
    run.sim.prices = vec![(0, LOW)];
    let poor = work(&mut run, 300, true, &[("cpus", json!(1))]);
    let rich = work(
        &mut run,
        300,
        true,
        &[("cpus", json!(1)), ("max_price", json!("0.2"))],
    );
    while run.sim.launched("p1").is_none() {
        run.step(true);
    }
    let end = run.sim.launched("p1").unwrap() + HOUR;
    run.sim.prices.push((end - 60_000, HIGH));
    until(&mut run, end + 20_000);
    assert!(attempts(&run, poor)[0].let_go().is_some());
    let stays = attempts(&run, rich);
    assert_eq!((stays.len(), looks(&stays[0])), (1, Vec::new()));
    assert_eq!(run.sim.servers(), 1);
    assert_eq!(stays[0].node, attempts(&run, poor)[0].node);
}

#[test]
fn a_work_with_a_bid_does_not_go_on_demand_because_its_price_is_exceeded() {
    let mut run = Run::with(&settings());
    // Above the on-demand price, too.
    run.sim.prices = vec![(0, 400_000)];
    let work = work(&mut run, 30, true, &[]);
    let later = run.sim.now + 60_000;
    until(&mut run, later);
    assert!(attempts(&run, work).is_empty());
    run.sim.prices.push((run.sim.now, LOW));
    run.until_over(work);
    assert!(attempts(&run, work).iter().all(|one| one.preemptible));
}

/// The simulator's seconds.
fn seconds(ms: i64) -> i64 {
    ms * 3_600 / HOUR
}

/// What ACC decides by the simulator on an instance of this launch, up to its end.
fn simulated(history: &PriceHistory, launch: i64, until: i64) -> Vec<(BidDecision, i64)> {
    let terms = CheckpointTerms {
        checkpoint_seconds: seconds(T_CD - T_TD),
        terminate_seconds: seconds(T_TD),
        restart_seconds: 0,
        ..CheckpointTerms::default()
    };
    let (mut events, mut now, mut unsaved, mut checkpoint) = (Vec::new(), launch, 0, None);
    let lives = BidLifetimes::default();
    loop {
        let act = Acc.next(&SchemeView {
            history,
            bid: Money::from_micros(BID),
            period: Period {
                from: launch,
                until: None,
            },
            lives: &lives,
            terms: &terms,
            launch,
            now,
            unsaved,
            left: 1_000_000,
            checkpoint,
        });
        match act {
            Some(SchemeAction::Checkpoint(at)) if at < until => {
                events.push((BidDecision::Checkpoint, at));
                (now, unsaved, checkpoint) = (at + terms.checkpoint_seconds, 0, Some(at));
            }
            Some(SchemeAction::Terminate(at)) if at < until => {
                events.push((BidDecision::LetGo, at));
                return events;
            }
            _ => return events,
        }
    }
}

/// A price that changes now and then, beginning low.
fn prices() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let step = (
        1..90i64,
        prop_oneof![3 => Just(LOW), 1 => Just(BID), 3 => Just(HIGH)],
    );
    proptest::collection::vec(step, 1..24).prop_map(|steps| {
        let mut at = 1_000_000;
        let later = steps.into_iter().map(|(wait, price)| {
            at += wait * 2_500;
            (at, price)
        });
        [(0, LOW)].into_iter().chain(later).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_service_decides_and_pays_as_the_simulator_does(
        prices in prices(),
        length in 60..900i64,
    ) {
        let mut run = Run::with(&settings());
        run.sim.prices = prices;
        let work = work(&mut run, length, true, &[]);
        let stop = run.sim.now + 12 * HOUR;
        while run.sim.now < stop && run.state(work) == "active" {
            run.step(true);
        }
        let changes: Vec<(i64, Money)> = run.sim.prices.iter()
            .map(|(at, price)| (seconds(*at), Money::from_micros(*price))).collect();
        let history = PriceHistory::new(&changes, seconds(run.sim.now + 100 * HOUR)).unwrap();
        let all = attempts(&run, work);
        for attempt in &all {
            prop_assert!(attempt.hourly <= BID, "{:?}", attempt);
            let Some((ended, _)) = attempt.end else { continue };
            // One that began in the middle of a server's life has another first hour than the
            // simulator's; the decisions of its hours are the same, from then on.
            let life = run.sim.lives.iter().find(|(node, launch, gone)| {
                *node == attempt.node && *launch <= attempt.started && attempt.started < *gone
            });
            let Some((_, launch, gone)) = life else { continue };
            let before = all.iter().any(|other| {
                other.node == attempt.node && other.number < attempt.number
                    && other.started >= *launch
            });
            if before {
                continue;
            }
            let wanted = simulated(&history, seconds(*launch), seconds(ended));
            let had: Vec<_> = looks(attempt).into_iter()
                .map(|(decision, at)| (decision, seconds(at))).collect();
            prop_assert_eq!(&had, &wanted, "{:#?} {:?}", attempt, run.sim.prices);
            let after = all.iter().any(|other| {
                other.node == attempt.node && other.number > attempt.number
                    && other.started < *gone
            });
            if let (Some((BidDecision::LetGo, at)), false) = (wanted.last(), after) {
                let by = TerminatedBy::User;
                let paid = bill(&history, seconds(*launch), *at, by).hours.len() as i64;
                prop_assert_eq!((gone - launch + HOUR - 1) / HOUR, paid);
            }
        }
        if run.state(work) == "done" {
            prop_assert_eq!(run.sim.ended.get(&(work, ONLY)), Some(&1));
        }
    }

    #[test]
    fn whatever_happens_no_member_is_let_go_unsaved_or_within_its_bid(
        prices in prices(),
        length in 60..600i64,
        events in proptest::collection::vec((0..5u8, 1..60u8), 0..40),
    ) {
        let mut run = Run::with(&settings());
        run.sim.prices = prices;
        let work = work(&mut run, length, true, &[]);
        for (event, ticks) in events {
            match event {
                0 => run.restart(),
                1 => run.sim.take(0, true),
                2 => run.sim.take(0, false),
                3 => run.sim.silent = !run.sim.silent,
                _ => run.step(false),
            }
            (0..ticks).for_each(|_| run.step(true));
        }
        run.sim.silent = false;
        run.sim.prices.push((run.sim.now, LOW));
        run.until_over(work);
        prop_assert_eq!(run.state(work), "done");
        prop_assert_eq!(run.sim.ended.get(&(work, ONLY)), Some(&1));
        for attempt in attempts(&run, work) {
            let Some(at) = attempt.let_go() else { continue };
            prop_assert!(run.sim.price(at).unwrap() > BID, "{:?}", attempt);
            let ran = attempt.running.map_or(0, |since| at - since);
            let saved = attempt.bid.iter().any(|look| {
                look.decision == BidDecision::Checkpoint && at - look.at <= T_CD
            });
            prop_assert!(saved || ran <= TICK, "{:?}", attempt);
        }
    }
}
