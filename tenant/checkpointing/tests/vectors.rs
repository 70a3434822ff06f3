//! The paper's rules, held against vectors that were checked by hand.

use ebbtide_checkpointing::{
    AccReading, BidLifetimes, CheckpointTerms, CheckpointedJob, Event, JobEnd, Market,
    PriceHistory, SchemeKind, TerminatedBy, bill, events, run, scheme,
};
use ebbtide_model::Money;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/002_acc.json")).unwrap()
}

/// The decimal of a JSON number, exactly as it stands there.
fn money(value: &Value) -> Money {
    value.to_string().parse().unwrap()
}

/// A price that holds for a month after its last change: the vectors do not say how long.
fn history(value: &Value) -> PriceHistory {
    let changes: Vec<(i64, Money)> = value
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change[0].as_i64().unwrap(), money(&change[1])))
        .collect();
    PriceHistory::new(&changes, changes.last().unwrap().0 + 30 * 86_400).unwrap()
}

fn pairs(events: &[Event]) -> Vec<(String, i64)> {
    events
        .iter()
        .map(|event| (event.kind.as_str().to_owned(), event.at))
        .collect()
}

#[test]
fn every_event_vector_passes() {
    let all = vectors();
    let cases = all["event_vectors"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let history = history(&case["price"]);
        let market = Market::new(&history, money(&case["a_bid"]));
        let launch = case["launch"].as_i64().unwrap();
        let terms = |reading| CheckpointTerms {
            checkpoint_seconds: case["tc"].as_i64().unwrap(),
            terminate_seconds: case["tw"].as_i64().unwrap(),
            reading,
            ..CheckpointTerms::default()
        };
        if let Some(hour) = case["hour"].as_i64().filter(|_| case["t_cd"].is_i64()) {
            let points = terms(AccReading::Strict).decision_points(launch, hour);
            let wanted = (
                case["t_cd"].as_i64().unwrap(),
                case["t_td"].as_i64().unwrap(),
            );
            assert_eq!(points, wanted, "{name}");
        }
        let until = case["hour"]
            .as_i64()
            .map_or(i64::MAX, |hour| launch + hour * 3600);
        let mut checked = 0;
        for (key, reading) in [
            ("events", AccReading::Strict),
            ("events", AccReading::Naive),
            ("events_strict", AccReading::Strict),
            ("events_naive", AccReading::Naive),
        ] {
            let Some(wanted) = case[key].as_array() else {
                continue;
            };
            let wanted: Vec<(String, i64)> = wanted
                .iter()
                .map(|e| (e[0].as_str().unwrap().to_owned(), e[1].as_i64().unwrap()))
                .collect();
            let mut seen = pairs(&events(&market, &terms(reading), launch));
            seen.retain(|(_, at)| *at <= until);
            assert_eq!(seen, wanted, "{name}, {reading:?}");
            checked += 1;
        }
        assert_eq!(checked, 2, "{name}: a vector that says nothing");
    }
}

#[test]
fn every_charging_vector_passes() {
    let all = vectors();
    let cases = all["charging_vectors"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let by = match case["end_by"].as_str().unwrap() {
            "user" => TerminatedBy::User,
            "provider" => TerminatedBy::Provider,
            other => panic!("{other}"),
        };
        let bill = bill(
            &history(&case["price"]),
            case["launch"].as_i64().unwrap(),
            case["end"].as_i64().unwrap(),
            by,
        );
        let hours = case["hours_charged"].as_array().unwrap();
        let wanted: Vec<Money> = hours.iter().map(money).collect();
        assert_eq!(bill.hours, wanted, "{}", case["name"]);
        assert_eq!(bill.total, money(&case["cost"]), "{}", case["name"]);
    }
}

#[test]
fn every_scenario_vector_passes() {
    let all = vectors();
    let scenarios = &all["scenario_vectors"];
    let given = &scenarios["params"];
    let terms = CheckpointTerms {
        checkpoint_seconds: given["t_c"].as_i64().unwrap(),
        restart_seconds: given["restart_s"].as_i64().unwrap(),
        terminate_seconds: given["t_w"].as_i64().unwrap(),
        ..CheckpointTerms::default()
    };
    let job = CheckpointedJob {
        work_seconds: given["work_s"].as_i64().unwrap(),
        start: given["start"].as_i64().unwrap(),
    };
    let mut checked = 0;
    for case in scenarios["cases"].as_array().unwrap() {
        let history = history(&case["price"]);
        let market = Market::new(&history, money(&given["bid"]));
        for (name, wanted) in case["expect"].as_object().unwrap() {
            let kind: SchemeKind = name.parse().unwrap();
            let outcome = run(&market, scheme(kind), &terms, &BidLifetimes::default(), job);
            assert_eq!(outcome.cost, money(&wanted[0]), "{name}: {}", case["price"]);
            let end = wanted[1].as_i64().unwrap();
            assert_eq!(
                outcome.ending,
                JobEnd::Done(end),
                "{name}: {}",
                case["price"]
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 10);
}

#[test]
fn the_paper_has_six_schemes_and_so_have_we() {
    let all = vectors();
    let names: Vec<&str> = all["schemes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(SchemeKind::ALL.map(SchemeKind::as_str).to_vec(), names);
}
