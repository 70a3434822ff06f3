//! `ebbtide-lab conform nova`.

use crate::run::alone;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The first probes of the project's own corpus.
fn probes(count: usize) -> Vec<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../integration/nova/corpus/probes.jsonl.gz");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().take(count).map(str::to_owned).collect()
}

fn file(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    File::create(&path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    path
}

#[tokio::test]
async fn recorded_cases_of_nova_agree_and_the_last_line_says_so() {
    let dir = TempDir::new().unwrap();
    let path = file(&dir, "cases.jsonl", &probes(40).join("\n"));
    let path = path.to_str().unwrap();
    let table = alone(&["conform", "nova", path]).await;
    assert_eq!(table.code, 0, "{}", table.err);
    assert_eq!(table.out.lines().last(), Some("40 of 40 cases agree"));
    let value = alone(&["conform", "nova", path, "-o", "value", "--threads", "1"]).await;
    assert_eq!(value.out.trim(), "40 of 40 cases agree");
    let json = alone(&["conform", "nova", path, "-o", "json"]).await.json();
    assert_eq!((&json["agree"], &json["total"]), (&40.into(), &40.into()));
    assert_eq!(json["shapes"][0]["shape"], "probe");
}

#[tokio::test]
async fn a_wrong_answer_is_shown_with_its_place_and_fails_the_command() {
    let dir = TempDir::new().unwrap();
    let broken = probes(3)
        .join("\n")
        .replacen(r#""query":""#, r#""query":"wrong"#, 1);
    let path = file(&dir, "cases.jsonl", &broken);
    let path = path.to_str().unwrap();
    let ran = alone(&["conform", "nova", path, "--max-differences", "1"]).await;
    assert_eq!(ran.code, 1);
    assert_eq!(ran.out.lines().last(), Some("2 of 3 cases agree"));
    assert!(ran.out.contains("placement.query"), "{}", ran.out);
    assert!(
        ran.err.contains("EB-CLI-010: 2 of 3 cases agree"),
        "{}",
        ran.err
    );
    let first: serde_json::Value = serde_json::from_str(broken.lines().next().unwrap()).unwrap();
    let id = first["case"]["id"].as_str().unwrap();
    let only = alone(&["conform", "nova", path, "--only", id, "-o", "json"]).await;
    let json: serde_json::Value = serde_json::from_str(&only.out).unwrap();
    assert_eq!(json["differences"][0]["field"], "placement.query");
    assert_eq!(json["total"], 1);
}

#[tokio::test]
async fn a_file_that_is_no_corpus_is_refused_with_the_line() {
    let dir = TempDir::new().unwrap();
    let good = &probes(1)[0];
    let no_answer = r#"{"id":"x","hosts":[],"request":{}}"#;
    for (name, text, complaint) in [
        ("empty", "\n".to_owned(), "has no cases"),
        (
            "torn",
            format!("{good}\n{{\"case\":"),
            "line 2: is not JSON",
        ),
        ("list", "[]".to_owned(), "line 1: is not a JSON object"),
        (
            "bare",
            format!("{good}\n\n{no_answer}"),
            "line 3: case \"x\" has no answer",
        ),
        (
            "hosts",
            r#"{"case":{"hosts":3,"request":{}},"answer":{}}"#.to_owned(),
            "hosts is a int and not a list",
        ),
        ("gzip", "\u{1f}\u{0}".to_owned(), "line 1: is not JSON"),
    ] {
        let path = file(&dir, name, &text);
        let ran = alone(&["conform", "nova", path.to_str().unwrap()]).await;
        assert_eq!(ran.code, 1, "{name}");
        assert!(
            ran.err.contains("EB-CLI-014") && ran.err.contains(complaint),
            "{name}: {}",
            ran.err
        );
    }
    let nowhere = dir.path().join("nowhere");
    let ran = alone(&["conform", "nova", nowhere.to_str().unwrap()]).await;
    assert!(ran.err.contains("cannot be read"), "{}", ran.err);
}
