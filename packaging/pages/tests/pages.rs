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
        }
        names.push(name);
    }
    names.sort();
    let expected = ["", "-agent", "-batch", "-lab", "-manage", "-scheduler"];
    assert_eq!(names, expected.map(|end| format!("ebbtide{end}")));

    let of_command = files(&to.path().join("man/ebbtide"));
    assert!(of_command["ebbtide-server-create.1"].contains("flavor"));
    assert!(!of_command.keys().any(|file| file.contains("-help")));
    let of_units = files(&to.path().join("man/ebbtide-scheduler"));
    assert!(of_units["ebbtide-scheduler.8"].contains("nova.conf"));
}
