//! The description of the contract that the Python kit reads.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

use protox::prost_reflect::prost::Message;
use std::path::Path;

/// Made anew with `EBBTIDE_UPDATE=1 cargo test -p ebbtide-proto`.
#[test]
fn what_python_reads_is_the_contract() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("proto");
    let mut compiler = protox::Compiler::new([&root]).unwrap();
    compiler.include_source_info(false).include_imports(true);
    compiler
        .open_file("ebbtide/plugin/v1/plugin.proto")
        .unwrap();
    let made = compiler.file_descriptor_set().encode_to_vec();
    let path = here.join("../integration/python/ebbtide_plugin/plugin.desc");
    if std::env::var_os("EBBTIDE_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read(&path).expect("integration/python/ebbtide_plugin/plugin.desc");
    assert_eq!(
        kept, made,
        "make it anew: EBBTIDE_UPDATE=1 cargo test -p ebbtide-proto"
    );
}
