//! Unusable histories and questions are refused, with the place of the error and the next step.

use ebbtide_checkpointing::{
    BidGoal, Candidate, CheckpointTerms, CheckpointingError, PriceHistory, SchemeKind, Starts,
    band, bids, choose, compare, offers, read_series,
};
use ebbtide_model::Money;

const DAY: i64 = 86_400;

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

fn refused(text: &str) -> (String, String) {
    let error = read_series(text.as_bytes(), 60 * DAY).unwrap_err();
    (error.code().to_owned(), error.to_string())
}

const HEAD: &str = "unix_ts_utc,price_usd_per_hour\n";

#[test]
fn a_row_that_stands_twice_counts_once_and_is_said() {
    let text = format!("{HEAD}0,0.3\n60,0.2\n60,0.2\n60,0.20\n120,0.4\n180,0.4\n");
    let series = read_series(text.as_bytes(), DAY).unwrap().remove(0);
    assert_eq!(series.history.len(), 4);
    assert_eq!(
        (series.repeated.count, series.repeated.first_line),
        (2, Some(4))
    );
    // The same price at a later time is no repetition: it says that the record goes on.
    assert_eq!(series.history.end(), 180);
    let text = format!("{HEAD}0,0.3\n0,0.3\n");
    assert_eq!(refused(&text).0, "EB-CKPT-002", "one row, twice");
}

#[test]
fn bad_files_are_refused_with_line_and_reason() {
    let cases = [
        ("", "EB-CKPT-001", "the price history is empty"),
        (HEAD, "EB-CKPT-001", "the price history is empty"),
        (
            "unix_ts_utc,price_usd_per_hour\n1,0.3\n",
            "EB-CKPT-002",
            "one row only",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,0.3\n5,0.2\n4,0.1\n",
            "EB-CKPT-003",
            "line 4: time 4 comes after 5",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,0.3\n1,0.2\n",
            "EB-CKPT-004",
            "line 3: time 1 stands there twice, with the prices 0.30 and 0.20",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n0,0.3\n6000000,0.2\n",
            "EB-CKPT-005",
            "line 3: 69.4 days without a row before time 6000000, more than the 60.0",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,NaN\n",
            "EB-CKPT-006",
            "line 2: price_usd_per_hour is \"NaN\"",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,-0.3\n",
            "EB-CKPT-006",
            "not negative",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,\n",
            "EB-CKPT-006",
            "price_usd_per_hour is \"\"",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,0.1234567\n",
            "EB-CKPT-006",
            "at most six decimals",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n2010-01-01,0.3\n",
            "EB-CKPT-006",
            "whole seconds since 1970",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1262304000000,0.3\n",
            "EB-CKPT-006",
            "milliseconds",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n1,0.3,eu\n",
            "EB-CKPT-006",
            "3 columns where the header has 2",
        ),
        (
            "time,price\n1,0.3\n",
            "EB-CKPT-007",
            "no column \"unix_ts_utc\" in the header, which has: time, price",
        ),
        (
            "unix_ts_utc,price_eur\n1,0.3\n",
            "EB-CKPT-007",
            "no column \"price_usd_per_hour\"",
        ),
    ];
    for (text, code, words) in cases {
        let (seen, said) = refused(text);
        assert_eq!(seen, code, "{text:?}: {said}");
        assert!(said.contains(words), "{text:?}: {said}");
    }
    let bytes = [
        b"unix_ts_utc,price_usd_per_hour\n1,".as_slice(),
        &[0xff, 0xfe],
    ]
    .concat();
    assert_eq!(read_series(&bytes, DAY).unwrap_err().code(), "EB-CKPT-006");
}

#[test]
fn the_series_with_the_fault_is_named() {
    let text = "region,os,unix_ts_utc,price_usd_per_hour\n\
                eu,linux,1,0.3\nus,linux,1,0.4\neu,linux,9,0.3\nus,linux,1,0.5\n";
    let (code, said) = refused(text);
    assert_eq!(code, "EB-CKPT-004");
    assert!(said.starts_with("us.linux, line 5: "), "{said}");
    let (code, said) =
        refused("type,unix_ts_utc,price_usd_per_hour\nm1,1,0.3\nm1,5,0.3\nc1,1,0.2\n");
    assert_eq!(code, "EB-CKPT-002");
    assert!(said.contains("\"c1\""), "{said}");
}

#[test]
fn series_may_be_mixed_and_columns_in_any_order() {
    let text = "price_usd_per_hour,os,unix_ts_utc,type\n0.3,linux,1,m1\n0.5,windows,2,m1\n0.2,linux,5,m1\n0.5,windows,3,m1\n";
    let series = read_series(text.as_bytes(), DAY).unwrap();
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["linux.m1", "windows.m1"]);
    assert_eq!(series[0].history.price_at(4), money("0.3"));
    assert_eq!((series[0].history.start(), series[0].history.end()), (1, 5));
    // Windows line ends and a byte order mark are what spreadsheets write.
    let text = "\u{feff}unix_ts_utc,price_usd_per_hour\r\n1,0.3\r\n2,0.4\r\n";
    assert_eq!(read_series(text.as_bytes(), DAY).unwrap()[0].name, "");
}

#[test]
fn impossible_terms_and_jobs_are_refused() {
    let history = PriceHistory::new(&[(0, money("0.3"))], 100 * DAY).unwrap();
    let ask = |terms: CheckpointTerms, work: i64, starts: Starts| {
        compare(
            &history,
            money("0.5"),
            &SchemeKind::ALL,
            &terms,
            work,
            starts,
        )
        .map_err(|e| e.to_string())
    };
    let fine = (CheckpointTerms::default(), 30_000, Starts::default());
    ask(fine.0, fine.1, fine.2).unwrap();
    let terms = |change: fn(&mut CheckpointTerms)| {
        let mut terms = CheckpointTerms::default();
        change(&mut terms);
        ask(terms, 30_000, Starts::default()).unwrap_err()
    };
    assert_eq!(
        terms(|t| t.checkpoint_seconds = -1),
        "the checkpoint time is -1 s; it has to be from 0 s to 30 days"
    );
    assert!(terms(|t| t.checkpoint_seconds = 3600).contains("below an hour"));
    assert!(terms(|t| t.restart_seconds = -5).contains("the restart time"));
    assert!(terms(|t| t.adapt.every_seconds = 0).contains("ADAPT"));
    for work in [0, -1, i64::MAX] {
        assert!(
            ask(fine.0, work, fine.2)
                .unwrap_err()
                .contains("the job is")
        );
    }
    let never = Starts {
        every_seconds: 0,
        ..Starts::default()
    };
    assert!(
        ask(fine.0, fine.1, never)
            .unwrap_err()
            .contains("the time between starts")
    );
    let always = Starts {
        every_seconds: 1,
        ..Starts::default()
    };
    assert!(
        ask(fine.0, fine.1, always)
            .unwrap_err()
            .contains("at most a hundred thousand starts")
    );
    let back = Starts {
        tail_seconds: -1,
        ..Starts::default()
    };
    assert!(
        ask(fine.0, fine.1, back)
            .unwrap_err()
            .contains("the time without starts")
    );
    assert_eq!(
        PriceHistory::new(&[], 5).unwrap_err(),
        CheckpointingError::Empty
    );
    assert_eq!(
        PriceHistory::new(&[(5, money("1"))], 5).unwrap_err().code(),
        "EB-CKPT-008"
    );
}

#[test]
fn a_bid_below_every_price_never_runs_and_the_result_says_so() {
    let history = PriceHistory::new(&[(0, money("0.3"))], 100 * DAY).unwrap();
    let starts = Starts::default();
    let row = compare(
        &history,
        money("0.29"),
        &SchemeKind::ALL,
        &CheckpointTerms::default(),
        30_000,
        starts,
    )
    .unwrap();
    assert_eq!(row.starts, 59);
    for result in &row.schemes {
        assert_eq!(
            (result.finished, result.never_ran),
            (0, 59),
            "{}",
            result.kind
        );
        assert!(result.cost.is_nan() && result.against_opt.is_none());
    }
    let candidate = [Candidate {
        name: "m1",
        history: &history,
        speed: 1.0,
    }];
    let error = offers(
        &candidate,
        |_| vec![money("0.1"), money("0.29")],
        30_000,
        &CheckpointTerms::default(),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "never runs: the highest bid is 0.29, and the lowest price of the whole history 0.30"
    );
}

#[test]
fn a_job_longer_than_the_history_never_ends() {
    let history = PriceHistory::new(&[(0, money("0.3"))], 2 * DAY).unwrap();
    let row = compare(
        &history,
        money("0.5"),
        &[SchemeKind::Acc],
        &CheckpointTerms::default(),
        3 * DAY,
        Starts::default(),
    )
    .unwrap();
    assert_eq!(
        (
            row.starts,
            row.schemes[0].finished,
            row.schemes[0].never_ran
        ),
        (1, 0, 0)
    );
}

#[test]
fn bids_are_even_and_whole_thousandths() {
    let all = |low, high, count| -> Vec<String> {
        bids(money(low), money(high), count)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        all("0.038", "0.042", 21),
        ["0.038", "0.039", "0.04", "0.041", "0.042"].map(|b| money(b).to_string())
    );
    assert_eq!(
        all("0.401", "0.441", 5),
        ["0.401", "0.411", "0.421", "0.431", "0.441"]
    );
    assert_eq!(all("0.0001", "0.0003", 3), ["0.0001", "0.0003"]);
    assert_eq!(all("0.5", "0.5", 21), ["0.50"]);
    assert_eq!(bids(money("0.401"), money("0.441"), 21).len(), 21);
}

#[test]
fn the_band_covers_the_middle_nine_tenths_of_the_time() {
    // 0.1 for 4 %, 0.2 for 90 %, 0.9 for 6 % of the time.
    let changes = [(0, money("0.1")), (4, money("0.2")), (94, money("0.9"))];
    let history = PriceHistory::new(&changes, 100).unwrap();
    assert_eq!(band(&history), (money("0.2"), money("0.9")));
    assert!((history.mean_up_to(money("0.2")).unwrap() - 18.4 / 94.0).abs() < 1e-12);
    assert_eq!(history.mean_up_to(money("0.05")), None);
}

#[test]
fn the_choice_keeps_deadline_and_budget_and_serves_the_goal() {
    // Cheap but away half of the time; dear and always there.
    let day_and_night: Vec<(i64, Money)> = (0..200)
        .map(|half| {
            (
                half * 43_200,
                money(if half % 2 == 0 { "0.1" } else { "0.9" }),
            )
        })
        .collect();
    let cheap = PriceHistory::new(&day_and_night, 200 * 43_200).unwrap();
    let dear = PriceHistory::new(&[(0, money("0.25"))], 200 * 43_200).unwrap();
    let candidates = [
        Candidate {
            name: "cheap",
            history: &cheap,
            speed: 1.0,
        },
        Candidate {
            name: "dear",
            history: &dear,
            speed: 1.0,
        },
    ];
    let bids = |_: &Candidate<'_>| vec![money("0.1"), money("0.3")];
    let offers = offers(&candidates, bids, 6 * 3600, &CheckpointTerms::default()).unwrap();
    assert_eq!(offers.len(), 3, "a bid that never runs is no offer");
    let chosen = |goal, deadline, budget: Option<&str>| {
        choose(&offers, goal, deadline, budget.map(money)).map(|i| {
            (
                candidates[offers[i].candidate].name,
                offers[i].bid.to_string(),
            )
        })
    };
    let named = |name, bid: &str| Some((name, bid.to_owned()));
    assert_eq!(chosen(BidGoal::Cost, None, None), named("cheap", "0.10"));
    assert_eq!(chosen(BidGoal::Time, None, None), named("dear", "0.30"));
    assert_eq!(chosen(BidGoal::Product, None, None), named("cheap", "0.10"));
    assert_eq!(
        chosen(BidGoal::Cost, Some(8.0), None),
        named("dear", "0.30")
    );
    assert_eq!(
        chosen(BidGoal::Time, None, Some("1")),
        named("cheap", "0.10")
    );
    assert_eq!(chosen(BidGoal::Time, Some(8.0), Some("1")), None);
    let slow = [Candidate {
        speed: 0.0,
        ..candidates[0]
    }];
    assert!(ebbtide_checkpointing::offers(&slow, bids, 3600, &CheckpointTerms::default()).is_err());
}
