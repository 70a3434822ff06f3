//! `ebbtide-lab simulate deadline`: a job with a deadline on recorded availability.

use crate::run::{Ran, alone};
use serde_json::Value;
use std::path::Path;

/// Four days of two zones, every ten minutes: five hours with servers and one without, and ten
/// minutes with servers every hour.
fn traces(directory: &Path) {
    let mut text = String::from("kind,file,gap_s,start_tick,ticks,value\n");
    for (zone, with, without) in [("good", 30, 6), ("flicker", 1, 5)] {
        let mut start = 0;
        while start < 576 {
            for (ticks, value) in [(with, 1), (without, 0)] {
                text.push_str(&format!(
                    "availability,{zone}.json,600,{start},{ticks},{value}\n"
                ));
                start += ticks;
            }
        }
    }
    std::fs::write(directory.join("runs.csv"), text).unwrap();
}

async fn simulate(directory: &Path, options: &str) -> Ran {
    let path = directory.display().to_string();
    let mut words = vec!["simulate", "deadline", "--traces", &path, "--starts", "4"];
    words.extend(options.split_whitespace());
    alone(&words).await
}

async fn json(directory: &Path, options: &str) -> Value {
    let ran = simulate(directory, &format!("-o json {options}")).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.json()
}

#[tokio::test]
async fn programs_get_costs_above_the_optimum_and_missed_deadlines() {
    let here = tempfile::tempdir().unwrap();
    traces(here.path());
    let json = json(here.path(), "--work 20h --fraction 0.8,0.9 --by-trace").await;
    assert_eq!((&json["jobs"], &json["missed"]), (&16.into(), &0.into()));
    let mean = json["mean"].as_object().unwrap();
    assert_eq!(mean.len(), 5);
    let above = |policy: &str| mean[policy].as_f64().unwrap();
    assert!(
        above("planned") >= 0.0 && above("planned") < above("greedy"),
        "{mean:?}"
    );
    let settings = json["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 2);
    assert_eq!(settings[0]["deadline_seconds"], 90_000);
    for setting in settings {
        let least = setting["optimum_of_on_demand"].as_f64().unwrap();
        for policy in setting["policies"].as_object().unwrap().values() {
            assert!(
                policy["of_on_demand"].as_f64().unwrap() >= least,
                "{policy}"
            );
            assert_eq!(policy["jobs"], 8);
        }
        assert_eq!(setting["traces"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn tables_have_a_row_a_policy_and_the_means_below() {
    let here = tempfile::tempdir().unwrap();
    traces(here.path());
    let options = "--work 20h --fraction 0.8 --policy greedy,planned --series good";
    let ran = simulate(here.path(), options).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in ["optimum", "greedy", "planned", "20.0 h, 25.0 h", "12 min"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let last = ran.out.lines().last().unwrap();
    assert_eq!(last, "traces: 1, jobs: 4, policies: 2, deadlines missed: 0");
    let value = simulate(here.path(), &format!("{options} -o value")).await;
    let lines: Vec<&str> = value.out.lines().collect();
    assert!(lines[0].starts_with("greedy 0.") && lines[1].starts_with("planned 0."));
}

#[tokio::test]
async fn the_same_seed_draws_the_same_jobs() {
    let here = tempfile::tempdir().unwrap();
    traces(here.path());
    let mean = async |options: &str| {
        let options = format!("--work 20h --fraction 0.9 --policy greedy {options}");
        json(here.path(), &options).await["mean"].clone()
    };
    assert_eq!(mean("--seed 7").await, mean("--seed 7 --threads 1").await);
    assert_ne!(mean("--seed 7").await, mean("--seed 8").await);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_code() {
    let here = tempfile::tempdir().unwrap();
    traces(here.path());
    let refused = async |options: &str, code: u8, text: &str| {
        let ran = simulate(here.path(), options).await;
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.contains(text), "{options}: {}", ran.err);
    };
    refused("--work 20h --fraction 0.999", 2, "EB-DEADLINE-002").await;
    refused("--work 20h --slices 0", 2, "EB-DEADLINE-001").await;
    refused("--work 20h --spot-price 4", 2, "EB-DEADLINE-001").await;
    refused("--work 20h --series nowhere", 2, "EB-CLI-001").await;
    refused("--work 90h --fraction 0.5", 2, "EB-CLI-001").await;
    std::fs::write(here.path().join("wrong.csv"), "kind,file\n").unwrap();
    refused("--work 20h", 1, "EB-DEADLINE-003").await;
    let empty = tempfile::tempdir().unwrap();
    let ran = simulate(empty.path(), "").await;
    assert!(ran.err.contains("EB-DEADLINE-004"), "{}", ran.err);
}
