//! Every recorded answer of Nova is ours, to the last bit.

#![allow(
    clippy::unwrap_used,
    reason = "a test program: what is missing shall fail loudly"
)]

use ebbtide_conformance::answer::answer;
use ebbtide_conformance::case::Case;
use ebbtide_conformance::conform::compare;
use ebbtide_nova::python::Value;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread;

fn lines(corpus: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../nova/corpus")
        .join(corpus);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn differences(line: &str) -> Option<String> {
    let (case, expected) = Case::from_line(line).unwrap();
    let Some(Value::Dict(expected)) = expected else {
        panic!("{} has no answer", case.id);
    };
    let found = compare(&expected, &answer(&case));
    let first = found.first()?;
    let (id, path, nova, ours) = (&case.id, &first.path, &first.expected, &first.ours);
    Some(format!("{id}, {path}: Nova {nova}, ours {ours}"))
}

#[test]
fn every_case_of_every_corpus_agrees_with_nova() {
    for (corpus, cases) in [
        ("dev.jsonl.gz", 1400),
        ("probes.jsonl.gz", 526),
        ("generated.jsonl.gz", 1000),
        ("filters.jsonl.gz", 1000),
        ("numa_pci.jsonl.gz", 100),
    ] {
        let lines = lines(corpus);
        assert!(
            lines.len() >= cases,
            "{corpus} has {} cases only",
            lines.len()
        );
        let middle = lines.len() / 2;
        let found: Vec<String> = thread::scope(|scope| {
            let half = |lines: &[String]| {
                lines
                    .iter()
                    .filter_map(|line| differences(line))
                    .collect::<Vec<_>>()
            };
            let (first, second) = lines.split_at(middle);
            let other = scope.spawn(move || half(second));
            let mut found = half(first);
            found.extend(other.join().unwrap());
            found
        });
        assert!(
            found.is_empty(),
            "{corpus}: {} differ, first {:?}",
            found.len(),
            found.first()
        );
    }
}

#[test]
fn an_answer_that_is_not_novas_is_noticed_wherever_it_is_wrong() {
    let lines = lines("dev.jsonl.gz");
    let mut changed = 0;
    for line in lines.iter().take(40) {
        for (right, wrong) in [
            (r#""weighted":["#, r#""weighted":[],"y":["#),
            (
                r#""IoOpsFilter":{"fail":["#,
                r#""IoOpsFilter":{"fail":[99],"y":["#,
            ),
            (r#""query":""#, r#""query":"x"#),
            (r#""phase":"filter""#, r#""phase":"weigh""#),
            (r#""free_disk_mb":"#, r#""free_disk_mb":-1,"y":"#),
        ] {
            let answer = line.find(r#""answer":"#).unwrap();
            let (case, given) = line.split_at(answer);
            if given.contains(right) {
                let broken = format!("{case}{}", given.replacen(right, wrong, 1));
                assert!(differences(&broken).is_some(), "{wrong} in {case:.80}");
                changed += 1;
            }
        }
    }
    assert!(changed > 100, "{changed}");
}
