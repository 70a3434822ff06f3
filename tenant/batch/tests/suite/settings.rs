//! The operator's file.

use crate::sim::SETTINGS;
use ebbtide_batch::BatchSettings;
use std::path::{Path, PathBuf};

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
        "unknown field `flavor`",
    );
    refused("vcpus = 2", "vcpus = 0", "types.spot.vcpus");
    refused("[slurm]", "[slurm]\nodd = 1", "odd");
    refused(
        "[region]",
        "[openstack]\nimage = \"i\"\n[region]",
        "openstack",
    );
}

#[test]
fn a_file_from_elsewhere_goes_before_that_of_the_text() {
    let text = SETTINGS.replacen("[slurm]", "token_file = \"/etc/token\"\n[slurm]", 1);
    let file_of = |key: &str| Some(PathBuf::from(format!("/run/credentials/{key}")));
    let settings = BatchSettings::parse_with(&text, file_of).unwrap();
    let region = settings.region.unwrap();
    for (file, expected) in [
        (settings.token_file, "/run/credentials/token_file"),
        (region.token_file, "/run/credentials/region.token_file"),
    ] {
        assert_eq!(file.unwrap(), Path::new(expected));
    }
    let settings = BatchSettings::parse(&text).unwrap();
    assert_eq!(settings.token_file.unwrap(), Path::new("/etc/token"));
    // With a token over TCP is no problem.
    let tcp = SETTINGS.replacen("unix:/run/ebbtide-batch.sock", "127.0.0.1:7474", 1);
    BatchSettings::parse_with(&tcp, file_of).unwrap();
}

/// The file of the package: what is commented out in it can be used as it is.
#[test]
fn the_packaged_file_has_only_keys_that_are_accepted() {
    let packaged = include_str!("../../../../packaging/config/batch.toml");
    let uncommented: String = packaged
        .lines()
        .map(|line| match line.strip_prefix('#') {
            // Prose begins with a space.
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    // One of the two clouds.
    let (before, openstack) = uncommented.split_once("[openstack]").unwrap();
    let (openstack, after) = openstack.split_once("\n[[types]]").unwrap();
    let (region, types) = (before, format!("[[types]]{after}"));
    BatchSettings::parse(&format!("{region}{types}")).unwrap();
    let (head, _) = region.split_once("[region]").unwrap();
    let with_openstack = format!("{head}[openstack]{openstack}\n{types}");
    let settings = BatchSettings::parse(&with_openstack).unwrap();
    assert_eq!(settings.http.listen.unwrap().port(), 7473);
    let untouched = BatchSettings::parse(packaged).unwrap_err();
    assert_eq!(untouched.code(), "EB-BATCH-001", "{untouched}");
}

/// A file with an elastic partition alone.
const ELASTIC: &str = r#"
state_dir = "/var/lib/ebbtide-batch"
listen = "unix:/run/ebbtide-batch.sock"
[slurm]
[region]
endpoint = "http://127.0.0.1:7470"
project = "batch"
[elastic]
nodes = "c[1-6]"
flavor = "p.node"
long_partitions = ["long"]
short_servers = 2
on_demand_price = "0.30"
preemptible_price = "0.10"
threshold = 0.25
margin_seconds = 3
[elastic.age]
"#;

#[test]
fn what_cannot_be_used_of_an_elastic_partition_is_refused_with_its_key() {
    let settings = BatchSettings::parse(ELASTIC).unwrap();
    assert_eq!(settings.groups().unwrap()[0].nodes.len(), 6);
    assert!(settings.server_types().unwrap().is_empty());
    for (from, to, words) in [
        ("threshold = 0.25", "threshold = 2.0", "threshold"),
        ("c[1-6]", "c[1-3]", "declare more in slurm.conf"),
        ("c[1-6]", "", "elastic.nodes"),
        ("c[1-6]", "c[1-", "the list of hosts"),
        ("long_partitions = [\"long\"]", "", "which jobs are long"),
        (
            "price = \"0.10\"",
            "price = \"0\"",
            "elastic.preemptible_price",
        ),
        ("price = \"0.10\"", "price = \"0.40\"", "price ratio"),
        (
            "margin_seconds = 3",
            "margin_seconds = -1",
            "elastic.margin_seconds",
        ),
        ("margin_seconds = 3", "margin_secnds = 3", "margin_secnds"),
        ("short_servers = 2", "short_servers = 0", "short jobs only"),
        ("flavor = \"p.node\"", "", "flavor"),
        (
            "[elastic.age]",
            "[elastic.age]\njob_hours = [1]",
            "elastic.age.features",
        ),
        (
            "[elastic.age]",
            "[elastic.age]\nmodel = \"marble:a=1\"",
            "marble",
        ),
    ] {
        assert!(ELASTIC.contains(from), "{from}");
        let error = BatchSettings::parse(&ELASTIC.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.code(), "EB-BATCH-001");
        assert!(error.to_string().contains(words), "{error}: {words}");
    }
    let both = |nodes: &str| {
        let (_, elastic) = ELASTIC.split_once("[elastic]").unwrap();
        let table = format!("[elastic]{}", elastic.replace("c[1-6]", nodes));
        BatchSettings::parse(&SETTINGS.replacen("[policy]", &format!("{table}[policy]"), 1))
    };
    both("c[1-6]").unwrap();
    let error = both("c[1-6],p4").unwrap_err().to_string();
    assert!(
        error.contains("elastic.nodes: p4 is a node of the type spot"),
        "{error}"
    );
}

#[test]
fn a_file_of_the_program_that_is_no_more_is_told_where_its_keys_have_gone() {
    let old = "state_dir = \"/var/lib/ebbtide-burst\"\n[slurm]\nnodes = \"c[1-6]\"\n[policy]\nshort_servers = 2\n";
    let error = BatchSettings::parse(old).unwrap_err().to_string();
    assert!(
        error.contains("ebbtide-burst") && error.contains("[elastic]"),
        "{error}"
    );
}

/// The keys that a table of the file may have, out of the message about one that it may not.
fn accepted(section: &str) -> Vec<String> {
    let text = match section {
        "" => SETTINGS.replacen("state_dir", "odd_key = 1\nstate_dir", 1),
        "types" => SETTINGS.replacen("[[types]]", "[[types]]\nodd_key = 1", 1),
        "openstack" | "http" => format!("{SETTINGS}[{section}]\nodd_key = 1"),
        "elastic" | "elastic.age" => {
            let head = format!("[{section}]");
            ELASTIC.replacen(&head, &format!("{head}\nodd_key = 1"), 1)
        }
        other => {
            let head = format!("[{other}]");
            SETTINGS.replacen(&head, &format!("{head}\nodd_key = 1"), 1)
        }
    };
    let error = BatchSettings::parse(&text).unwrap_err().to_string();
    let (_, list) = error.split_once(", expected ").unwrap();
    let names = list.split('`').skip(1).step_by(2);
    let prefix = if section.is_empty() {
        String::new()
    } else {
        format!("{section}.")
    };
    names.map(|name| format!("{prefix}{name}")).collect()
}

#[test]
fn the_tables_of_the_documents_name_exactly_the_keys_that_are_accepted() {
    let mut named: Vec<String> = Vec::new();
    for (page, begin) in [
        (
            include_str!("../../../../docs/tenants/batch.md"),
            "## All keys of batch.toml",
        ),
        (
            include_str!("../../../../docs/tenants/burst.md"),
            "## All keys of the table",
        ),
    ] {
        let (_, table) = page.split_once(begin).unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        for row in table.lines().filter(|row| row.starts_with("| `")) {
            let first = row.split('|').nth(1).unwrap();
            named.extend(first.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    named.sort();
    let tables = [
        "http",
        "slurm",
        "region",
        "openstack",
        "types",
        "elastic",
        "elastic.age",
        "policy",
    ];
    let mut all: Vec<String> = accepted("");
    all.extend(tables.into_iter().flat_map(accepted));
    // Not the tables themselves.
    all.retain(|key| !tables.contains(&key.as_str()));
    named.retain(|key| !tables.contains(&key.as_str()));
    all.sort();
    assert_eq!(named, all);
}
