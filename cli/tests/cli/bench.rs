//! `ebbtide-lab bench`: small clouds; what the figures are does not matter here, that they are
//! there and checked does.

use crate::run::alone;

#[tokio::test]
async fn one_row_is_one_object_and_nothing_else_on_standard_output() {
    let ran = alone(&[
        "bench",
        "preempt",
        "--hosts",
        "20",
        "--preemptibles",
        "4",
        "--requests",
        "10",
        "--output",
        "json",
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    assert_eq!(
        (&json["hosts"], &json["preemptibles"]),
        (&20.into(), &4.into())
    );
    assert_eq!(json["exact"], true);
    assert_eq!(json["checked"], 10);
    for key in ["p50_us", "p99_us", "mean_us", "max_us"] {
        assert!(json[key].as_f64().unwrap() > 0.0, "{key}: {json}");
    }
    assert!(json["machine"]["cpu"].is_string());
}

#[tokio::test]
async fn a_debug_build_warns_that_its_figures_mean_nothing() {
    let ran = alone(&[
        "bench",
        "preempt",
        "--hosts",
        "2",
        "--preemptibles",
        "2",
        "--requests",
        "1",
    ])
    .await;
    assert_eq!(
        ran.err.contains("WARNING: this is a debug build"),
        cfg!(debug_assertions)
    );
}

#[tokio::test]
async fn several_numbers_give_a_table_and_a_plot() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("growth.svg");
    let ran = alone(&[
        "bench",
        "preempt",
        "--hosts",
        "5,10",
        "--preemptibles",
        "2,3",
        "--requests",
        "5",
        "--svg",
        svg.to_str().unwrap(),
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.out.lines().filter(|line| line.contains("yes")).count(),
        4,
        "{}",
        ran.out
    );
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(drawn.contains("2 a host, p50") && drawn.contains("10 hosts, p99"));
}

#[tokio::test]
async fn options_out_of_range_are_refused_with_their_name() {
    let ran = alone(&["bench", "preempt", "--hosts", "0"]).await;
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("EB-BENCH-001: --hosts 0: use 1 or more"),
        "{}",
        ran.err
    );
    let ran = alone(&[
        "bench",
        "preempt",
        "--hosts",
        "1",
        "--requests",
        "1",
        "--svg",
        "/nowhere/at/all.svg",
    ])
    .await;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("EB-BENCH-003"), "{}", ran.err);
}

#[tokio::test]
async fn ordinary_requests_are_held_against_reading_the_columns() {
    let ran = alone(&[
        "bench",
        "request",
        "--hosts",
        "30",
        "--requests",
        "10",
        "-o",
        "json",
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    assert_eq!(json["placed_with_room"], 10);
    assert!(json["ratio_to_read_once"].as_f64().unwrap() > 0.0, "{json}");
}

#[tokio::test]
async fn memory_is_told_by_host_and_by_instance() {
    let ran = alone(&[
        "bench",
        "memory",
        "--hosts",
        "1000",
        "--instances",
        "20000",
        "-o",
        "json",
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    assert!(json["bytes_per_instance"].as_f64().unwrap() > 0.0, "{json}");
    assert!(
        json["measured_by"]
            .as_str()
            .unwrap()
            .contains("smaps_rollup")
    );
}

#[tokio::test]
async fn the_figure_has_three_schedulers_in_three_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("figure2.svg");
    let ran = alone(&[
        "bench",
        "figure2",
        "--hosts",
        "4",
        "--requests",
        "12",
        "--rounds",
        "1",
        "-o",
        "json",
        "--svg",
        svg.to_str().unwrap(),
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 9);
    let victims: u64 = rows
        .iter()
        .map(|row| row["victims"].as_u64().unwrap())
        .sum();
    assert_eq!(
        victims, 24,
        "each of 12 requests ends one, with two of the schedulers"
    );
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(drawn.contains("saturated") && drawn.contains("retry"));
}

#[tokio::test]
async fn nova_s_input_is_answered_as_nova_answers() {
    let input = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../integration/nova/bench/hosts_100.jsonl.gz"
    );
    let ran = alone(&[
        "bench",
        "nova",
        "--input",
        input,
        "--iterations",
        "2",
        "-o",
        "json",
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let counts = (&row["hosts"], &row["checked"], &row["equal"]);
        assert_eq!(counts, (&100.into(), &50.into(), &50.into()));
    }
    let ran = alone(&["bench", "nova", "--input", "Cargo.toml"]).await;
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("EB-BENCH-001") && ran.err.contains("--answers"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn the_service_cannot_be_measured_without_its_program_and_the_command_says_how_to_build_it() {
    // Nothing of that name lies beside this test.
    let ran = alone(&["bench", "service", "--hosts", "1", "--seconds", "1"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("EB-BENCH-005") && ran.err.contains("cargo build"),
        "{}",
        ran.err
    );
}
