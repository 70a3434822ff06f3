//! The 64 real series: what the paper claims reproduces on public data.
//!
//! Where the archive is not, four reduced series take its place, and what must hold on any series
//! is looked at.

use ebbtide_checkpointing::{
    BidComparison, CheckpointTerms, SchemeKind, Series, Starts, band, bids, compare, over_bids,
    over_series, read_series,
};
use ebbtide_model::Money;
use serde_json::Value;
use std::io::Read;
use std::sync::Mutex;

const DAY: i64 = 86_400;
/// 500 minutes, the paper's job.
const JOB: i64 = 500 * 60;

/// The series, and whether they are reduced ones.
fn archive() -> (Vec<Series>, bool) {
    let data = ebbtide_test_data::data("ec2-spot-2010/spot_2009-11_2010-11.csv.zst");
    let file = std::fs::File::open(&data.path).unwrap();
    let mut text = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(file)
        .unwrap()
        .read_to_end(&mut text)
        .unwrap();
    (read_series(&text, 60 * DAY).unwrap(), data.reduced)
}

/// Processor time of this process by now, seconds (proc(5), stat).
fn processor_seconds() -> f64 {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

fn close(ours: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!(
        (ours - wanted).abs() <= tolerance,
        "{what}: {ours:.2} against {wanted:.2}"
    );
}

#[test]
fn the_mean_over_all_64_series_reproduces_in_less_than_a_minute() {
    let begin = processor_seconds();
    let (series, reduced) = archive();
    assert_eq!(series.len(), if reduced { 4 } else { 64 });
    let kinds = SchemeKind::ALL;
    let next = Mutex::new(series.iter());
    let means = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(one) = next.lock().unwrap().next() else {
                        return;
                    };
                    let (low, high) = band(&one.history);
                    let rows: Vec<BidComparison> = bids(low, high, 21)
                        .into_iter()
                        .map(|bid| {
                            let starts = Starts::default();
                            compare(
                                &one.history,
                                bid,
                                &kinds,
                                &CheckpointTerms::default(),
                                JOB,
                                starts,
                            )
                            .unwrap()
                        })
                        .collect();
                    let summary = over_bids(&rows, SchemeKind::Acc).unwrap();
                    means.lock().unwrap().push((one.name.clone(), summary));
                }
            });
        }
    });
    let means = means.into_inner().unwrap();
    // A minute on two processors of its own, whatever else the machine does.
    let seconds = processor_seconds() - begin;
    println!("all series, all bids, all schemes: {seconds:.1} s of processor time");
    assert!(seconds < 120.0, "{seconds:.1} s");
    if reduced {
        let all: Vec<_> = means.iter().map(|(_, summary)| *summary).collect();
        let mean = over_series(SchemeKind::Acc, &all).unwrap();
        assert_eq!(mean.of, 4);
        for ours in [mean.cost, mean.time, mean.product] {
            assert!(ours.min <= ours.mean && ours.mean <= ours.max, "{ours:?}");
        }
        return;
    }
    let vectors: Value = serde_json::from_str(include_str!("vectors/002_acc.json")).unwrap();
    let wanted = &vectors["reproduced"]["all64"];
    let all: Vec<_> = means.iter().map(|(_, summary)| *summary).collect();
    let mean = over_series(SchemeKind::Acc, &all).unwrap();
    assert_eq!(mean.of, 64);
    for (ours, key) in [
        (mean.cost, "mean_cost"),
        (mean.time, "mean_time"),
        (mean.product, "mean_product"),
    ] {
        close(ours.mean, wanted[key].as_f64().unwrap(), 1.0, key);
    }
    // Each series for itself, too: a mean can be right by accident.
    for row in wanted["per_type"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let (_, ours) = means.iter().find(|(n, _)| n == name).unwrap();
        assert_eq!(ours.of as u64, row["n_bids"].as_u64().unwrap(), "{name}");
        close(
            ours.cost.mean,
            row["ACC_cost"][0].as_f64().unwrap(),
            1.0,
            name,
        );
        // The extremes are those of single bids.
        close(
            ours.cost.min,
            row["ACC_cost"][1].as_f64().unwrap(),
            1.5,
            name,
        );
        close(
            ours.cost.max,
            row["ACC_cost"][2].as_f64().unwrap(),
            1.5,
            name,
        );
        close(ours.time.mean, row["ACC_time"].as_f64().unwrap(), 4.0, name);
        close(
            ours.product.mean,
            row["ACC_prod"].as_f64().unwrap(),
            4.0,
            name,
        );
    }
}

#[test]
fn the_sweeps_over_single_series_reproduce_bid_by_bid() {
    let (series, reduced) = archive();
    if reduced {
        for one in &series {
            let (low, high) = band(&one.history);
            let (terms, starts) = (CheckpointTerms::default(), Starts::default());
            let mut finished = 0;
            for bid in bids(low, high, 5) {
                let kinds = &SchemeKind::ALL;
                let row = compare(&one.history, bid, kinds, &terms, JOB, starts).unwrap();
                for kind in SchemeKind::ALL {
                    let ours = row.of(kind).unwrap();
                    let possible = ours.cost > 0.0 && ours.hours * 3600.0 >= JOB as f64;
                    assert!(ours.finished == 0 || possible, "{} {bid} {kind}", one.name);
                }
                // A job that saves at the best moments gets through wherever another one does, and
                // more often with a higher bid.
                let best = row.of(SchemeKind::Opt).unwrap().finished;
                let none = row.of(SchemeKind::None).unwrap().finished;
                assert!(best >= none && best >= finished, "{} {bid}", one.name);
                finished = best;
            }
            assert!(finished > 0, "{}", one.name);
        }
        return;
    }
    let sweeps: Value = serde_json::from_str(include_str!("vectors/002_sweep_rows.json")).unwrap();
    let kinds = [SchemeKind::Opt, SchemeKind::Acc, SchemeKind::Hour];
    for sweep in sweeps.as_array().unwrap() {
        let name = sweep["name"].as_str().unwrap();
        let one = series.iter().find(|one| one.name == name).unwrap();
        let terms = CheckpointTerms {
            checkpoint_seconds: sweep["tc"].as_i64().unwrap(),
            restart_seconds: sweep["tr"].as_i64().unwrap(),
            ..CheckpointTerms::default()
        };
        let mut rows = Vec::new();
        for wanted in sweep["rows"].as_array().unwrap() {
            let bid: Money = wanted[0].to_string().parse().unwrap();
            let row = compare(&one.history, bid, &kinds, &terms, JOB, Starts::default()).unwrap();
            for kind in kinds {
                let ours = row.of(kind).unwrap();
                let figures = &wanted[3][kind.as_str()];
                let what = format!("{name} {bid} {kind}");
                let percent = |ours: f64, wanted: f64| 100.0 * (ours / wanted - 1.0);
                let cost = percent(ours.cost, figures[0].as_f64().unwrap());
                let time = percent(ours.hours * 60.0, figures[1].as_f64().unwrap());
                // Costs agree to a hundredth of a per cent. Times agree as well but for bids that
                // lie below the price over the first 40 days of the archive: those jobs wait 1.2
                // days longer here than in the prototype, which read the raw records.
                close(cost, 0.0, 0.2, &what);
                close(time, 0.0, 4.0, &what);
            }
            rows.push(row);
        }
        let acc = over_bids(&rows, SchemeKind::Acc).unwrap();
        for (ours, i) in [(acc.cost.mean, 0), (acc.cost.min, 1), (acc.cost.max, 2)] {
            close(ours, sweep["ACC_cost"][i].as_f64().unwrap(), 0.5, name);
        }
        close(
            acc.time.mean,
            sweep["ACC_time"].as_f64().unwrap(),
            0.5,
            name,
        );
        close(
            acc.product.mean,
            sweep["ACC_prod"].as_f64().unwrap(),
            0.5,
            name,
        );
        let hour = over_bids(&rows, SchemeKind::Hour).unwrap();
        close(
            hour.cost.mean,
            sweep["HOUR_cost"].as_f64().unwrap(),
            0.5,
            name,
        );
        close(
            hour.time.mean,
            sweep["HOUR_time"].as_f64().unwrap(),
            0.5,
            name,
        );
    }
}

#[test]
fn bids_above_all_prices_make_all_schemes_alike_but_hour() {
    let (series, _) = archive();
    let name = "eu-west-1.linux.m1.xlarge";
    let one = series.iter().find(|one| one.name == name).unwrap();
    let bid: Money = "2".parse().unwrap();
    let terms = CheckpointTerms::default();
    let row = compare(
        &one.history,
        bid,
        &SchemeKind::ALL,
        &terms,
        JOB,
        Starts::default(),
    )
    .unwrap();
    for kind in [SchemeKind::None, SchemeKind::Adapt, SchemeKind::Acc] {
        let against = row.of(kind).unwrap().against_opt.unwrap();
        assert_eq!(
            (against.cost_percent, against.time_percent),
            (0.0, 0.0),
            "{kind}"
        );
    }
    let hour = row.of(SchemeKind::Hour).unwrap().against_opt.unwrap();
    assert!(hour.time_percent > 5.0);
}
