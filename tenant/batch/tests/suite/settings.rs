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
