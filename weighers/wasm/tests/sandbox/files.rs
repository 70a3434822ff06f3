//! Files that are no plugins, and one that was made long ago.

use super::kit::{sandbox, settings, weigh};
use ebbtide_wasm::{CompiledPlugin, Grants, Kind, SandboxLimits};

/// Made in November 2026 for `ebbtide:plugin@1.0.0`, with wit-bindgen 0.63. It must run for ever.
const FIRST: &[u8] = include_bytes!("../fixtures/weigher-1.0.wasm");

/// A component that is written as text.
fn text(component: &str) -> CompiledPlugin {
    let bytes = wat::parse_str(component).unwrap();
    sandbox().compile(&bytes).unwrap()
}

fn refused_text(component: &str) -> String {
    refused(&wat::parse_str(component).unwrap())
}

fn refused(bytes: &[u8]) -> String {
    sandbox().compile(bytes).unwrap_err().to_string()
}

#[test]
fn the_first_plugin_ever_made_still_runs() {
    let first = sandbox().compile(FIRST).unwrap();
    assert_eq!(first.kind(), Kind::Weigher);
    let weigher = first
        .weigher(
            "spread",
            &settings(&[]),
            SandboxLimits::default(),
            Grants::default(),
        )
        .unwrap();
    assert_eq!(weigher.reads(), ["free_vcpus", "free_ram_mb"]);
    let numbers = weigh(&weigher, 2).unwrap();
    assert_eq!(numbers, [0.0, 1.0 + 1.0 / 1024.0]);
}

#[test]
fn what_is_no_component_is_refused() {
    for bytes in [
        &b""[..],
        b"#!/bin/sh",
        &FIRST[..FIRST.len() / 2],
        b"\0asm\x01\0\0\0",
    ] {
        let said = refused(bytes);
        assert!(
            said.starts_with("it is not a WebAssembly component: "),
            "{said}"
        );
    }
}

#[test]
fn every_cut_of_a_file_is_refused_and_none_is_half_a_plugin() {
    for at in (0..FIRST.len()).step_by(997) {
        assert!(sandbox().compile(&FIRST[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_component_of_something_else_is_refused_with_what_it_is() {
    let said = refused_text("(component (core module))");
    assert!(
        said.contains("none of ebbtide:plugin/weigher, /cost-module and /filter"),
        "{said}"
    );
    let other = r#"(component (instance $i) (export "acme:things/maker@1.0.0" (instance $i)))"#;
    assert!(refused_text(other).contains("but acme:things/maker@1.0.0"));
}

#[test]
fn a_plugin_for_another_contract_is_refused_with_its_version() {
    let later =
        r#"(component (instance $i) (export "ebbtide:plugin/weigher@2.1.0" (instance $i)))"#;
    assert_eq!(
        refused_text(later),
        "it was made for ebbtide:plugin 2.1.0; this Ebbtide knows 1.x"
    );
}

#[test]
fn an_interface_with_other_types_is_refused() {
    let empty =
        r#"(component (instance $i) (export "ebbtide:plugin/weigher@1.0.0" (instance $i)))"#;
    let empty = text(empty);
    let said = empty
        .weigher(
            "n",
            &settings(&[]),
            SandboxLimits::default(),
            Grants::default(),
        )
        .unwrap_err()
        .to_string();
    assert!(said.contains("has no function describe"), "{said}");
}

#[test]
fn what_imports_more_than_plugins_have_is_refused_with_its_name() {
    let greedy = r#"(component
        (import "acme:secrets/keys@1.0.0" (instance))
        (instance $i) (export "ebbtide:plugin/weigher@1.0.0" (instance $i)))"#;
    let greedy = text(greedy);
    assert_eq!(greedy.imports(), ["acme:secrets/keys@1.0.0"]);
    let said = greedy
        .weigher(
            "n",
            &settings(&[]),
            SandboxLimits::default(),
            Grants::default(),
        )
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("has no function") || said.contains("imports acme:secrets/keys@1.0.0"),
        "{said}"
    );
}
