//! The two filters and what an instance takes, against Nova's recorded answers.

use ebbtide_conformance::answer::answer;
use ebbtide_conformance::case::Case;
use ebbtide_conformance::conform::compare;
use ebbtide_nova::python::Value;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

const VERDICTS: [&str; 2] = [
    "isolated.NUMATopologyFilter",
    "isolated.PciPassthroughFilter",
];

/// Compares some fields of all cases of a corpus. Returns how many cases there are and where
/// answers differ.
fn disagreements(corpus: &str, fields: &[&str]) -> (usize, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../nova/corpus")
        .join(corpus);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut cases = 0;
    let mut found = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let line = line.unwrap_or_else(|error| panic!("{corpus}: {error}"));
        let read = Case::from_line(&line);
        let Ok((case, Some(Value::Dict(expected)))) = read else {
            panic!("{corpus}, case {cases}: no case with an answer");
        };
        let differences = compare(&expected, &answer(&case));
        let own = differences
            .iter()
            .filter(|d| fields.contains(&d.field.as_str()));
        found.extend(own.map(|d| {
            format!(
                "{corpus}, case {cases}, {}: nova {}, ours {}",
                d.path, d.expected, d.ours
            )
        }));
        cases += 1;
    }
    (cases, found)
}

#[test]
fn both_filters_give_novas_verdict_on_every_host_of_the_corpora() {
    for (corpus, least) in [("dev.jsonl.gz", 1400), ("probes.jsonl.gz", 526)] {
        let (cases, found) = disagreements(corpus, &VERDICTS);
        assert!(cases >= least, "{corpus} has {cases} cases only");
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn instances_take_the_cpus_pages_and_devices_that_nova_takes() {
    let taken = ["filtered", "limits", "candidates_left", "trace", "error"];
    let scheduled = [
        "schedule.touched",
        "schedule.claims",
        "schedule.selections",
        "schedule.error",
    ];
    let fields: Vec<&str> = VERDICTS.into_iter().chain(taken).chain(scheduled).collect();
    let (cases, found) = disagreements("numa_pci.jsonl.gz", &fields);
    assert!(cases >= 489, "{cases} cases only");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
