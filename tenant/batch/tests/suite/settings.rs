//! The operator's file.

use crate::sim::SETTINGS;
use ebbtide_batch::BatchSettings;

fn refused(from: &str, to: &str, key: &str) {
    assert!(SETTINGS.contains(from), "{from}");
    let error = BatchSettings::parse(&SETTINGS.replacen(from, to, 1)).unwrap_err();
    assert_eq!(error.code(), "EB-BATCH-001");
    assert!(error.to_string().contains(key), "{error}: {key}");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_key() {
    BatchSettings::parse(SETTINGS).unwrap();
    refused(
        "listen = \"unix:/run/ebbtide-batch.sock\"",
        "listen = \"localhost\"",
        "listen",
    );
    refused(
        "listen = \"unix:/run/ebbtide-batch.sock\"",
        "listen = \"127.0.0.1:80\"",
        "token_file",
    );
    refused(
        "spare_seconds = 10",
        "spare_seconds = -1",
        "policy.spare_seconds",
    );
    refused("nodes = \"d[1-2]\"", "nodes = \"p4\"", "types.normal.nodes");
    refused("name = \"normal\"", "name = \"spot\"", "types.spot.name");
    refused(
        "price = \"0.30\"",
        "price = \"0.30\"\nmodel = \"uniform:max=24\"",
        "types.normal.model",
    );
    refused(
        "model = \"uniform:max=24\"",
        "model = \"odd:max=1\"",
        "types.spot.model",
    );
    refused(
        "project = \"batch\"",
        "project = \"batch\"\nflavor = \"x\"",
        "region.flavor",
    );
    refused("vcpus = 2", "vcpus = 0", "types.spot.vcpus");
    refused("[slurm]", "[slurm]\nodd = 1", "odd");
    refused(
        "[region]",
        "[openstack]\nimage = \"i\"\n[region]",
        "openstack",
    );
}

/// The keys that a table of the file may have, out of the message about one that it may not.
fn accepted(section: &str) -> Vec<String> {
    let text = match section {
        "" => SETTINGS.replacen("state_dir", "odd_key = 1\nstate_dir", 1),
        "types" => SETTINGS.replacen("[[types]]", "[[types]]\nodd_key = 1", 1),
        other => {
            let head = format!("[{other}]");
            SETTINGS.replacen(&head, &format!("{head}\nodd_key = 1"), 1)
        }
    };
    let error = BatchSettings::parse(&text).unwrap_err().to_string();
    let (_, list) = error.split_once("expected one of ").unwrap();
    let names = list.split('`').skip(1).step_by(2);
    let prefix = if section.is_empty() {
        String::new()
    } else {
        format!("{section}.")
    };
    names.map(|name| format!("{prefix}{name}")).collect()
}

#[test]
fn the_table_of_the_document_names_exactly_the_keys_that_are_accepted() {
    let page = include_str!("../../../../docs/tenants/batch.md");
    let (_, table) = page.split_once("| `state_dir` |").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let table = format!("| `state_dir` |{table}");
    let mut named: Vec<String> = Vec::new();
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        let first = row.split('|').nth(1).unwrap();
        named.extend(first.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    named.sort();
    let clouds = ["slurm", "types", "policy"];
    let mut all: Vec<String> = ["", "slurm", "types", "policy"]
        .into_iter()
        .flat_map(accepted)
        .collect();
    // The tables themselves, but for those whose keys stand in this table.
    all.retain(|key| !clouds.contains(&key.as_str()));
    all.sort();
    assert_eq!(named, all);
}
