//! The page of all keys.

use ebbtide_config_check::{ThisMachine, check, code, guess};
use std::path::{Path, PathBuf};

#[test]
fn the_page_of_all_keys_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == ebbtide_config_check::markdown(),
        "docs/reference/configuration.md is not what the registry says; write it with `ebbtide-manage config explain --output markdown > docs/reference/configuration.md`"
    );
}

fn pages_of(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages_of(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Every block of TOML in the documents, with its page.
fn blocks() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    pages_of(&root.join("docs"), &mut pages);
    let mut found = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut parts = text.split("```toml\n");
        let mut before = parts.next().unwrap_or_default();
        for part in parts {
            let block = part.split("```").next().unwrap();
            // A file with its name above it is judged where it is shown: what is wrong in it is
            // wanted.
            if !before.ends_with("-->\n") {
                found.push((page.display().to_string(), block.to_owned()));
            }
            before = part;
        }
    }
    found
}

#[test]
fn the_toml_in_the_documents_has_keys_that_exist() {
    let blocks = blocks();
    assert!(blocks.len() > 5, "{}", blocks.len());
    for (page, block) in blocks {
        // A project's Cargo.toml, for example, is none of ours.
        let (kind, because) = guess(Path::new("x.toml"), &block);
        if because.starts_with("no section")
            || block.contains("[package]")
            || block.contains("[dependencies]")
            // batch.toml, which `ebbtide-batch check` looks at.
            || block.contains("[slurm]")
        {
            continue;
        }
        let report = check(
            Path::new("x.toml"),
            &block,
            Some(kind),
            &ThisMachine::with(None),
        );
        let wrong: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| [code::SYNTAX, code::UNKNOWN].contains(&finding.code))
            .collect();
        assert!(wrong.is_empty(), "{page}:\n{block}\n{wrong:#?}");
    }
}
