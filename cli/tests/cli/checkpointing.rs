//! `ebbtide-lab simulate checkpointing`: one job, six schemes, recorded prices.

use crate::run::{Ran, alone};
use std::io::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "unix_ts_utc,price_usd_per_hour\n";

/// Half a day cheap, half a day dear, for 100 days.
fn tides() -> String {
    let rows = (0..200).map(|half| {
        let price = if half % 2 == 0 { "0.10" } else { "0.30" };
        format!("{},{price}\n", half * 43_200)
    });
    HEAD.to_owned() + &rows.collect::<String>()
}

fn file(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

async fn simulate(history: &Path, options: &str) -> Ran {
    let path = history.display().to_string();
    let mut words = vec!["simulate", "checkpointing", "--history", &path];
    words.extend(options.split_whitespace());
    alone(&words).await
}

#[tokio::test]
async fn one_series_is_shown_bid_by_bid() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "tides.csv", tides().as_bytes());
    let ran = simulate(&history, "--job 20h --bids 0.05,0.1,0.3").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    insta::assert_snapshot!("simulate_checkpointing", ran.out);
    assert!(
        ran.err.contains("the bid 0.05 lies below every price"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn programs_get_every_figure() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "tides.csv", tides().as_bytes());
    let json = simulate(&history, "--job 20h --bids 0.05,0.1,0.3 -o json")
        .await
        .json();
    assert_eq!(json["job_seconds"], 72_000);
    let bids = json["series"][0]["bids"].as_array().unwrap();
    let never: Vec<bool> = bids
        .iter()
        .map(|bid| bid["never_runs"].as_bool().unwrap())
        .collect();
    assert_eq!(never, [true, false, false]);
    assert_eq!(bids[0]["schemes"][0]["cost"], serde_json::Value::Null);
    let names: Vec<&str> = bids[1]["schemes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scheme| scheme["scheme"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["NONE", "OPT", "HOUR", "EDGE", "ADAPT", "ACC"]);
    // Twelve hours cheap, less a checkpoint and a restart: OPT needs two of them, NONE never ends.
    let (none, opt) = (&bids[1]["schemes"][0], &bids[1]["schemes"][1]);
    assert_eq!(
        (&none["finished"], &none["never_ran"]),
        (&0.into(), &0.into())
    );
    assert_eq!(opt["finished"], bids[1]["starts"]);
    // 12 h killed at the full hour, then 8 h and 10 minutes: 21 hours of ten cents.
    assert!((opt["cost"].as_f64().unwrap() - 2.1).abs() < 1e-9, "{opt}");
    assert_eq!(opt["against_opt"]["cost_percent"], 0.0);
    let value = simulate(
        &history,
        "--job 20h --bids 0.1,0.3 --schemes opt,acc -o value",
    )
    .await;
    assert_eq!(value.out.lines().count(), 2);
    assert!(
        value.out.starts_with("OPT 2 0.000 0.000 0.000\nACC 2 "),
        "{}",
        value.out
    );
}

#[tokio::test]
async fn compressed_files_are_known_by_their_first_bytes() {
    let here = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(tides().as_bytes()).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(tides().as_bytes(), level);
    let mut said = Vec::new();
    for (name, bytes) in [
        ("plain.csv", tides().into_bytes()),
        ("gzip.csv", gzip.finish().unwrap()),
        ("zstd.txt", zstd),
    ] {
        let ran = simulate(
            &file(here.path(), name, &bytes),
            "--job 2h --schemes opt,acc",
        )
        .await;
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        said.push(ran.out);
    }
    assert!(said.iter().all(|out| *out == said[0]));
}

#[tokio::test]
async fn bad_histories_and_questions_are_refused_with_code_and_next_step() {
    let here = tempfile::tempdir().unwrap();
    let fine = "0,0.1\n86400,0.2\n";
    let cases = [
        ("", "--job 1h", 1, "EB-CKPT-001"),
        (HEAD, "--job 1h", 1, "EB-CKPT-001"),
        (
            "unix_ts_utc,price_usd_per_hour\n0,0.1\n",
            "--job 1h",
            1,
            "EB-CKPT-002",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n5,0.1\n3,0.1\n",
            "--job 1h",
            1,
            "EB-CKPT-003",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n5,0.1\n5,0.2\n",
            "--job 1h",
            1,
            "EB-CKPT-004",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n5,0.1\n9999999,0.2\n",
            "--job 1h",
            1,
            "EB-CKPT-005",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n5,0.1\n6,-0.2\n",
            "--job 1h",
            1,
            "EB-CKPT-006",
        ),
        (
            "unix_ts_utc,price_usd_per_hour\n5,0.1\n6,NaN\n",
            "--job 1h",
            1,
            "EB-CKPT-006",
        ),
        ("minute,cents\n5,0.1\n", "--job 1h", 1, "EB-CKPT-007"),
        (fine, "--job 0", 2, "EB-CKPT-008"),
        (fine, "--job 1h --checkpoint 60m", 2, "EB-CKPT-008"),
        (fine, "--job 1h --every 0", 2, "EB-CKPT-008"),
        (fine, "--job 1h --bids 0.01..0.09", 1, "EB-CKPT-009"),
        (fine, "--job 90h", 1, "EB-CKPT-010"),
        (fine, "--job -5h", 2, "error: \"-5h\" is below zero"),
        (
            fine,
            "--job 1h --bids -1..2",
            2,
            "error: \"-1..2\" is below zero",
        ),
        (fine, "--job 1h --series nothing", 4, "EB-CLI-004"),
        (fine, "--job 1h --plot /dev/null/plots", 1, "EB-SIM-008"),
    ];
    for (text, options, exit, code) in cases {
        let text = if text == fine {
            HEAD.to_owned() + fine
        } else {
            text.to_owned()
        };
        let ran = simulate(&file(here.path(), "prices.csv", text.as_bytes()), options).await;
        assert_eq!(ran.code, exit, "{text:?} {options}: {}", ran.err);
        assert!(ran.err.starts_with(code), "{text:?} {options}: {}", ran.err);
        assert!(ran.out.is_empty());
    }
    let absent = simulate(Path::new("/nowhere/prices.csv"), "--job 1h").await;
    assert!(absent.err.starts_with("EB-SIM-001: "), "{}", absent.err);
    for options in [
        "--job 1h --bids 0.5..0.4",
        "--job 1h --bids cheap",
        "--job 1h --schemes BEST",
        "--job 5",
        "--job -1h",
        "--job 1h --acc sometimes",
        "--job 1h --bid-count 1",
        "",
    ] {
        assert_eq!(simulate(Path::new("x"), options).await.code, 2, "{options}");
    }
}

#[tokio::test]
async fn a_bid_below_every_price_never_runs_and_is_told_so() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "tides.csv", tides().as_bytes());
    let ran = simulate(&history, "--job 1h --bids 0.01..0.09").await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains(
            "never runs: the highest bid is 0.09, and the lowest price of the whole history 0.10"
        ),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("next: raise the bids"), "{}", ran.err);
    let json = simulate(&history, "--job 1h --bids 0.01 -o json").await;
    assert!(
        json.err.contains("\"code\":\"EB-CKPT-009\""),
        "{}",
        json.err
    );
}

#[tokio::test]
async fn a_ceiling_below_the_bid_is_the_bid_and_no_instance_is_launched_again_and_again() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "tides.csv", tides().as_bytes());
    let options = "--job 2h --tail 0 --schemes opt,acc --bids 0.2..0.3 --bid-count 2";
    let low = simulate(&history, &format!("{options} --ceiling 0")).await;
    assert_eq!(low.code, 0, "{}", low.err);
    let played = low.out.lines().filter(|line| line.contains("ACC"));
    assert!(played.count() > 0, "{}", low.out);
}

#[tokio::test]
async fn charts_are_drawn_for_each_series_and_over_all() {
    let here = tempfile::tempdir().unwrap();
    let mut text = "zone,unix_ts_utc,price_usd_per_hour\n".to_owned();
    for (zone, factor) in [("a/b", 1), ("c", 2)] {
        for half in 0..200 {
            let cents = factor * if half % 2 == 0 { 10 } else { 30 };
            text += &format!("{zone},{},0.{cents}\n", half * 43_200);
        }
    }
    let history = file(here.path(), "two.csv", text.as_bytes());
    let plots = here.path().join("new/plots");
    let ran = simulate(&history, &format!("--job 9h --plot {}", plots.display())).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    // A slash is no part of a file's name.
    for name in ["a_b.svg", "c.svg", "all-series.svg"] {
        let svg = std::fs::read_to_string(plots.join(name)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("ACC"), "{name}");
    }
    assert!(
        ran.err.contains("a_b.svg to all-series.svg, 3 files"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("Mean over 2 series"), "{}", ran.out);
}

#[tokio::test]
async fn the_public_archive_reproduces_the_means_of_the_paper() {
    let data = ebbtide_test_data::data("ec2-spot-2010/spot_2009-11_2010-11.csv.zst");
    let archive = data.path;
    let json = simulate(&archive, "--job 500m --schemes opt,acc -o json")
        .await
        .json();
    let acc = &json["summary"][1];
    if data.reduced {
        assert_eq!((&acc["scheme"], &acc["series"]), (&"ACC".into(), &4.into()));
        assert!(acc["cost_percent"]["mean"].is_number(), "{acc}");
        return;
    }
    assert_eq!(
        (&acc["scheme"], &acc["series"]),
        (&"ACC".into(), &64.into())
    );
    for (key, wanted) in [
        ("cost_percent", 6.4),
        ("time_percent", -10.1),
        ("product_percent", -4.4),
    ] {
        let ours = acc[key]["mean"].as_f64().unwrap();
        assert!(
            (ours - wanted).abs() < 1.0,
            "{key}: {ours} against {wanted}"
        );
    }
}

async fn bid(history: &Path, options: &str) -> Ran {
    let path = history.display().to_string();
    let mut words = vec!["plan", "bid", "--history", &path];
    words.extend(options.split_whitespace());
    alone(&words).await
}

/// Two types: one cheap for half of each day, one dear and always there.
fn two_types() -> String {
    let mut text = "type,unix_ts_utc,price_usd_per_hour\n".to_owned();
    for half in 0..200 {
        let price = if half % 2 == 0 { "0.10" } else { "0.90" };
        text += &format!("tidal,{},{price}\n", half * 43_200);
    }
    // A row now and then: too long a silence is refused.
    let steady = (0..=4).map(|i| format!("steady,{},0.25\n", i * 2_160_000));
    text + &steady.collect::<String>()
}

#[tokio::test]
async fn the_bid_is_chosen_by_goal_deadline_and_budget() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "two.csv", two_types().as_bytes());
    for (options, wanted) in [
        ("--goal cost", "tidal 0.10"),
        ("--goal time", "steady 0.25"),
        ("--goal cost --deadline 8h", "steady 0.25"),
        ("--goal time --budget 1", "tidal 0.10"),
        ("--goal cost --method replay --deadline 7h", "steady 0.25"),
        // Three times as fast, and so a third of the hours.
        ("--goal cost --speed steady=3", "steady 0.25"),
    ] {
        let ran = bid(
            &history,
            &format!("--job 6h --bids 0.1,0.25 {options} -o value"),
        )
        .await;
        assert_eq!(ran.code, 0, "{options}: {}", ran.err);
        assert_eq!(ran.out.lines().next(), Some(wanted), "{options}");
    }
    let ran = bid(&history, "--job 6h --bids 0.1,0.25").await;
    insta::assert_snapshot!("plan_bid", ran.out);
    let json = bid(&history, "--job 6h --bids 0.1,0.25 --goal time -o json")
        .await
        .json();
    assert_eq!(json["choice"]["series"], "steady");
    assert_eq!(json["choice"]["life_hours"], serde_json::Value::Null);
    assert_eq!(json["choice"]["played"]["scheme"], "ACC");
    assert!((json["choice"]["cost"].as_f64().unwrap() - 1.5).abs() < 1e-9);
    assert_eq!(json["offers_considered"], 3);
}

#[tokio::test]
async fn algorithm_1_as_printed_bids_the_lowest_on_demand_price_and_takes_the_fastest_type() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "two.csv", two_types().as_bytes());
    // At 0.30 the tidal type lives for half a day, too short for the job, the steady one for ever.
    let prices = "--job 14h --method paper --on-demand tidal=0.30 --on-demand steady=1";
    let json = bid(&history, &format!("{prices} -o json")).await.json();
    assert_eq!(json["choice"]["series"], "steady");
    assert_eq!(json["choice"]["bid"], "0.30");
    assert_eq!(json["offers_considered"], 2);
    // Ours stands beside it, and Algorithm 1 beside ours.
    assert_eq!(
        (&json["method"], &json["beside"]["method"]),
        (&"paper".into(), &"equation".into())
    );
    let on_demand = "--job 14h --on-demand tidal=0.30 --on-demand steady=1";
    let json = bid(&history, &format!("{on_demand} -o json")).await.json();
    assert_eq!(
        (&json["method"], &json["beside"]["method"]),
        (&"equation".into(), &"paper".into())
    );
    assert_eq!(json["beside"]["series"], "steady");
    assert_eq!(json["beside"]["bid"], "0.30");
    let said = bid(&history, prices).await.out;
    assert!(
        said.contains("Algorithm 1 (equations 7 and 8): bid 0.30 on steady: expected execution")
            && said.contains("ours (bids searched, equation 8): bid "),
        "{said}"
    );

    for (options, part) in [
        (
            "--method paper --on-demand tidal=1",
            "steady has no on-demand price",
        ),
        ("--method paper --on-demand t=1 --goal cost", "--goal"),
        ("--method paper --on-demand t=1 --deadline 9h", "--deadline"),
        ("--method paper --on-demand t=1 --bids 0.1", "--bids"),
        ("--method paper --on-demand t=1 --speed t=2", "--speed"),
        ("--on-demand tidal=1", "steady has no on-demand price"),
    ] {
        let ran = bid(&history, &format!("--job 6h {options}")).await;
        assert!(
            ran.err.starts_with("EB-CLI-011: "),
            "{options}: {}",
            ran.err
        );
        assert!(ran.err.contains(part), "{options}: {}", ran.err);
    }
}

#[tokio::test]
async fn bids_that_cannot_be_planned_are_refused() {
    let here = tempfile::tempdir().unwrap();
    let history = file(here.path(), "two.csv", two_types().as_bytes());
    for (options, exit, code) in [
        ("--job 6h --bids 0.01", 1, "EB-CKPT-009"),
        ("--job 0", 2, "EB-CKPT-008"),
        ("--job 6h --deadline 5h", 1, "EB-CLI-011"),
        ("--job 6h --budget 0.01", 1, "EB-CLI-011"),
        ("--job 6h --series none", 4, "EB-CLI-004"),
    ] {
        let ran = bid(&history, options).await;
        assert_eq!(ran.code, exit, "{options}: {}", ran.err);
        assert!(
            ran.err.starts_with(&format!("{code}: ")),
            "{options}: {}",
            ran.err
        );
    }
    // Longer than any instance lived: without checkpoints hopeless, with them a matter of days.
    let long = "--job 13h --bids 0.1 --series tidal";
    let ran = bid(&history, long).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("without checkpoints it would never end"),
        "{}",
        ran.err
    );
    let ran = bid(&history, &format!("{long} --method replay -o value")).await;
    assert_eq!((ran.code, ran.out.trim()), (0, "tidal 0.10"), "{}", ran.err);
    for options in [
        "--job 6h --speed fast",
        "--job 6h --speed a=0",
        "--job 6h --goal luck",
        "--job 6h --method hand",
    ] {
        assert_eq!(bid(&history, options).await.code, 2, "{options}");
    }
}

#[tokio::test]
async fn generated_markets_take_the_place_of_a_file() {
    let words = "simulate checkpointing --spiky-markets 2 --job 500m --bid-count 3 -o json";
    let words: Vec<&str> = words.split_whitespace().collect();
    let ran = alone(&words).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    assert_eq!(json["history"], "2 generated markets");
    let series = json["series"].as_array().unwrap();
    let names: Vec<_> = series.iter().map(|one| &one["series"]).collect();
    assert_eq!(names, ["spiky-1", "spiky-2"]);
    let neither = alone(&["simulate", "checkpointing", "--job", "500m"]).await;
    assert!(neither.err.contains("--history"), "{}", neither.err);
    let none = [
        "simulate",
        "checkpointing",
        "--job",
        "1h",
        "--spiky-markets",
        "0",
    ];
    assert_ne!(alone(&none).await.code, 0);
    let other = [&words[..], &["--series", "spiky-3"]].concat();
    let other = alone(&other).await;
    assert!(
        other.err.contains("spiky-3") && other.code != 0,
        "{}",
        other.err
    );
}
