//! Comments and docstrings have at most 100 columns, in every language of the tree. The formatters
//! hold code only.

use super::root;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// Rust, proto and WIT: `//`.
    Slashes,
    /// Shell and TOML: `#`.
    Hash,
    /// `#`, and docstrings.
    Python,
}

/// The language by the file's ending, or by the first line of a script without one.
fn language(path: &Path) -> Option<Language> {
    let by_ending = path.extension().map(|ending| ending.to_string_lossy());
    match by_ending.as_deref() {
        Some("rs" | "proto" | "wit") => return Some(Language::Slashes),
        Some("sh" | "toml") => return Some(Language::Hash),
        Some("py") => return Some(Language::Python),
        Some(_) => return None,
        None => {}
    }
    let text = std::fs::read_to_string(path).ok()?;
    let first = text.lines().next()?.strip_prefix("#!")?;
    match first {
        _ if first.contains("python") => Some(Language::Python),
        _ if first.ends_with("sh") => Some(Language::Hash),
        _ => None,
    }
}

/// The numbers of the lines that are too long, from 1.
fn long_lines(language: Language, text: &str) -> Vec<usize> {
    let mark = match language {
        Language::Slashes => "//",
        Language::Hash | Language::Python => "#",
    };
    let (mut in_string, mut in_docstring) = (false, false);
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.trim_start();
        let mut comment = !in_string && content.starts_with(mark);
        if language == Language::Python && !comment {
            let opens = !in_string && content.starts_with("\"\"\"");
            in_docstring |= opens;
            comment = in_docstring;
            if line.matches("\"\"\"").count() % 2 == 1 {
                in_string = !in_string;
            }
            in_docstring &= in_string;
        }
        if comment && line.chars().count() > COLUMNS {
            found.push(at + 1);
        }
    }
    found
}

/// All files of the tree but what is built or cloned into it.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules"].contains(&name.as_str()) {
                files(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

#[test]
fn comments_and_docstrings_have_at_most_100_columns() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let mut long = Vec::new();
    let mut looked_at = 0;
    for path in all {
        let Some(language) = language(&path) else {
            continue;
        };
        looked_at += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        for line in long_lines(language, &text) {
            long.push(format!("{}:{line}", path.display()));
        }
    }
    assert!(looked_at > 1000, "only {looked_at} files were found");
    assert!(
        long.is_empty(),
        "longer than {COLUMNS} columns:\n{}",
        long.join("\n")
    );
}

#[test]
fn a_long_comment_is_seen_and_a_long_string_is_none() {
    let long = "word ".repeat(30);
    let slashes = format!("let a = \"{long}\";\n    /// {long}\n// short\n");
    assert_eq!(long_lines(Language::Slashes, &slashes), [2]);
    let hash = format!("echo '{long}'\n# {long}\n");
    assert_eq!(long_lines(Language::Hash, &hash), [2]);
    let python = format!(
        "\"\"\"Short.\n\n{long}\n\"\"\"\nQUERY = \"\"\"\n# {long}\n\"\"\"\n# {long}\n\
         def one():\n    \"\"\"{long}\"\"\"\n    return '{long}'\n"
    );
    assert_eq!(long_lines(Language::Python, &python), [3, 8, 10]);
}
