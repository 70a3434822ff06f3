//! What servers cost: the price of each hour is the one at its begin, and what does not run is not
//! paid for.

use ebbtide_burst::{BurstEvent, BurstRecord, PoolServer, RecordEntry, Status};
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;
/// When the server is launched.
const LAUNCH: i64 = 1_000;

fn server(status: Status, launched: i64) -> PoolServer {
    PoolServer {
        id: "one".to_owned(),
        created_ms: 0,
        node: "c1".to_owned(),
        status,
        launched_ms: Some(launched),
        deadline_ms: None,
        ended_ms: None,
        taken: false,
        reason: String::new(),
    }
}

/// A look at the server, and at the prices of the hours that have begun.
fn look(
    record: &mut BurstRecord,
    now: i64,
    one: Option<&PoolServer>,
    price: impl Fn(i64) -> Option<u64>,
) -> Vec<RecordEntry> {
    let shown: Vec<PoolServer> = one.into_iter().cloned().collect();
    let first = price(LAUNCH).unwrap();
    let mut facts = record.learn_instances(now, &shown, |_| first, |_| true);
    for (id, _, begin) in record.unpriced(now, HOUR) {
        facts.extend(record.learn_price(now, &id, begin, price(begin)));
    }
    facts
}

/// The record that a service reads which begins again.
fn again(facts: &[RecordEntry]) -> BurstRecord {
    let line = |fact| serde_json::to_string(fact).unwrap() + "\n";
    let text: String = facts.iter().map(line).collect();
    BurstRecord::parse(&text).unwrap()
}

#[test]
fn each_hour_costs_what_it_cost_when_it_began() {
    let mut record = BurstRecord::default();
    let one = server(Status::Active, LAUNCH);
    // The price rises within the first hour, and falls within the third.
    let price = |at: i64| {
        Some(if (HOUR / 2..5 * HOUR / 2).contains(&at) {
            70_000
        } else {
            30_000
        })
    };
    let mut facts = look(&mut record, LAUNCH, Some(&one), price);
    for minute in 1..=210 {
        let now = LAUNCH + minute * 60_000;
        facts.extend(look(&mut record, now, Some(&one), price));
    }
    // Three and a half hours: 30, 70, 70, 30.
    let end = LAUNCH + 7 * HOUR / 2;
    assert_eq!(record.spent(0, end), 30_000 + 70_000 + 70_000 + 15_000);
    // Any part of it is at the prices of that part.
    assert_eq!(
        record.spent(LAUNCH + HOUR / 2, LAUNCH + 3 * HOUR / 2),
        15_000 + 35_000
    );
    let prices = facts
        .iter()
        .filter(|one| matches!(one.event, BurstEvent::Price { .. }));
    assert_eq!(prices.count(), 2);
    let read = again(&facts);
    assert_eq!(read.spent(0, end), record.spent(0, end));
    // It looks the prices of hours up that it has no fact about, and finds no other.
    let mut read = read;
    assert_eq!(look(&mut read, end, Some(&one), price), []);
    assert_eq!(read.spent(0, end), record.spent(0, end));
}

#[test]
fn an_hour_whose_price_is_late_is_reckoned_by_it_from_its_begin_on() {
    let mut record = BurstRecord::default();
    let one = server(Status::Active, LAUNCH);
    look(&mut record, LAUNCH, Some(&one), |_| Some(30_000));
    let now = LAUNCH + 3 * HOUR / 2;
    assert_eq!(record.unpriced(now, HOUR).len(), 1);
    assert_eq!(record.spent(0, now), 45_000);
    look(&mut record, now, Some(&one), |_| Some(50_000));
    assert_eq!(record.spent(0, now), 55_000);
    assert_eq!(record.unpriced(now, HOUR), []);
}

#[test]
fn a_server_that_hibernates_costs_nothing_and_begins_a_new_hour_when_it_comes_back() {
    let mut record = BurstRecord::default();
    let price = |at: i64| Some(if at < 2 * HOUR { 40_000 } else { 80_000 });
    let mut facts = look(
        &mut record,
        LAUNCH,
        Some(&server(Status::Active, LAUNCH)),
        price,
    );
    // Half an hour, then frozen for two and a half, then half an hour more.
    let frozen = LAUNCH + HOUR / 2;
    facts.extend(look(
        &mut record,
        frozen,
        Some(&server(Status::Kept, LAUNCH)),
        price,
    ));
    let back = LAUNCH + 3 * HOUR;
    let kept = server(Status::Kept, LAUNCH);
    facts.extend(look(&mut record, back - 1, Some(&kept), price));
    assert_eq!(record.spent(0, back), 20_000);
    facts.extend(look(
        &mut record,
        back + 400,
        Some(&server(Status::Active, back)),
        price,
    ));
    let end = back + HOUR / 2;
    assert_eq!(record.spent(0, end), 20_000 + 40_000);
    let hours = again(&facts).lives["one"].paid_ms(0, end);
    assert_eq!(hours, HOUR);
    // Its end while it is frozen ends nothing that is paid.
    facts.extend(look(
        &mut record,
        end,
        Some(&server(Status::Kept, back)),
        price,
    ));
    facts.extend(look(&mut record, end + HOUR, None, price));
    assert_eq!(record.spent(0, end + 2 * HOUR), 60_000);
    assert_eq!(again(&facts).spent(0, end + 2 * HOUR), 60_000);
}

proptest! {
    #[test]
    fn parts_of_a_life_cost_as_much_as_all_of_it(
        prices in prop::collection::vec(1u64..5_000_000, 1..6),
        pause in (0i64..5 * HOUR, 1i64..2 * HOUR),
        cuts in prop::collection::vec(0i64..6 * HOUR, 0..8),
    ) {
        let mut record = BurstRecord::default();
        let price = |at: i64| {
            let hour = usize::try_from((at - LAUNCH) / HOUR).unwrap_or(0);
            Some(prices[hour.min(prices.len() - 1)])
        };
        let (from, long) = (LAUNCH + pause.0, pause.1);
        look(&mut record, LAUNCH, Some(&server(Status::Active, LAUNCH)), price);
        look(&mut record, from, Some(&server(Status::Active, LAUNCH)), price);
        look(&mut record, from, Some(&server(Status::Kept, LAUNCH)), price);
        look(&mut record, from + long, Some(&server(Status::Active, from + long)), price);
        let end = LAUNCH + 6 * HOUR;
        look(&mut record, end, Some(&server(Status::Active, from + long)), price);
        let mut cuts: Vec<i64> = cuts.iter().map(|at| LAUNCH + at).collect();
        cuts.extend([LAUNCH, end]);
        cuts.sort_unstable();
        let life = &record.lives["one"];
        let ms: i64 = cuts.windows(2).map(|part| life.paid_ms(part[0], part[1])).sum();
        prop_assert_eq!(ms, life.paid_ms(LAUNCH, end));
        prop_assert_eq!(ms, (end - LAUNCH) - long.min(end - from));
        // Each part is cut to whole millionths once.
        let parts: u64 = cuts.windows(2).map(|part| record.spent(part[0], part[1])).sum();
        let whole = record.spent(LAUNCH, end);
        prop_assert!(parts <= whole && whole - parts < cuts.len() as u64, "{} {}", parts, whole);
    }
}
