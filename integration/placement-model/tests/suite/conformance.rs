//! Random requests, answered by the model and by the real Placement alike.

use crate::generator::{RecordedRequest, sequence};
use ebbtide_placement_model::{Model, ModelRequest, PlacementProcess};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/recorded/placement-8.jsonl.gz"
);
/// Requests of a sequence, before everything is read.
const LENGTH: usize = 60;
const RECORDED_SEEDS: std::ops::Range<u64> = 0..60;

#[test]
fn the_model_answers_as_a_real_placement_was_recorded_to() {
    let mut met = BTreeMap::new();
    let mut model = Model::new();
    let bytes = std::fs::read(RECORDED).expect("the recorded answers");
    let mut read = 0;
    for line in BufReader::new(GzDecoder::new(bytes.as_slice())).lines() {
        let recorded: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if recorded.get("reset").is_some() {
            model = Model::new();
            continue;
        }
        let asked = &recorded["asked"];
        let (major, minor) = asked["version"].as_str().unwrap().split_once('.').unwrap();
        let ours = model.ask(ModelRequest {
            method: asked["method"].as_str().unwrap(),
            path: asked["path"].as_str().unwrap(),
            version: (major.parse().unwrap(), minor.parse().unwrap()),
            body: Some(&asked["body"]).filter(|body| !body.is_null()),
        });
        let ours = json!({"status": ours.status, "body": ours.body});
        hold(asked, &ours, &recorded["answer"], &mut met);
        read += 1;
    }
    assert!(read > 4_000, "{read} answers prove little");
    has_met_enough(&met);
}

#[test]
fn the_model_answers_as_a_real_placement_that_runs_beside_it() {
    // Other seeds in each build; the failure names the one.
    let first = 1_000 + u64::from(std::process::id()) % 100_000;
    let mut met = BTreeMap::new();
    let mut oracle = PlacementProcess::start().expect("a Placement");
    for seed in first..first + 5 {
        oracle.ask(&json!({"reset": true})).expect("an answer");
        let mut model = Model::new();
        for asked in sequence(seed, LENGTH) {
            let theirs = oracle.ask(&asked.line()).expect("an answer");
            let ours = model.ask(asked.request());
            let ours = json!({"status": ours.status, "body": ours.body});
            let mut line = asked.line();
            line["seed"] = json!(seed);
            hold(&line, &ours, &theirs, &mut met);
        }
    }
    assert!(met.len() > 12, "{met:?}");
}

/// Records the answers of the real Placement anew:
/// `cargo test -p ebbtide-placement-model -- --ignored record`.
#[test]
#[ignore = "writes tests/recorded"]
fn record() {
    let mut oracle = PlacementProcess::start().expect("a Placement");
    let mut lines: Vec<Value> = Vec::new();
    for seed in RECORDED_SEEDS {
        oracle.ask(&json!({"reset": true})).expect("an answer");
        lines.push(json!({"reset": true}));
        for asked in sequence(seed, LENGTH) {
            let answer = oracle.ask(&asked.line()).expect("an answer");
            lines.push(recorded(&asked, answer));
        }
    }
    let mut gz = GzEncoder::new(Vec::new(), Compression::best());
    for line in lines {
        writeln!(gz, "{line}").unwrap();
    }
    std::fs::create_dir_all(std::path::Path::new(RECORDED).parent().unwrap()).unwrap();
    std::fs::write(RECORDED, gz.finish().unwrap()).unwrap();
}

fn recorded(asked: &RecordedRequest, answer: Value) -> Value {
    json!({"asked": asked.line(), "answer": normal(&answer)})
}

fn hold(asked: &Value, ours: &Value, theirs: &Value, met: &mut BTreeMap<String, u32>) {
    let (ours, theirs) = (normal(ours), normal(theirs));
    assert_eq!(ours, theirs, "\nours, theirs; asked: {asked}");
    let kind = format!(
        "{} {} {} {}",
        asked["method"].as_str().unwrap(),
        asked["path"]
            .as_str()
            .unwrap()
            .split(['/', '?'])
            .nth(1)
            .unwrap(),
        theirs["status"],
        theirs["body"]["errors"][0]["code"]
    );
    *met.entry(kind).or_default() += 1;
}

/// The answers whose meaning the scheduler relies on have to be among them.
fn has_met_enough(met: &BTreeMap<String, u32>) {
    for (kind, least) in [
        ("PUT allocations 204 null", 50),
        ("PUT allocations 409 \"placement.concurrent_update\"", 100),
        ("PUT allocations 409 \"placement.undefined_code\"", 100),
        ("PUT allocations 400 \"placement.undefined_code\"", 5),
        ("POST allocations 204 null", 50),
        ("POST allocations 409 \"placement.concurrent_update\"", 50),
        ("POST allocations 409 \"placement.undefined_code\"", 50),
        ("DELETE allocations 204 null", 10),
        ("DELETE allocations 404 null", 20),
        ("GET allocation_candidates 200 null", 100),
        (
            "PUT resource_providers 409 \"placement.concurrent_update\"",
            20,
        ),
        (
            "PUT resource_providers 409 \"placement.inventory.inuse\"",
            1,
        ),
    ] {
        let count = met.get(kind).copied().unwrap_or(0);
        assert!(count >= least, "{kind}: only {count} of {met:#?}");
    }
}

/// Without what says nothing: links, request ids, the order of sets, the words of errors that no
/// client reads.
fn normal(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if answer["status"] == 201 {
        // Emptied between two sequences, the real one still knows its custom traits.
        answer["status"] = json!(204);
    }
    let status = answer["status"].clone();
    let body = &mut answer["body"];
    for key in [
        "traits",
        "aggregates",
        "allocation_requests",
        "resource_providers",
    ] {
        if let Some(list) = body.get_mut(key).and_then(Value::as_array_mut) {
            list.sort_by_key(Value::to_string);
        }
    }
    let strip = |value: &mut Value| {
        if let Some(object) = value.as_object_mut() {
            object.remove("links");
        }
    };
    strip(body);
    let providers = body
        .get_mut("resource_providers")
        .and_then(Value::as_array_mut);
    if let Some(list) = providers {
        list.iter_mut().for_each(strip);
        list.sort_by_key(|line| line["uuid"].to_string());
    }
    let summaries = body
        .get_mut("provider_summaries")
        .and_then(Value::as_object_mut);
    for summary in summaries.into_iter().flat_map(serde_json::Map::values_mut) {
        if let Some(traits) = summary["traits"].as_array_mut() {
            traits.sort_by_key(Value::to_string);
        }
    }
    if let Some(error) = body.pointer("/errors/0").cloned() {
        let words = error["detail"].as_str().unwrap_or_default();
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut kept = json!({"code": error["code"]});
        // Of several classes without an inventory Placement names them all, in any order.
        let vague = [
            "Unable to allocate inventory: Inventory for",
            "Conflicting resource provider",
            "update conflict: Inventory for",
        ];
        let vague = vague.iter().any(|vague| words.contains(vague));
        if status == 409 && !vague {
            kept["detail"] = Value::from(words);
        }
        body["errors"] = json!([kept]);
    }
    answer
}
