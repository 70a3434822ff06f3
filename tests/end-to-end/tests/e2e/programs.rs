//! Holds what each program of people links, so that a tenant's machine needs no database client,
//! and that its commands use one another in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Every crate that a package links, tests and build scripts left out.
fn linked(package: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges=normal", "--prefix=none"])
        .args(["--format={p}", "--package", package])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

fn links(package: &str, names: &[&str]) -> Vec<String> {
    let mut all = linked(package);
    all.retain(|name| names.contains(&name.as_str()));
    all.sort();
    all.dedup();
    all
}

#[test]
fn the_client_links_no_database_no_broker_and_no_engine() {
    let heavy = [
        "ebbtide-engine",
        "ebbtide-solver",
        "lapin",
        "sea-orm",
        "sqlx",
        "wasmtime",
    ];
    for client in ["ebbtide-cli", "ebbtide-batch-service"] {
        assert_eq!(links(client, &heavy), [""; 0], "{client}");
        assert!(links(client, &["tonic"]).len() == 1, "{client}: not read");
    }
    // The same look finds them where they belong.
    assert_eq!(
        links("ebbtide-manage", &["lapin", "sea-orm"]),
        ["lapin", "sea-orm"]
    );
    assert_eq!(
        links("ebbtide-lab", &["ebbtide-engine", "wasmtime"]),
        ["ebbtide-engine", "wasmtime"]
    );
}

/// The commands that a line of a command's file names, by their modules.
fn named(line: &str, prefix: &str) -> Vec<String> {
    let Some((_, rest)) = line.split_once(prefix) else {
        return Vec::new();
    };
    let list = match rest.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or_default(),
        None => rest,
    };
    let parts = list
        .split(',')
        .take(if rest.starts_with('{') { usize::MAX } else { 1 });
    let word = |part: &str| -> String {
        let word = part.trim().chars();
        word.take_while(|c| c.is_ascii_lowercase() || *c == '_')
            .collect()
    };
    parts.map(word).filter(|word| !word.is_empty()).collect()
}

/// Adds what the files of one command use of the others.
fn uses_of(
    command: &str,
    path: &Path,
    is_file: bool,
    uses: &mut BTreeMap<String, BTreeSet<String>>,
) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            uses_of(command, &entry.unwrap().path(), false, uses);
        }
        return;
    }
    let text = std::fs::read_to_string(path).unwrap();
    for line in text.lines() {
        let mut others = named(line, "crate::commands::");
        if is_file {
            others.extend(named(line, "super::"));
        }
        let others = others.into_iter().filter(|other| other != command);
        uses.entry(command.to_owned()).or_default().extend(others);
    }
}

/// What is left when each command that uses no other one is taken away, again and again.
fn circle(mut uses: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let there: BTreeSet<String> = uses.keys().cloned().collect();
        let before = uses.len();
        uses.retain(|_, others| others.iter().any(|other| there.contains(other)));
        if uses.len() == before {
            return uses.into_keys().collect();
        }
    }
}

#[test]
fn commands_use_one_another_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for program in ["cli", "cli/manage", "cli/lab"] {
        let mut uses = BTreeMap::new();
        for entry in std::fs::read_dir(root.join(program).join("src/commands")).unwrap() {
            let path = entry.unwrap().path();
            let command = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if command != "mod" {
                uses_of(&command, &path, path.is_file(), &mut uses);
            }
        }
        count += uses.values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(circle(uses), [""; 0], "{program}");
    }
    assert!(count >= 8, "only {count} uses were found");
    // A circle is seen.
    let uses = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    let three = [uses("a", "b"), uses("b", "a"), uses("c", "a")];
    assert_eq!(circle(BTreeMap::from(three)), ["a", "b", "c"]);
}
