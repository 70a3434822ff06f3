//! Every program has pages and completions.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The files of a directory with their text.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap();
    let read = entries.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    read.collect()
}

/// The files of the pages that a page names, one a line, as in `ebbtide\-server(1)`.
fn pages_named(page: &str) -> Vec<String> {
    let lines = page.lines().filter_map(|line| line.strip_suffix(')'));
    let named = lines.filter_map(|line| line.split_once('('));
    let named = named.filter(|(name, _)| name.starts_with("ebbtide") && !name.contains(' '));
    named
        .map(|(name, section)| format!("{}.{section}", name.replace("\\-", "-")))
        .collect()
}

#[test]
fn every_program_has_a_page_for_each_command_and_completions_for_three_shells() {
    let to = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for program in ebbtide_pages::programs() {
        let name = program.name().to_owned();
        program.write(to.path()).unwrap();

        let completions = files(&to.path().join("completions").join(&name));
        for file in [name.clone(), format!("_{name}"), format!("{name}.fish")] {
            assert!(completions[&file].contains(&name), "{file}");
        }
        let pages = files(&to.path().join("man").join(&name));
        let (own, _) = pages.first_key_value().unwrap();
        assert!(own.starts_with(&name), "{own}");
        for (file, page) in &pages {
            assert!(page.contains("\n.SH NAME\n"), "{file} has no NAME");
            assert!(page.contains("\n.SH SYNOPSIS\n"), "{file} has no SYNOPSIS");
            for named in pages_named(page) {
                assert!(pages.contains_key(&named), "{file} names {named}");
            }
        }
        names.push(name);
    }
    names.sort();
    let expected = ["", "-agent", "-batch", "-lab", "-manage", "-scheduler"];
    assert_eq!(names, expected.map(|end| format!("ebbtide{end}")));

    let named = pages_named(".TP\nebbtide\\-agent\\-run(8)\nRun (the default)\n");
    assert_eq!(named, ["ebbtide-agent-run.8"]);
    let of_command = files(&to.path().join("man/ebbtide"));
    assert!(of_command["ebbtide-server-create.1"].contains("flavor"));
    assert!(!of_command.keys().any(|file| file.contains("-help")));
    assert!(pages_named(&of_command["ebbtide.1"]).contains(&"ebbtide-server.1".to_owned()));
    let of_units = files(&to.path().join("man/ebbtide-scheduler"));
    assert!(of_units["ebbtide-scheduler.8"].contains("nova.conf"));
}
