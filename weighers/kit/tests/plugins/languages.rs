//! New projects in other languages than Rust: their own tests pass, they build with what Debian,
//! PyPI and rustup have, and pass the conformance kit.

use crate::installed::{environment, packages};
use crate::support::{failures, run};
use ebbtide_plugin_kit::{
    Check, CheckOutcome, Language, NewProject, ProjectKind, Subject, check, files, write,
};
use std::fs;
use std::path::PathBuf;

fn project(name: &str, is_cost_module: bool, language: Language) -> NewProject {
    NewProject {
        name: name.to_owned(),
        kind: match is_cost_module {
            true => ProjectKind::CostModule,
            false => ProjectKind::Weigher,
        },
        language,
    }
}

/// A project in a directory of its own.
fn made(name: &str, is_cost_module: bool, language: Language) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join(name);
    write(&project(name, is_cost_module, language), &into).unwrap();
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
fn conforms(mut subject: Subject, is_cost_module: bool) -> Vec<Check> {
    let checks = check(&subject).unwrap();
    assert_eq!(failures(&checks), Vec::<&Check>::new());
    assert!(outcome(&checks, "work").is_some(), "{checks:?}");
    refuses_a_misspelt_setting(&subject);
    if !is_cost_module {
        subject
            .settings
            .insert("floor".to_owned(), "much".to_owned());
        let refused = check(&subject).unwrap();
        let failed = failures(&refused);
        assert!(
            failed.len() == 1 && failed[0].says.contains("it has to be a number above 0"),
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

fn a_new_project_in_c_works(name: &str, is_cost_module: bool) {
    packages("plugins-c");
    let (_dir, into) = made(name, is_cost_module, Language::C);
    let said = run(&into, "make", &["test"]);
    assert!(said.contains("tests passed"), "{said}");
    let said = run(&into, "make", &[]);
    assert!(!said.contains("warning"), "{said}");
    let component = into.join(name).with_extension("wasm");
    let checks = conforms(Subject::new(&component), is_cost_module);
    // No clock, no sockets: its library brings in nothing that is not used.
    assert_eq!(outcome(&checks, "imports"), Some(CheckOutcome::Passed));
}

#[test]
fn a_new_weigher_in_c_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_c_works("c_weigher", false);
}

#[test]
fn a_new_cost_module_in_c_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_c_works("c_cost", true);
}

fn a_new_project_in_python_works(name: &str, is_cost_module: bool) {
    let (_dir, into) = made(name, is_cost_module, Language::Python);
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
    let world = if is_cost_module {
        "cost-plugin"
    } else {
        "weigher-plugin"
    };
    let command = format!("-d wit -w {world} componentize plugin -p src -o {name}.wasm");
    let readme = fs::read_to_string(into.join("README.md")).unwrap();
    assert!(readme.contains(&format!(".venv/bin/componentize-py {command}")));
    let componentize = programs.join("componentize-py");
    let words: Vec<&str> = command.split(' ').collect();
    run(&into, componentize.to_str().unwrap(), &words);
    let component = into.join(name).with_extension("wasm");
    conforms(Subject::new(&component), is_cost_module);
}

#[test]
fn a_new_weigher_in_python_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_python_works("python_weigher", false);
}

#[test]
fn a_new_cost_module_in_python_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_python_works("python_cost", true);
}

fn a_new_project_in_go_works(name: &str, is_cost_module: bool) {
    let (_dir, into) = made(name, is_cost_module, Language::Go);
    let programs = environment("go", crate::installed::GO);
    let go = format!("GO={}", programs.join("go").display());
    let said = run(&into, "make", &["test", &go]);
    assert!(said.contains("ok"), "{said}");
    run(&into, "make", &[&go]);
    let component = into.join(name).with_extension("wasm");
    let checks = conforms(Subject::new(&component), is_cost_module);
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
    a_new_project_in_go_works("go_weigher", false);
}

#[test]
fn a_new_cost_module_in_go_builds_passes_its_tests_and_the_kit() {
    a_new_project_in_go_works("go_cost", true);
}

#[test]
fn no_project_leaves_anything_open() {
    for language in [Language::Rust, Language::C, Language::Go, Language::Python] {
        for is_cost_module in [false, true] {
            let project = project("whole", is_cost_module, language);
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
