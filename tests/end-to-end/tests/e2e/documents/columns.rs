//! Comments, docstrings and the prose of Markdown pages have at most 100 columns. So have comments
//! that follow code. The formatters hold code only.

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
    /// Prose: no tables, no code.
    Markdown,
    /// Every line.
    WholeMarkdown,
}

/// Markdown that is not wrapped. The book's table of contents has a line for each page; a program
/// writes the other page.
const UNWRAPPED: [&str; 2] = ["docs/SUMMARY.md", "docs/reference/configuration.md"];

/// Markdown whose tables and headings are wrapped, too.
const WITHOUT_WIDE_TABLES: [&str; 1] = ["ARCHITECTURE.md"];

/// The language by the file's ending, or by the first line of a script without one.
fn language(path: &Path) -> Option<Language> {
    let by_ending = path.extension().map(|ending| ending.to_string_lossy());
    match by_ending.as_deref() {
        Some("rs" | "proto" | "wit" | "ts" | "tsx") => return Some(Language::Slashes),
        Some("sh" | "toml") => return Some(Language::Hash),
        Some("py") => return Some(Language::Python),
        Some("md") if WITHOUT_WIDE_TABLES.iter().any(|file| path.ends_with(file)) => {
            return Some(Language::WholeMarkdown);
        }
        Some("md") => {
            let is_wrapped = !UNWRAPPED.iter().any(|file| path.ends_with(file));
            return is_wrapped.then_some(Language::Markdown);
        }
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
        Language::Markdown => return long_prose(text),
        Language::WholeMarkdown => {
            let lines = text.lines().enumerate();
            let long = lines.filter(|(_, line)| line.chars().count() > COLUMNS);
            return long.map(|(at, _)| at + 1).collect();
        }
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
        comment |= !in_string && has_trailing_comment(line, mark);
        if comment && line.chars().count() > COLUMNS {
            found.push(at + 1);
        }
    }
    found
}

/// The numbers of the lines of prose that are too long and that a space would let end earlier.
fn long_prose(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.trim_start();
        in_code ^= content.starts_with("```");
        let is_prose = !in_code && !content.starts_with(['|', '#']) && !content.starts_with("<!--");
        let head: String = content.chars().take(COLUMNS).collect();
        if is_prose && line.chars().count() > COLUMNS && head.contains(' ') {
            found.push(at + 1);
        }
    }
    found
}

/// Whether a comment follows code on the line. A mark within a quoted text begins none.
fn has_trailing_comment(line: &str, mark: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    let mut rest = line.char_indices();
    while let Some((at, c)) = rest.next() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) if c == '\\' => {
                rest.next();
            }
            Some(_) => {}
            None if before.is_whitespace() && line[at..].starts_with(mark) => return true,
            // An apostrophe quotes where the mark is `#`. In Rust it is a lifetime or a character.
            None if c == '"' && before != '\'' || c == '\'' && mark == "#" => quote = Some(c),
            None => {}
        }
        before = c;
    }
    false
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
fn comments_docstrings_and_prose_have_at_most_100_columns() {
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
    let trailing =
        format!("let a = 1; // {long}\nlet b = \"a // {long}\";\nlet c = '\"'; // {long}\n");
    assert_eq!(long_lines(Language::Slashes, &trailing), [1, 3]);
    let hash = format!("echo '{long}'\n# {long}\n");
    assert_eq!(long_lines(Language::Hash, &hash), [2]);
    let trailing = format!("run # {long}\necho 'a # {long}'\n");
    assert_eq!(long_lines(Language::Hash, &trailing), [1]);
    let prose = format!(
        "{long}\n| {long} |\n```console\n{long}\n```\n{}\nshort\n- {long}\n",
        "x".repeat(120)
    );
    assert_eq!(long_lines(Language::Markdown, &prose), [1, 8]);
    let table = format!("| short |\n| {long} |\n");
    assert_eq!(long_lines(Language::Markdown, &table), [0; 0]);
    assert_eq!(long_lines(Language::WholeMarkdown, &table), [2]);
    let python = format!(
        "\"\"\"Short.\n\n{long}\n\"\"\"\nQUERY = \"\"\"\n# {long}\n\"\"\"\n# {long}\n\
         def one():\n    \"\"\"{long}\"\"\"\n    return '{long}'\n"
    );
    assert_eq!(long_lines(Language::Python, &python), [3, 8, 10]);
}
