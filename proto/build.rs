//! Compiles the contracts without a system `protoc`: protox parses them in Rust.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from("proto");
    let files = [
        "v1/scheduler",
        "v1/admin",
        "v1/servers",
        "v1/plugins",
        "v1/market",
    ]
    .map(|name| root.join(format!("ebbtide/{name}.proto")));
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    println!("cargo:rerun-if-changed=proto/ebbtide/v1/types.proto");
    let descriptors = protox::compile(&files, [&root])?;
    // What a scheduler asks, and does not answer itself: no part of what its reflection says.
    let plugin = root.join("ebbtide/plugin/v1/plugin.proto");
    println!("cargo:rerun-if-changed={}", plugin.display());
    let asked = protox::compile([&plugin], [&root])?;
    tonic_prost_build::configure().compile_fds(asked)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // A test compares it with what the Python kit reads. It is made here, because a development
    // dependency on protox makes Cargo build this script, and all that stands on this crate, once
    // more for the tests.
    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_source_info(false).include_imports(true);
    compiler.open_file(&plugin)?;
    let plain = encode(&compiler.file_descriptor_set());
    std::fs::write(out.join("plugin_descriptor.bin"), plain)?;
    std::fs::write(out.join("ebbtide_descriptor.bin"), encode(&descriptors))?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}

fn encode(descriptors: &protox::prost_reflect::prost_types::FileDescriptorSet) -> Vec<u8> {
    use protox::prost_reflect::prost::Message;
    descriptors.encode_to_vec()
}
