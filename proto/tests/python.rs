//! The description of the contract that the Python kit reads.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

use std::path::Path;

/// Made by the build script.
const MADE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin_descriptor.bin"));

/// Made anew with `EBBTIDE_UPDATE=1 cargo test -p ebbtide-proto`.
#[test]
fn what_python_reads_is_the_contract() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = here.join("../integration/python/ebbtide_plugin/plugin.desc");
    if std::env::var_os("EBBTIDE_UPDATE").is_some() {
        std::fs::write(&path, MADE).unwrap();
    }
    let kept = std::fs::read(&path).expect("integration/python/ebbtide_plugin/plugin.desc");
    assert_eq!(
        kept, MADE,
        "make it anew: EBBTIDE_UPDATE=1 cargo test -p ebbtide-proto"
    );
}
