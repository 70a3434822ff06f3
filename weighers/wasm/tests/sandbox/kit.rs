//! Components of the test's own, and calls of them.

use ebbtide_model::Resources;
use ebbtide_wasm::{
    CompiledPlugin, Grants, PluginSettings, Sandbox, SandboxLimits, WasmCostModule, WasmError,
    WasmFilter, WasmWeigher,
};
use ebbtide_weigher_api::{
    Column, Details, Fact, FactColumn, FilterError, FilterVerdicts, HostBatch, HostFilter,
    PreemptibleRows, RequestDetails, RequestView, Weigher, WeigherError,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds a guest of these tests and gives its file. Cargo sees to it that two tests do not build
/// at the same time.
fn guest(feature: Option<&str>) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/naughty");
    let kind = feature.unwrap_or("weigher");
    let target: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "guests", kind]
        .iter()
        .collect();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--target",
        "wasm32-wasip2",
        "--manifest-path",
    ]);
    cargo
        .arg(source.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    cargo.args(feature.iter().flat_map(|feature| ["--features", feature]));
    // Flags and wrappers of the build around us are not meant for it.
    cargo
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let built = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(
        built.status.success(),
        "the guest does not build (rustup target add wasm32-wasip2?): {said}"
    );
    std::fs::read(target.join("wasm32-wasip2/release/naughty.wasm")).unwrap()
}

pub(crate) fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::new().unwrap())
}

pub(crate) fn weigher_guest() -> &'static CompiledPlugin {
    static GUEST: OnceLock<CompiledPlugin> = OnceLock::new();
    GUEST.get_or_init(|| sandbox().compile(&guest(None)).unwrap())
}

pub(crate) fn cost_guest() -> &'static CompiledPlugin {
    static GUEST: OnceLock<CompiledPlugin> = OnceLock::new();
    GUEST.get_or_init(|| sandbox().compile(&guest(Some("cost"))).unwrap())
}

pub(crate) fn filter_guest() -> &'static CompiledPlugin {
    static GUEST: OnceLock<CompiledPlugin> = OnceLock::new();
    GUEST.get_or_init(|| sandbox().compile(&guest(Some("filter"))).unwrap())
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> PluginSettings {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

pub(crate) fn try_weigher(pairs: &[(&str, &str)]) -> Result<WasmWeigher, WasmError> {
    weigher_guest().weigher(
        "naughty",
        &settings(pairs),
        SandboxLimits::default(),
        Grants::default(),
    )
}

pub(crate) fn weigher(pairs: &[(&str, &str)]) -> WasmWeigher {
    try_weigher(pairs).unwrap()
}

pub(crate) fn try_cost(pairs: &[(&str, &str)]) -> Result<WasmCostModule, WasmError> {
    cost_guest().cost_module(
        "naughty",
        &settings(pairs),
        SandboxLimits::default(),
        Grants::default(),
    )
}

/// What a weigher gives to so many hosts, of which nothing is known but how many processors are
/// free: 0, 1, 2 …
pub(crate) fn weigh(weigher: &WasmWeigher, hosts: usize) -> Result<Vec<f64>, WeigherError> {
    weigh_with(weigher, hosts, &[])
}

/// The same, and some facts are known.
pub(crate) fn weigh_with(
    weigher: &WasmWeigher,
    len: usize,
    facts: &[(Fact, FactColumn)],
) -> Result<Vec<f64>, WeigherError> {
    let mut out = vec![f64::NAN; len];
    ask(weigher.needs(), len, facts, |request, hosts| {
        weigher.weigh(request, hosts, &mut out)
    })?;
    Ok(out)
}

/// What a filter answers about so many hosts: how many processors are free is 0, 1, 2 …
pub(crate) fn filter(filter: &WasmFilter, len: usize) -> Result<FilterVerdicts, FilterError> {
    ask(filter.needs(), len, &[], |request, hosts| {
        filter.filter(request, hosts)
    })
}

fn ask<T>(
    needs: &[Column],
    len: usize,
    facts: &[(Fact, FactColumn)],
    ask: impl FnOnce(&RequestView<'_>, &HostBatch<'_>) -> T,
) -> T {
    let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
    for column in needs {
        columns[column.index()] = (0..len).map(|host| host as f64).collect();
    }
    let offsets: Vec<u32> = (0..=len as u32).map(|host| host * 2).collect();
    let ages = vec![60.0; len * 2];
    let hosts = HostBatch {
        len,
        columns: &columns,
        preemptibles: Some(PreemptibleRows {
            offsets: &offsets,
            age_seconds: &ages,
        }),
        details: Details {
            facts,
            ..Details::default()
        },
    };
    let mut resources = Resources::new();
    resources.set("VCPU".parse().unwrap(), 2).unwrap();
    let request = RequestView {
        project_id: "project-1",
        resources: &resources,
        preemptible: false,
        group_policy: Some(ebbtide_model::GroupPolicy::SoftAffinity),
        details: RequestDetails {
            flavor: "m1",
            extra_specs: &[("hw:cpu_policy", "dedicated")],
            image_id: Some("image-1"),
            scheduler_hints: &[],
        },
    };
    ask(&request, &hosts)
}

/// What goes wrong when it weighs three hosts.
pub(crate) fn failure(pairs: &[(&str, &str)]) -> String {
    weigh(&weigher(pairs), 3).unwrap_err().to_string()
}
