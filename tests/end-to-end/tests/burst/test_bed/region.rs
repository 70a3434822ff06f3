//! The region of a test bed.

use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;

/// Three hosts, each for two nodes; normal servers are as large as nodes.
pub(super) const HOSTS: [&str; 3] = ["host-A", "host-B", "host-C"];

/// A region with these hosts; `sections` is added to its settings.
pub(super) async fn region_of(hosts: &[&str], sections: &str) -> Region {
    let options = RegionOptions {
        // The programs beside slurmctld find a region again that was away.
        grpc_port: ebbtide_harness::free_port().unwrap(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        sections: sections.to_owned(),
        region: "comeback = { first_seconds = 1, max_seconds = 2, reserve_percent = 0 }".to_owned(),
        ..Default::default()
    };
    let region = Region::start(options).await.unwrap();
    let mut admin = region.admin().await.unwrap();
    for (name, specs) in [
        (
            "p.node",
            &[
                ("ebbtide:preemptible", "true"),
                // Long enough for a busy machine to start a service within it; what has saved its
                // work gives the rest back.
                ("ebbtide:grace_seconds", "20"),
                ("ebbtide:price_per_hour", "0.10"),
            ][..],
        ),
        (
            "p.sleep",
            &[
                ("ebbtide:preemptible", "true"),
                ("ebbtide:interruption", "hibernate"),
                ("ebbtide:grace_seconds", "0"),
            ],
        ),
        ("node", &[]),
    ] {
        let flavor = v1::Flavor {
            name: name.to_owned(),
            vcpus: 4,
            ram_mb: 4_000,
            disk_gb: 20,
            extra_specs: specs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..Default::default()
        };
        let flavor = Some(flavor);
        admin
            .create_flavor(v1::CreateFlavorRequest { flavor })
            .await
            .unwrap();
    }
    region
}
