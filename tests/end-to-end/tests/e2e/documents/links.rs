//! Links of the Markdown pages, the summary of the book, and paths of pages in other files.

use super::root;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The files that Git tracks, and their folders, as paths from the root of the repository.
struct Tracked {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

impl Tracked {
    fn read() -> Self {
        let listed = Command::new("git")
            // The owner of a checkout in a container may be another user.
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .current_dir(root())
            .output()
            .expect("the test needs git");
        assert!(
            listed.status.success(),
            "git ls-files failed: {}",
            String::from_utf8_lossy(&listed.stderr)
        );
        let names = String::from_utf8(listed.stdout).unwrap();
        let names = names.split_terminator('\0').map(str::to_owned);
        // A file that is deleted and not committed yet is still listed.
        let files: BTreeSet<String> = names.filter(|name| root().join(name).is_file()).collect();
        let mut folders = BTreeSet::new();
        for file in &files {
            let mut path = file.as_str();
            while let Some((folder, _)) = path.rsplit_once('/') {
                folders.insert(folder.to_owned());
                path = folder;
            }
        }
        Self { files, folders }
    }

    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty() || self.files.contains(path) || self.folders.contains(path)
    }

    fn pages(&self) -> impl Iterator<Item = &String> {
        self.files.iter().filter(|file| file.ends_with(".md"))
    }
}

fn text_of(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// The text with spaces for blocks of code and comments, so that lines keep their numbers.
fn without_blocks(text: &str) -> String {
    let mut shown = String::new();
    let mut fence: Option<&str> = None;
    let mut comment = false;
    for line in text.lines() {
        let begins = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| begins.starts_with(m));
        let hidden = match (fence, mark) {
            (None, Some(mark)) if !comment => {
                fence = Some(mark);
                true
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                true
            }
            (open, _) => open.is_some(),
        };
        comment |= !hidden && begins.starts_with("<!--");
        if !hidden && !comment {
            shown.push_str(line);
        }
        comment &= !line.contains("-->");
        shown.push('\n');
    }
    shown
}

/// The same with spaces for code in a line of text.
fn without_code(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let (before, code) = rest.split_at(at);
        shown.push_str(before);
        let ticks = code.len() - code.trim_start_matches('`').len();
        let (mark, after) = code.split_at(ticks);
        // Code ends with as many ticks as it began with, in the same paragraph.
        let paragraph = after.split("\n\n").next().unwrap_or_default();
        let mut from = 0;
        let mut end = None;
        while let Some(found) = paragraph[from..].find('`') {
            let start = from + found;
            let run = paragraph[start..].len() - paragraph[start..].trim_start_matches('`').len();
            from = start + run;
            if run == ticks {
                end = Some(start);
                break;
            }
        }
        match end {
            Some(end) => {
                let gap = after[..end].chars();
                shown.extend(gap.map(|c| if c == '\n' { '\n' } else { ' ' }));
                rest = &after[end + ticks..];
            }
            None => {
                shown.push_str(mark);
                rest = after;
            }
        }
    }
    shown + rest
}

/// The targets of all links of a page, each with its line.
fn links_of(text: &str) -> Vec<(usize, String)> {
    let text = without_code(&without_blocks(text));
    let mut found = Vec::new();
    for (begin, end) in [("](", ")"), ("href=\"", "\""), ("src=\"", "\"")] {
        for (at, _) in text.match_indices(begin) {
            let after = &text[at + begin.len()..];
            let url = after.split(end).next().unwrap_or_default();
            // A title may follow.
            let url = url.split_whitespace().next().unwrap_or_default();
            let line = text[..at].matches('\n').count() + 1;
            found.push((line, url.trim_matches(['<', '>']).to_owned()));
        }
    }
    // [label]: target
    for (n, line) in text.lines().enumerate() {
        if let Some((label, url)) = line.split_once("]: ")
            && label.starts_with('[')
            && !label.contains(']')
        {
            found.push((n + 1, url.trim().to_owned()));
        }
    }
    found.sort();
    found
}

/// The anchors of a page, as a forge and mdBook make them of its headings.
fn anchors_of(text: &str) -> BTreeSet<String> {
    let text = without_blocks(text);
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let slug = slug_of(title.trim());
        let times = used.entry(slug.clone()).or_default();
        anchors.insert(match *times {
            0 => slug,
            n => format!("{slug}-{n}"),
        });
        *times += 1;
    }
    for (at, begin) in text.match_indices("<a id=\"") {
        let id = &text[at + begin.len()..];
        anchors.extend(id.split('"').next().map(str::to_owned));
    }
    anchors
}

fn slug_of(title: &str) -> String {
    // Of a link only its text is shown.
    let mut shown = String::new();
    let mut rest = title;
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    shown.push_str(rest);
    shown
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// A path beside a page as a path from the root; `None` if it leaves the repository.
fn resolved(page: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_external(url: &str) -> bool {
    url.split_once(':')
        .is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[test]
fn every_link_of_a_page_has_its_target() {
    let tracked = Tracked::read();
    let anchors: BTreeMap<&str, BTreeSet<String>> = tracked
        .pages()
        .map(|page| (page.as_str(), anchors_of(&text_of(page))))
        .collect();
    let (mut paths, mut headings) = (0, 0);
    let mut bad = Vec::new();
    for page in tracked.pages() {
        for (line, url) in links_of(&text_of(page)) {
            if is_external(&url) {
                continue;
            }
            let (path, anchor) = url.split_once('#').unwrap_or((&url, ""));
            let target = if path.is_empty() {
                Some(page.clone())
            } else {
                resolved(page, path)
            };
            let target = target.filter(|target| !path.starts_with('/') && tracked.has(target));
            let wrong = match &target {
                None => "no tracked file",
                Some(_) if url.is_empty() => "no target",
                Some(target) if !anchor.is_empty() => {
                    headings += 1;
                    match anchors.get(target.as_str()) {
                        Some(known) if known.contains(anchor) => continue,
                        _ => "no such heading",
                    }
                }
                Some(_) => {
                    paths += 1;
                    continue;
                }
            };
            bad.push(format!("{page}:{line}: ({url}): {wrong}"));
        }
    }
    assert!(bad.is_empty(), "links without target:\n{}", bad.join("\n"));
    assert!(
        paths > 100 && headings > 100,
        "only {paths} links to files and {headings} to headings were found"
    );
}

#[test]
fn the_summary_lists_every_page_once() {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let tracked = Tracked::read();
    let mut listed: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (line, url) in links_of(&text_of(SUMMARY)) {
        let page = resolved(SUMMARY, &url).unwrap();
        listed.entry(page).or_default().push(line);
    }
    let mut bad: Vec<String> = tracked
        .pages()
        .filter(|page| page.starts_with("docs/") && *page != SUMMARY)
        .filter(|page| !listed.contains_key(*page))
        .map(|page| format!("{SUMMARY}: {page} is missing"))
        .collect();
    for (page, lines) in &listed {
        let line = lines[lines.len() - 1];
        if !tracked.files.contains(page) {
            bad.push(format!("{SUMMARY}:{line}: {page} is no tracked file"));
        } else if lines.len() > 1 {
            bad.push(format!("{SUMMARY}:{line}: {page} is listed twice"));
        }
    }
    assert!(!listed.is_empty(), "{SUMMARY} lists no page");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// The paths below docs/ that a text names, from the root of the repository, each with its line.
fn mentions(text: &str) -> Vec<(usize, &str)> {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices("docs/") {
            let before = line[..at].trim_end_matches("../");
            // docs/ of another site, or another folder whose name ends so.
            if before.ends_with(|c: char| of_path(c) || c == '}') {
                continue;
            }
            let path = line[at..].split(|c| !of_path(c)).next().unwrap_or_default();
            found.push((n + 1, path.trim_end_matches(['.', '/'])));
        }
    }
    found
}

#[test]
fn every_path_of_a_page_that_is_named_anywhere_exists() {
    let tracked = Tracked::read();
    let mut checked = 0;
    let mut bad = Vec::new();
    for file in &tracked.files {
        // Not every file is text.
        let Ok(text) = std::fs::read_to_string(root().join(file)) else {
            continue;
        };
        for (line, path) in mentions(&text) {
            checked += 1;
            if !tracked.has(path) {
                bad.push(format!("{file}:{line}: {path} does not exist"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(checked > 100, "only {checked} paths were found");
}

#[test]
fn links_are_found_where_a_reader_sees_them() {
    let page = "[a](one.md) `[b](two.md)`\n```console\n[c](three.md)\n```\n<!--\n[d](four.md)\n-->\n\
                [`e` f](five.md#g \"title\")\n\n[h]: six.md\n`` ` [i](7.md) `` [j](#k)\n";
    let found = links_of(page);
    let found: Vec<(usize, &str)> = found.iter().map(|(n, url)| (*n, url.as_str())).collect();
    assert_eq!(
        found,
        [(1, "one.md"), (8, "five.md#g"), (10, "six.md"), (11, "#k")]
    );
}

#[test]
fn anchors_are_those_of_a_forge() {
    let anchors = anchors_of(
        "# Nova's own weighers, unmodified\n## EB-BUS-012\n## `a_b`: [C d](e.md)\n## Limits\n```\n# no\n```\n## Limits\n",
    );
    let expected = [
        "a_b-c-d",
        "eb-bus-012",
        "limits",
        "limits-1",
        "novas-own-weighers-unmodified",
    ];
    assert_eq!(anchors.into_iter().collect::<Vec<_>>(), expected);
}
