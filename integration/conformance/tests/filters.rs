//! The filters and the query of Placement, against Nova's recorded answers to generated cases.

use ebbtide_conformance::answer::answer;
use ebbtide_conformance::case::Case;
use ebbtide_conformance::conform::compare;
use ebbtide_nova::python::Value;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

#[test]
fn odd_requests_options_and_hosts_are_answered_as_nova_answers_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nova/corpus/filters.jsonl.gz");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut cases = 0;
    let mut found = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let line = line.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let Ok((case, Some(Value::Dict(expected)))) = Case::from_line(&line) else {
            panic!("line {cases} is no case with an answer");
        };
        found.extend(
            compare(&expected, &answer(&case))
                .into_iter()
                .map(|difference| {
                    let (path, nova, ours) =
                        (difference.path, difference.expected, difference.ours);
                    format!("{}, {path}: nova {nova}, ours {ours}", case.id)
                }),
        );
        cases += 1;
    }
    assert!(cases >= 1500, "only {cases} cases");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
