//! Holds what each program of people links, so that a tenant's machine needs no database client.

use std::path::Path;
use std::process::Command;

/// Every crate that a package links, tests and build scripts left out.
fn linked(package: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges=normal", "--prefix=none"])
        .args(["--format={p}", "--package", package])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

fn links(package: &str, names: &[&str]) -> Vec<String> {
    let mut all = linked(package);
    all.retain(|name| names.contains(&name.as_str()));
    all.sort();
    all.dedup();
    all
}

#[test]
fn the_client_links_no_database_no_broker_and_no_engine() {
    let heavy = [
        "ebbtide-engine",
        "ebbtide-solver",
        "lapin",
        "sea-orm",
        "sqlx",
        "wasmtime",
    ];
    for client in ["ebbtide-cli", "ebbtide-burst-service"] {
        assert_eq!(links(client, &heavy), [""; 0], "{client}");
        assert!(links(client, &["tonic"]).len() == 1, "{client}: not read");
    }
    // The same look finds them where they belong.
    assert_eq!(
        links("ebbtide-manage", &["lapin", "sea-orm"]),
        ["lapin", "sea-orm"]
    );
    assert_eq!(
        links("ebbtide-lab", &["ebbtide-engine", "wasmtime"]),
        ["ebbtide-engine", "wasmtime"]
    );
}
