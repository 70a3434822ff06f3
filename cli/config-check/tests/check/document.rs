//! The page of all keys.

use std::path::Path;

#[test]
fn the_page_of_all_keys_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == ebbtide_config_check::markdown(),
        "docs/configuration.md is not what the registry says; write it with `ebbtide config explain --output markdown > docs/configuration.md`"
    );
}
