//! New projects in other languages than Rust: their own tests pass, they build with what Debian,
//! PyPI and rustup have, and pass the conformance kit.

use crate::installed::{environment, packages};
use crate::support::{failures, run};
use ebbtide_plugin_kit::{
    Check, CheckOutcome, Language, NewProject, ProjectKind, Subject, check, files, write,
};
use std::fs;
use std::path::PathBuf;

fn project(name: &str, kind: ProjectKind, language: Language) -> NewProject {
    NewProject {
        name: name.to_owned(),
        kind,
        language,
    }
}

/// A project in a directory of its own.
fn made(name: &str, kind: ProjectKind, language: Language) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join(name);
    write(&project(name, kind, language), &into).unwrap();
    (dir, into)
}

fn outcome(checks: &[Check], name: &str) -> Option<CheckOutcome> {
    let found = checks.iter().find(|check| check.name == name);
    found.map(|check| check.outcome)
}

/// It passes with the limits that plugins have, and refuses a setting in its author's words if it
/// has one.
///
/// It is compiled once for all checks: compiling the 18 MB of Python without optimisation takes
/// minutes on a busy machine.
fn conforms(mut subject: Subject, kind: ProjectKind) -> Vec<Check> {
    let checks = check(&subject).unwrap();
    assert_eq!(failures(&checks), Vec::<&Check>::new());
    assert!(outcome(&checks, "work").is_some(), "{checks:?}");
    refuses_a_misspelt_setting(&subject);
    let setting = match kind {
        ProjectKind::Weigher => Some(("floor", "it has to be a number above 0")),
        ProjectKind::Filter => Some(("most", "it has to be a number from 0 to 100")),
        ProjectKind::CostModule => None,
    };
    if let Some((name, says)) = setting {
        subject.settings.insert(name.to_owned(), "much".to_owned());
        let refused = check(&subject).unwrap();
        let failed = failures(&refused);
        assert!(
            failed.len() == 1 && failed[0].says.contains(says),
            "{refused:?}"
        );
    }
    checks
}

/// A setting that the plugin does not read has no effect: its operator has to hear of that.
pub(crate) fn refuses_a_misspelt_setting(subject: &Subject) {
    let mut misspelt = subject.clone();
    misspelt.settings.insert("flour".to_owned(), "2".to_owned());
    let checks = check(&misspelt).unwrap();
    let failed = failures(&checks);
    assert!(
        failed.len() == 1 && failed[0].says.contains("is not a setting"),
        "{checks:?}"
    );
}

fn a_new_project_in_c_works(name: &str, kind: ProjectKind) {
    packages("plugins-c");
    let (_dir, into) = made(name, kind, Language::C);
    let said = run(&into, "make", &["test"]);
    assert!(said.contains("tests passed"), "{said}");
    let said = run(&into, "make", &[]);
    assert!(!said.contains("warning"), "{said}");
    let component = into.join(name).with_extension("wasm");
    let checks = conforms(Subject::new(&component), kind);
    // No clock, no sockets: its library brings in nothing that is not used.
    assert_eq!(outcome(&checks, "imports"), Some(CheckOutcome::Passed));
}

#[test]
fn a_new_weigher_in_c_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_c_works("c_weigher", ProjectKind::Weigher);
}

#[test]
fn a_new_cost_module_in_c_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_c_works("c_cost", ProjectKind::CostModule);
}

#[test]
fn a_new_filter_in_c_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_c_works("c_filter", ProjectKind::Filter);
}

fn a_new_project_in_python_works(name: &str, kind: ProjectKind) {
    let (_dir, into) = made(name, kind, Language::Python);
    let requirements = fs::read_to_string(into.join("requirements.txt")).unwrap();
    let programs = environment("python", &requirements);
    let said = run(
        &into,
        "env",
        &"PYTHONPATH=src python3 -m unittest discover tests"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    assert!(said.contains("OK"), "{said}");
    // The commands of its README, but for where the environment lies.
    let world = match kind {
        ProjectKind::Weigher => "weigher-plugin",
        ProjectKind::CostModule => "cost-plugin",
        ProjectKind::Filter => "filter-plugin",
    };
    let command = format!("-d wit -w {world} componentize plugin -p src -o {name}.wasm");
    let readme = fs::read_to_string(into.join("README.md")).unwrap();
    assert!(readme.contains(&format!(".venv/bin/componentize-py {command}")));
    let componentize = programs.join("componentize-py");
    let words: Vec<&str> = command.split(' ').collect();
    run(&into, componentize.to_str().unwrap(), &words);
    let component = into.join(name).with_extension("wasm");
    conforms(Subject::new(&component), kind);
}

#[test]
fn a_new_weigher_in_python_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_python_works("python_weigher", ProjectKind::Weigher);
}

#[test]
fn a_new_cost_module_in_python_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_python_works("python_cost", ProjectKind::CostModule);
}

#[test]
fn a_new_filter_in_python_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_python_works("python_filter", ProjectKind::Filter);
}

fn a_new_project_in_go_works(name: &str, kind: ProjectKind) {
    let (_dir, into) = made(name, kind, Language::Go);
    let programs = environment("go", crate::installed::GO);
    let go = format!("GO={}", programs.join("go").display());
    let said = run(&into, "make", &["test", &go]);
    assert!(said.contains("ok"), "{said}");
    run(&into, "make", &[&go]);
    let component = into.join(name).with_extension("wasm");
    let checks = conforms(Subject::new(&component), kind);
    // No clock either, though Go's runtime begins with a look at one.
    assert_eq!(outcome(&checks, "imports"), Some(CheckOutcome::Passed));
    let source = fs::read_to_string(into.join("tools/wasi.wat")).unwrap();
    assert!(
        wat::parse_str(source).unwrap() == fs::read(into.join("build/wasi.wasm")).unwrap(),
        "tools/wasi.b64 is not tools/wasi.wat"
    );
}

#[test]
fn a_new_weigher_in_go_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_go_works("go_weigher", ProjectKind::Weigher);
}

#[test]
fn a_new_cost_module_in_go_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_go_works("go_cost", ProjectKind::CostModule);
}

#[test]
fn a_new_filter_in_go_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_go_works("go_filter", ProjectKind::Filter);
}

#[test]
fn no_project_leaves_anything_open() {
    for language in [Language::Rust, Language::C, Language::Go, Language::Python] {
        for kind in [
            ProjectKind::Weigher,
            ProjectKind::CostModule,
            ProjectKind::Filter,
        ] {
            let project = project("whole", kind, language);
            for (path, text) in files(&project).unwrap() {
                // A name between double braces; Go and C have other ones there.
                let open = text.split("{{").skip(1).any(|rest| {
                    let name = rest.split("}}").next().unwrap_or_default();
                    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase())
                });
                assert!(!open, "{} of {project:?}: {text}", path.display());
                assert!(text.ends_with('\n'), "{}", path.display());
            }
        }
    }
}
