//! Documents that have to keep up with the code.

mod columns;
mod links;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust sources of the workspace but tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "tests", "benches", ".git", ".devstack"].contains(&name.as_str()) {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Every `EB-AREA-NNN` that stands in quotes in a source.
fn codes_of(text: &str) -> BTreeSet<String> {
    text.split('"')
        .filter(|word| {
            let parts: Vec<&str> = word.split('-').collect();
            matches!(parts.as_slice(), ["EB", area, number]
                if area.bytes().all(|b| b.is_ascii_uppercase()) && number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit()))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_error_code_has_its_paragraph() {
    let page = std::fs::read_to_string(root().join("docs/reference/errors.md")).unwrap();
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut missing = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // What stands behind the tests' mark is a test.
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        missing.extend(
            codes_of(code)
                .into_iter()
                .filter(|code| !page.contains(&format!("`{code}`"))),
        );
    }
    assert!(
        missing.is_empty(),
        "docs/reference/errors.md does not speak about {missing:?}"
    );
}

#[test]
fn no_source_file_is_longer_than_it_should_be() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    for file in files {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(
            lines <= 600,
            "{} has {lines} lines; would two rooms serve better?",
            file.display()
        );
    }
}
