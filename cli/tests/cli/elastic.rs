//! `ebbtide-lab simulate elastic`: a cluster with preemptible servers for its short jobs.

use crate::run::{Ran, alone};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bursts of short jobs every minute beside long ones that fill a cluster of 20 servers, for a few
/// hours.
fn bursts() -> String {
    let mut lines = String::new();
    for minute in 0..240 {
        let at = minute * 60;
        if minute % 10 == 0 {
            let tasks = " 700".repeat(16);
            lines.push_str(&format!("{at} 16 700{tasks}\n"));
        }
        let tasks = " 20".repeat(10);
        lines.push_str(&format!("{}.5 10 20{tasks}\n", at + 30));
    }
    lines
}

fn file(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

async fn simulate(trace: &Path, options: &str) -> Ran {
    let path = trace.display().to_string();
    let mut words = vec!["simulate", "elastic", "--trace", &path];
    words.extend(options.split_whitespace());
    alone(&words).await
}

const SMALL: &str = "--servers 20 --short-only 4 --cutoff 100s --seeds 2 --threshold 0.6";

async fn json(trace: &Path, options: &str) -> Value {
    let ran = simulate(trace, &format!("{SMALL} -o json {options}")).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.json()
}

#[tokio::test]
async fn programs_get_the_improvement_and_what_it_is_made_of() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let json = json(&trace, "--ratio 1,4").await;
    let number = |value: &Value| value.as_f64().unwrap();
    let improvement = number(&json["improvement"]);
    assert!(improvement > 1.5, "{improvement}");
    let fixed = number(&json["static"]["mean_delay_seconds"]);
    let elastic = json["elastic"].as_array().unwrap();
    assert_eq!(elastic.len(), 2);
    let last = number(&elastic[1]["mean_delay_seconds"]);
    assert!((fixed / last - improvement).abs() < 1e-9);
    assert_eq!(
        (&elastic[1]["budget"], &elastic[1]["on_demand"]),
        (&8.into(), &2.into())
    );
    assert!(number(&elastic[1]["transients"]["most"]) <= 8.0);
    assert_eq!(json["short_tasks"], 2_400);
    // Distributions end where everybody is served.
    let steps = json["static"]["distribution"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()[1], 1.0);
}

#[tokio::test]
async fn gzip_and_zstd_are_the_same_trace() {
    let here = tempfile::tempdir().unwrap();
    let text = bursts();
    let plain = file(here.path(), "bursts.tr", text.as_bytes());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = file(here.path(), "gzip.tr", &gzip.finish().unwrap());
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
    let zstd = file(here.path(), "zstd.tr", &zstd);
    let wanted = json(&plain, "").await["elastic"].clone();
    for path in [gzip, zstd] {
        assert_eq!(json(&path, "").await["elastic"], wanted);
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_table_on_any_number_of_threads() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let one = simulate(&trace, &format!("{SMALL} --threads 1")).await;
    let four = simulate(&trace, &format!("{SMALL} --threads 4")).await;
    assert_eq!(one.code, 0, "{}", one.err);
    assert_eq!(one.out, four.out);
    insta::assert_snapshot!("simulate_elastic", one.out);
}

#[tokio::test]
async fn sweeps_show_where_it_pays_and_where_it_does_not() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let json = json(
        &trace,
        "--ratio 4 --sweep threshold=0.5,1 --sweep provisioning=10,100000 --sweep interruptions=0,100",
    )
    .await;
    let sweeps = json["sweeps"].as_array().unwrap();
    let waits = |sweep: usize| -> Vec<&str> {
        let points = sweeps[sweep]["points"].as_array().unwrap();
        points
            .iter()
            .map(|point| point["waits"].as_str().unwrap())
            .collect()
    };
    assert_eq!(sweeps[0]["setting"], "threshold");
    // Above a ratio of 1 the controller never adds a server, so giving up half of the partition
    // only makes delays longer. The same holds if the servers come after the last job.
    assert_eq!(waits(0), ["shorter", "longer"]);
    assert_eq!(waits(1), ["shorter", "longer"]);
    let points = &sweeps[2]["points"];
    assert_eq!(points[0]["transients"]["interrupted"], 0.0);
    assert!(points[1]["transients"]["interrupted"].as_f64().unwrap() > 10.0);
    assert!(points[1]["tasks_lost"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn a_notice_saves_tasks_from_being_lost() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let lost = async |notice: &str| {
        let life = "--lifetime exponential:lambda=10";
        let json = json(&trace, &format!("--ratio 4 {life} --notice {notice}")).await;
        json["elastic"][0]["tasks_lost"].as_f64().unwrap()
    };
    // No task takes longer than twenty seconds, and a server has one at a time; what is queued
    // behind it may come too late.
    let (without, with) = (lost("0").await, lost("5m").await);
    assert!(without > 20.0 && with < without / 4.0, "{without} {with}");
}

#[tokio::test]
async fn charts_show_the_distributions_and_each_sweep() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let svg = here.path().join("delays.svg");
    let options = format!("{SMALL} --sweep share=0,0.5 --svg {}", svg.display());
    let ran = simulate(&trace, &options).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = std::fs::read_to_string(svg).unwrap();
    for words in [
        "static",
        "r = 3",
        "queueing delay of a short task [s]",
        "share p of the servers given up",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

#[tokio::test]
async fn bad_traces_are_refused_with_file_line_and_code() {
    let here = tempfile::tempdir().unwrap();
    let good = bursts();
    let cut = &good[..good.len() - 12];
    for (name, text, code, words) in [
        ("cut.tr", cut, "EB-ELASTIC-002", "was the file cut off?"),
        ("nan.tr", "1 1 NaN 1\n", "EB-ELASTIC-002", "nan.tr: line 1"),
        ("empty.tr", "", "EB-ELASTIC-003", "the trace has no jobs"),
        ("back.tr", "2 1 1 1\n1 1 1 1\n", "EB-ELASTIC-004", "line 2"),
    ] {
        let path = file(here.path(), name, text.as_bytes());
        let ran = simulate(&path, SMALL).await;
        assert_eq!(ran.code, 1, "{}", ran.err);
        for words in [code, name, words, "next: "] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }
    let missing = simulate(&here.path().join("none.tr"), SMALL).await;
    assert!(missing.err.contains("EB-SIM-001"), "{}", missing.err);
    // A compressed file that was cut off.
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(good.as_bytes(), level);
    let path = file(here.path(), "cut.zst", &zstd[..zstd.len() / 2]);
    let ran = simulate(&path, SMALL).await;
    assert!(
        ran.code == 1 && ran.err.contains("EB-SIM-001"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn a_last_line_without_an_end_is_taken_and_told_of() {
    let here = tempfile::tempdir().unwrap();
    let path = file(here.path(), "end.tr", bursts().trim_end().as_bytes());
    let ran = simulate(&path, SMALL).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("the last line has no end"), "{}", ran.err);
}

#[tokio::test]
async fn a_threshold_that_long_jobs_cannot_pass_is_told_of() {
    let here = tempfile::tempdir().unwrap();
    let path = file(here.path(), "bursts.tr", bursts().as_bytes());
    // 16 servers for long jobs and two for short ones: at most 0.889.
    let ran = simulate(&path, &SMALL.replace("0.6", "0.9")).await;
    assert!(ran.err.contains("at most 0 of K = 6"), "{}", ran.err);
    assert!(
        ran.err.contains("16 of 18 servers, a ratio of 0.889"),
        "{}",
        ran.err
    );
    let ran = simulate(&path, &SMALL.replace("0.6", "0.5")).await;
    assert!(!ran.err.contains("are ever asked for"), "{}", ran.err);
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let here = tempfile::tempdir().unwrap();
    let path = file(here.path(), "bursts.tr", bursts().as_bytes());
    for (options, code, words) in [
        (
            "--servers 0",
            "EB-ELASTIC-001",
            "the number of servers is 0",
        ),
        (
            "--short-only 0",
            "EB-ELASTIC-001",
            "for short jobs only is 0",
        ),
        (
            "--servers 4 --short-only 5",
            "EB-ELASTIC-001",
            "1 to the number of servers",
        ),
        ("--ratio 0.5", "EB-ELASTIC-001", "the price ratio r is 0.5"),
        (
            "--share 1.5",
            "EB-ELASTIC-001",
            "the share p of the short partition is 1.5",
        ),
        (
            "--threshold 0",
            "EB-ELASTIC-001",
            "the threshold of the long-load ratio is 0",
        ),
        (
            "--provisioning 10000d",
            "EB-ELASTIC-001",
            "the provisioning delay",
        ),
        (
            "--provisioning 0 --lifetime uniform",
            "EB-ELASTIC-001",
            "a second or more",
        ),
        ("--lifetime bathtub:A=x", "EB-LIFETIME", "A is"),
        ("--ratio NaN", "", "is no number"),
        ("--ratio inf", "", "is no number"),
        ("--sweep speed", "", "is none of threshold"),
        (
            "--sweep ratio=0.5",
            "EB-ELASTIC-001",
            "the price ratio r is 0.5",
        ),
        ("--seeds 0", "", "0"),
    ] {
        let ran = simulate(&path, options).await;
        assert_eq!(ran.code, 2, "{options}: {}", ran.err);
        for words in [code, words] {
            assert!(ran.err.contains(words), "{options}: {}", ran.err);
        }
    }
    let ran = simulate(&path, "--servers 4 --short-only 4 --cutoff 100s").await;
    assert!(
        ran.code == 1 && ran.err.contains("EB-ELASTIC-006"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn the_page_shows_what_the_commands_print() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tenants/elastic.md");
    let text = std::fs::read_to_string(page).unwrap();
    let files = ["YH1_sub.tr.zst", "YH_synthetic_seed25.tr.zst"];
    let files = files.map(|name| format!("yahoo-hawk-subtraces/{name}"));
    let data = ebbtide_test_data::directory(&[&files[0], &files[1]]);
    let place = data.path.display().to_string();
    let mut shown = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for command in block.split("$ ebbtide-lab ").skip(1) {
            let (line, expected) = command.split_once('\n').unwrap();
            let words: Vec<String> = line
                .split_whitespace()
                .map(|word| word.replace("../shared/data", &place))
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = alone(&words).await;
            shown += 1;
            if data.reduced && line.contains("../shared/data") {
                // The commands of the page work; its figures are those of the real traces.
                assert_eq!(ran.code, 0, "ebbtide {line}: {}", ran.err);
                assert!(!ran.out.is_empty(), "ebbtide {line}");
                continue;
            }
            // What it took is another time each time, and stands in the other stream.
            let expected = expected.lines().filter(|line| !line.contains("played in"));
            let expected: Vec<&str> = expected.collect();
            assert_eq!(
                ran.out.trim_end(),
                expected.join("\n").trim_end(),
                "ebbtide {line}"
            );
        }
    }
    assert!(shown >= 3, "{shown}");
}

#[tokio::test]
async fn the_demand_of_a_trace_is_shown_in_windows() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let ran = simulate(&trace, "--demand 30m -o json").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    // Sixteen tasks of 700 s come every 600 s, ten of 20 s every minute; the second window has no
    // begin or end of the trace in it.
    let expected = 16.0 * 700.0 / 600.0 + 10.0 * 20.0 / 60.0;
    let seen = rows[1]["tasks"].as_f64().unwrap();
    assert!((seen - expected).abs() < 1e-9, "{seen} {expected}");
    let figure = here.path().join("demand.svg");
    let drawn = simulate(&trace, &format!("--demand 30m --svg {}", figure.display())).await;
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    let svg = std::fs::read_to_string(&figure).unwrap();
    assert!(svg.contains("running tasks") && svg.contains("mean"));
    let refused = simulate(&trace, "--demand 5h").await;
    assert!(refused.err.contains("EB-ELASTIC-001"), "{}", refused.err);
}

#[tokio::test]
async fn what_becomes_of_lost_tasks_is_compared_by_mechanism() {
    let here = tempfile::tempdir().unwrap();
    let trace = file(here.path(), "bursts.tr", bursts().as_bytes());
    let json = json(&trace, "--recovery all --sweep outages=93").await;
    // 93 a day: outages at another second of the minute each time. Two kinds of queues, with all
    // servers for short jobs and with those that stay.
    assert_eq!(json["without"].as_array().unwrap().len(), 4);
    let rows = json["with"].as_array().unwrap();
    let names = ["copies", "resend", "requeue", "requeue-last"];
    assert_eq!(rows.len(), 2 * names.len());
    for (row, name) in rows.iter().zip(names.iter().cycle()) {
        assert_eq!(row["recovery"], *name, "{row}");
    }
    let (quiet, outages) = rows.split_at(names.len());
    assert!(quiet.iter().all(|row| row["tasks_lost"] == 0.0));
    assert!(outages.iter().all(|row| row["tasks_lost"] != 0.0));
    let again = |at: usize| outages[at]["again_mean_seconds"].as_f64().unwrap();
    assert!(again(2) <= again(3), "{} {}", again(2), again(3));

    let table = simulate(&trace, &format!("{SMALL} --recovery copies,requeue")).await;
    assert_eq!(table.code, 0, "{}", table.err);
    for words in ["one queue", "probes", "2 alone", "r = 3"] {
        assert!(table.out.contains(words), "{words}: {}", table.out);
    }
    let refused = simulate(&trace, "--recovery twice").await;
    assert!(refused.err.contains("requeue-last"), "{}", refused.err);
}
