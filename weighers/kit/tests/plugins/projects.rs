//! New projects build, pass their own tests and the conformance kit; what is wrong is found.

use crate::languages::refuses_a_misspelt_setting;
use crate::support::{built, cargo, failures};
use ebbtide_plugin_kit::{
    Check, CheckOutcome, Language, NewProject, ProjectKind, Subject, check, write,
};

fn project(name: &str, kind: ProjectKind) -> NewProject {
    NewProject {
        name: name.to_owned(),
        kind,
        language: Language::Rust,
    }
}

fn component(name: &str) -> Subject {
    Subject::new(&built(name))
}

fn a_new_project_works(name: &str, kind: ProjectKind) {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join(name);
    write(&project(name, kind), &into).unwrap();
    let said = cargo(&into, &["test", "--quiet"]);
    assert!(said.contains("test result: ok"), "{said}");
    builds_nothing_else_for_its_tests(&into);
    cargo(
        &into,
        &["build", "--release", "--quiet", "--target", "wasm32-wasip2"],
    );
    let checks = check(&component(name)).unwrap();
    assert_eq!(failures(&checks), Vec::<&Check>::new());
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    assert!(
        names.contains(&"deterministic") && names.contains(&"work"),
        "{names:?}"
    );
    refuses_a_misspelt_setting(&component(name));
}

/// Tests run natively and take nothing of what only the component needs: that compiles for half a
/// minute.
fn builds_nothing_else_for_its_tests(project: &std::path::Path) {
    let host = "--edges=normal,build,dev --depth=1 --prefix=none";
    let words: Vec<&str> = ["tree"].into_iter().chain(host.split(' ')).collect();
    let tree = cargo(project, &words);
    let crates = tree.lines().filter(|line| line.contains(" v"));
    assert_eq!(crates.count(), 1, "{tree}");
    let component = [&words[..], &["--target=wasm32-wasip2"]].concat();
    assert!(cargo(project, &component).contains("wit-bindgen v"));
}

#[test]
fn a_new_weigher_builds_passes_its_tests_and_the_kit() {
    a_new_project_works("kit_weigher", ProjectKind::Weigher);
}

#[test]
fn a_new_cost_module_builds_passes_its_tests_and_the_kit() {
    a_new_project_works("kit_cost", ProjectKind::CostModule);
}

#[test]
fn a_new_filter_builds_passes_its_tests_and_the_kit() {
    a_new_project_works("kit_filter", ProjectKind::Filter);
}

#[test]
fn a_weigher_that_looks_at_the_order_of_hosts_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("kit_order");
    write(&project("kit_order", ProjectKind::Weigher), &into).unwrap();
    let source = into.join("src/component.rs");
    let text = std::fs::read_to_string(&source).unwrap();
    let by_place =
        "Ok((0..hosts.len).map(|place| f64::from(place) + floor + score(1.0, 1.0, 1.0)).collect())";
    let honest = "Ok(ram_mb.iter().zip(vcpus).map(|(ram_mb, vcpus)| score(*ram_mb, *vcpus, floor)).collect())";
    assert!(text.contains(honest));
    std::fs::write(&source, text.replace(honest, by_place)).unwrap();
    cargo(
        &into,
        &["build", "--release", "--quiet", "--target", "wasm32-wasip2"],
    );
    let checks = check(&component("kit_order")).unwrap();
    let failed: Vec<&str> = failures(&checks).iter().map(|check| check.name).collect();
    assert_eq!(failed, ["order"]);
}

#[test]
fn a_weigher_that_counts_on_the_time_is_found_though_a_clock_is_granted() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("kit_time");
    write(&project("kit_time", ProjectKind::Weigher), &into).unwrap();
    let source = into.join("src/component.rs");
    let text = std::fs::read_to_string(&source).unwrap();
    let honest = "score(*ram_mb, *vcpus, floor))";
    let by_time =
        "score(*ram_mb, *vcpus, floor) + std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64())";
    assert!(text.contains(honest));
    std::fs::write(&source, text.replace(honest, by_time)).unwrap();
    cargo(
        &into,
        &["build", "--release", "--quiet", "--target", "wasm32-wasip2"],
    );
    let mut subject = component("kit_time");
    let checks = check(&subject).unwrap();
    let says = &failures(&checks)[0].says;
    assert!(says.contains("the clock is not granted"), "{says}");
    subject.grant_clock();
    let checks = check(&subject).unwrap();
    let failed = failures(&checks);
    assert!(
        failed.iter().any(|check| check.name == "deterministic"),
        "{failed:?}"
    );
}

#[test]
fn settings_that_the_author_refuses_are_told_in_the_authors_words() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("kit_settings");
    write(&project("kit_settings", ProjectKind::Weigher), &into).unwrap();
    cargo(
        &into,
        &["build", "--release", "--quiet", "--target", "wasm32-wasip2"],
    );
    let mut subject = component("kit_settings");
    subject
        .settings
        .insert("floor".to_owned(), "none".to_owned());
    let checks = check(&subject).unwrap();
    let failed = failures(&checks);
    assert_eq!(failed.len(), 1, "{checks:?}");
    assert!(
        failed[0].says.contains("it has to be a number above 0"),
        "{}",
        failed[0].says
    );
}

#[test]
fn a_project_overwrites_nothing_and_names_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let refused = write(&project("spread", ProjectKind::Weigher), dir.path()).unwrap_err();
    assert!(refused.to_string().contains("exists already"));
    for name in ["", "Spread", "1st", "a-b", "../x"] {
        let refused =
            write(&project(name, ProjectKind::Weigher), &dir.path().join("x")).unwrap_err();
        assert!(
            refused.to_string().contains("cannot be a plugin's name"),
            "{name}"
        );
    }
}

#[test]
fn a_file_that_is_no_component_fails_the_first_check_and_no_other_is_tried() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes.wasm");
    std::fs::write(&file, "to do: write it").unwrap();
    let checks = check(&Subject::new(&file)).unwrap();
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0].outcome, CheckOutcome::Failed);
}
