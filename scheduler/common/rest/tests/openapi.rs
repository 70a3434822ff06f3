//! The OpenAPI document that is committed.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

#[test]
fn the_committed_document_is_that_of_the_contracts() {
    let path = root().join("docs/reference/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap();
    let document = ebbtide_rest::openapi::document().unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    assert!(
        committed == text,
        "docs/reference/openapi.json is old: \
         cargo run -p ebbtide-rest --example openapi >docs/reference/openapi.json"
    );
}

#[test]
fn a_validator_of_others_takes_the_document() {
    let script = root().join("devstack/lib/openapi.sh");
    let output = Command::new("bash").arg(script).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_page_has_every_route() {
    let page = std::fs::read_to_string(root().join("docs/reference/rest.md")).unwrap();
    for route in ebbtide_rest::ROUTES {
        let mut path = String::new();
        for part in route.path.split_inclusive('}') {
            // `{name=field}` is `{name}` for users.
            let plain = part
                .split_once('=')
                .map(|(before, _)| format!("{before}}}"));
            path.push_str(plain.as_deref().unwrap_or(part));
        }
        let row = format!("| `{} {path}` | `{}` |", route.method, route.rpc);
        assert!(page.contains(&row), "docs/reference/rest.md lacks {row}");
    }
}
