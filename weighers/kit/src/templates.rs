//! What new projects are made of: for each language what all kinds have in common, and what each
//! has of its own.
//!
//! In the texts `{{name}}` and so on are replaced; a file of which several parts are listed is
//! those parts, one behind the other.

use crate::project::{Language, ProjectKind};

/// A path in the project, and the text there.
pub(crate) type TemplateFile = (&'static str, &'static str);

macro_rules! part {
    ($path:literal, $template:literal) => {
        ($path, include_str!(concat!("../templates/", $template)))
    };
}

const RUST: [TemplateFile; 2] = [
    part!("Cargo.toml", "rust/Cargo.toml.in"),
    part!("README.md", "rust/README.md.in"),
];
const RUST_WEIGHER: [TemplateFile; 2] = [
    part!("src/lib.rs", "rust-weigher/lib.rs.in"),
    part!("src/component.rs", "rust-weigher/component.rs.in"),
];
const RUST_COST: [TemplateFile; 2] = [
    part!("src/lib.rs", "rust-cost/lib.rs.in"),
    part!("src/component.rs", "rust-cost/component.rs.in"),
];
const C: [TemplateFile; 4] = [
    part!("Makefile", "c/Makefile.in"),
    part!("README.md", "c/README.md.in"),
    part!("src/ebbtide_plugin.h", "c/ebbtide_plugin.h.in"),
    part!("src/ebbtide_plugin.c", "c/common.c.in"),
];
const C_WEIGHER: [TemplateFile; 7] = [
    part!("src/ebbtide_plugin.c", "c/numbers.c.in"),
    part!("src/ebbtide_plugin.c", "c/request.c.in"),
    part!("src/ebbtide_plugin.c", "c-weigher/export.c.in"),
    part!("src/score.h", "c-weigher/score.h.in"),
    part!("src/score.c", "c-weigher/score.c.in"),
    part!("src/plugin.c", "c-weigher/plugin.c.in"),
    part!("tests/test.c", "c-weigher/test.c.in"),
];
const C_COST: [TemplateFile; 6] = [
    part!("src/ebbtide_plugin.c", "c/numbers.c.in"),
    part!("src/ebbtide_plugin.c", "c-cost/export.c.in"),
    part!("src/score.h", "c-cost/score.h.in"),
    part!("src/score.c", "c-cost/score.c.in"),
    part!("src/plugin.c", "c-cost/plugin.c.in"),
    part!("tests/test.c", "c-cost/test.c.in"),
];
const C_FILTER: [TemplateFile; 6] = [
    part!("src/ebbtide_plugin.c", "c/request.c.in"),
    part!("src/ebbtide_plugin.c", "c-filter/export.c.in"),
    part!("src/score.h", "c-filter/score.h.in"),
    part!("src/score.c", "c-filter/score.c.in"),
    part!("src/plugin.c", "c-filter/plugin.c.in"),
    part!("tests/test.c", "c-filter/test.c.in"),
];
const GO: [TemplateFile; 7] = [
    part!("go.mod", "go/go.mod.in"),
    part!("Makefile", "go/Makefile.in"),
    part!("README.md", "go/README.md.in"),
    part!("tools/wasi.wat", "go/wasi.wat.in"),
    part!("tools/wasi.b64", "go/wasi.b64.in"),
    part!("ebbtide.go", "go/ebbtide.go.in"),
    part!("ebbtide_wasm.go", "go/ebbtide_wasm.go.in"),
];
const GO_WEIGHER: [TemplateFile; 5] = [
    part!("ebbtide_wasm.go", "go/request_wasm.go.in"),
    part!("ebbtide_wasm.go", "go-weigher/export.go.in"),
    part!("score.go", "go-weigher/score.go.in"),
    part!("plugin.go", "go-weigher/plugin.go.in"),
    part!("plugin_test.go", "go-weigher/test.go.in"),
];
const GO_COST: [TemplateFile; 4] = [
    part!("ebbtide_wasm.go", "go-cost/export.go.in"),
    part!("score.go", "go-cost/score.go.in"),
    part!("plugin.go", "go-cost/plugin.go.in"),
    part!("plugin_test.go", "go-cost/test.go.in"),
];
const GO_FILTER: [TemplateFile; 5] = [
    part!("ebbtide_wasm.go", "go/request_wasm.go.in"),
    part!("ebbtide_wasm.go", "go-filter/export.go.in"),
    part!("score.go", "go-filter/score.go.in"),
    part!("plugin.go", "go-filter/plugin.go.in"),
    part!("plugin_test.go", "go-filter/test.go.in"),
];
const PYTHON: [TemplateFile; 2] = [
    part!("README.md", "python/README.md.in"),
    part!("requirements.txt", "python/requirements.txt.in"),
];
const PYTHON_WEIGHER: [TemplateFile; 3] = [
    part!("src/score.py", "python-weigher/score.py.in"),
    part!("src/plugin.py", "python-weigher/plugin.py.in"),
    part!("tests/test_score.py", "python-weigher/test_score.py.in"),
];
const PYTHON_COST: [TemplateFile; 3] = [
    part!("src/score.py", "python-cost/score.py.in"),
    part!("src/plugin.py", "python-cost/plugin.py.in"),
    part!("tests/test_score.py", "python-cost/test_score.py.in"),
];
const RUST_FILTER: [TemplateFile; 2] = [
    part!("src/lib.rs", "rust-filter/lib.rs.in"),
    part!("src/component.rs", "rust-filter/component.rs.in"),
];
const PYTHON_FILTER: [TemplateFile; 3] = [
    part!("src/score.py", "python-filter/score.py.in"),
    part!("src/plugin.py", "python-filter/plugin.py.in"),
    part!("tests/test_score.py", "python-filter/test_score.py.in"),
];

const C_REQUEST: &str = include_str!("../templates/c/request.h.in");
const GO_REQUEST: &str = include_str!("../templates/go/request.go.in");

/// The parts of a project.
pub(crate) fn parts(language: Language, kind: ProjectKind) -> Vec<TemplateFile> {
    use ProjectKind::{CostModule, Filter, Weigher};
    let (common, own): (&[TemplateFile], &[TemplateFile]) = match (language, kind) {
        (Language::Rust, Weigher) => (&RUST, &RUST_WEIGHER),
        (Language::Rust, CostModule) => (&RUST, &RUST_COST),
        (Language::Rust, Filter) => (&RUST, &RUST_FILTER),
        (Language::C, Weigher) => (&C, &C_WEIGHER),
        (Language::C, CostModule) => (&C, &C_COST),
        (Language::Python, Weigher) => (&PYTHON, &PYTHON_WEIGHER),
        (Language::Python, CostModule) => (&PYTHON, &PYTHON_COST),
        (Language::Python, Filter) => (&PYTHON, &PYTHON_FILTER),
        (Language::Go, Weigher) => (&GO, &GO_WEIGHER),
        (Language::Go, CostModule) => (&GO, &GO_COST),
        (Language::C, Filter) => (&C, &C_FILTER),
        (Language::Go, Filter) => (&GO, &GO_FILTER),
    };
    common.iter().chain(own).copied().collect()
}

/// What git should not keep.
pub(crate) fn ignored(language: Language) -> &'static str {
    match language {
        Language::Rust => "/target\n",
        Language::C | Language::Go => "/build\n/.venv\n*.wasm\n",
        Language::Python => "/.venv\n/bindings\n__pycache__\n*.wasm\n",
    }
}

/// The types of the contract that a kind has, in languages where they are written by hand: those
/// of a request, and the kind's own.
pub(crate) fn types(language: Language, kind: ProjectKind) -> String {
    use ProjectKind::{CostModule, Filter, Weigher};
    let (of_request, own) = match (language, kind) {
        (Language::C, Weigher) => (C_REQUEST, include_str!("../templates/c-weigher/abi.h.in")),
        (Language::C, Filter) => (C_REQUEST, include_str!("../templates/c-filter/abi.h.in")),
        (Language::C, CostModule) => ("", include_str!("../templates/c-cost/abi.h.in")),
        (Language::Go, Weigher) => (
            GO_REQUEST,
            include_str!("../templates/go-weigher/abi.go.in"),
        ),
        (Language::Go, Filter) => (GO_REQUEST, include_str!("../templates/go-filter/abi.go.in")),
        (Language::Go, CostModule) => ("", include_str!("../templates/go-cost/abi.go.in")),
        (Language::Rust | Language::Python, _) => ("", ""),
    };
    format!("{of_request}{own}")
}
