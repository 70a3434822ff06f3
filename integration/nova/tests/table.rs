//! The columns decide as the hosts one by one do, to the last bit, whatever the cloud and the
//! request are like.

#![allow(
    clippy::unwrap_used,
    reason = "a test program: what is missing shall fail loudly"
)]

use ebbtide_nova::hosts::new_state;
use ebbtide_nova::image::Image;
use ebbtide_nova::model::{
    Aggregate, Flavor, HostState, InstanceFacts, InstanceGroup, Metric, Options, OrderedMap,
    PciPool, RequestSpec, Service,
};
use ebbtide_nova::python::json;
use ebbtide_nova::table::{CloudTable, DecideFault, Decision};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Noon, in microseconds since 1970.
const NOW: i64 = 1_772_366_400_000_000;

const FILTERS: [&str; 20] = [
    "AggregateImagePropertiesIsolation",
    "AggregateInstanceExtraSpecsFilter",
    "AggregateIoOpsFilter",
    "AggregateMultiTenancyIsolation",
    "AggregateNumInstancesFilter",
    "AggregateTypeAffinityFilter",
    "AllHostsFilter",
    "ComputeCapabilitiesFilter",
    "ComputeFilter",
    "DifferentHostFilter",
    "ImagePropertiesFilter",
    "IoOpsFilter",
    "IsolatedHostsFilter",
    "MetricsFilter",
    "NUMATopologyFilter",
    "NumInstancesFilter",
    "PciPassthroughFilter",
    "SameHostFilter",
    "ServerGroupAffinityFilter",
    "ServerGroupAntiAffinityFilter",
];

fn aggregates() -> impl Strategy<Value = Vec<(BTreeMap<String, String>, u64)>> {
    let key = select(vec![
        "ram_weight_multiplier",
        "cpu_weight_multiplier",
        "build_failure_weight_multiplier",
        "ssd",
        "filter_tenant_id",
        "instance_type",
        "os_distro",
        "max_io_ops_per_host",
        "max_instances_per_host",
    ]);
    let value = select(vec![
        "2", "-1.5", "0", "x", "p1", "p1, p2", "small", "true", "ubuntu", "4", "inf",
    ]);
    let metadata = prop::collection::btree_map(
        key.prop_map(str::to_owned),
        value.prop_map(str::to_owned),
        0..3,
    );
    prop::collection::vec((metadata, any::<u64>()), 0..4)
}

#[derive(Debug, Clone)]
struct Host {
    numbers: (i64, i64, i64, i64, i64, i64),
    version: i64,
    ratio: Option<f64>,
    service: (bool, i64),
    hypervisor: &'static str,
    kind: usize,
    instances: Vec<u8>,
    devices: i64,
    metric: Option<f64>,
    never_updated: bool,
}

fn host() -> impl Strategy<Value = Host> {
    (
        (
            -5_i64..60,
            -9_i64..9,
            0_i64..70,
            0_i64..6,
            0_i64..4,
            0_i64..3,
        ),
        select(vec![0, 6_002_000, 7_002_000, 8_002_000]),
        prop_oneof![30 => select(vec![1.0, 4.0, 16.0, 0.3]).prop_map(Some), 1 => Just(None)],
        (prop::bool::weighted(0.1), -80_i64..20),
        select(vec!["QEMU", "ironic"]),
        (0_usize..3, prop::collection::vec(0_u8..8, 0..4)),
        prop_oneof![3 => Just(0_i64), 1 => 0_i64..150],
        prop_oneof![1 => Just(None), 9 => (0_i32..100).prop_map(|m| Some(f64::from(m)))],
        prop::bool::weighted(0.005),
    )
        .prop_map(
            |(
                numbers,
                version,
                ratio,
                service,
                hypervisor,
                (kind, instances),
                devices,
                metric,
                never_updated,
            )| Host {
                numbers,
                version,
                ratio,
                service,
                hypervisor,
                kind,
                instances,
                devices,
                metric,
                never_updated,
            },
        )
}

fn uuid(number: u8) -> String {
    format!("20000000-0000-4000-8000-0000000000{number:02}")
}

fn state(at: usize, host: &Host, all: &[(Arc<Aggregate>, u64)]) -> HostState {
    let mut state = new_state(&format!("host{at}"), &format!("node{at}"), "cell");
    state.service = Service {
        disabled: host.service.0,
        last_seen_up: Some(NOW + host.service.1 * 1_000_000),
        ..Service::default()
    };
    let member = |set: u64| set >> (at % 64) & 1 == 1;
    state.aggregates = all
        .iter()
        .filter(|(_, set)| member(*set))
        .map(|(a, _)| a.clone())
        .collect();
    state.instances = host
        .instances
        .iter()
        .map(|n| (uuid(*n), InstanceFacts::default()))
        .collect::<BTreeMap<_, _>>()
        .into();
    if host.never_updated {
        return state;
    }
    let (ram, disk, used, instances, io, failed) = host.numbers;
    let triple = |arch: &str, hv: &str| {
        vec![
            Some(arch.to_owned()),
            Some(hv.to_owned()),
            Some("hvm".to_owned()),
        ]
    };
    state.uuid = Some(format!("10000000-0000-4000-8000-{at:012}"));
    state.free_ram_mb = Some(ram * 512);
    state.free_disk_mb = disk * 1024;
    state.vcpus_total = 32;
    state.vcpus_used = used;
    state.num_instances = instances;
    state.num_io_ops = io;
    state.failed_builds = failed;
    state.hypervisor_version = Some(host.version);
    state.hypervisor_type = Some(host.hypervisor.to_owned());
    state.cpu_allocation_ratio = host.ratio;
    state.ram_allocation_ratio = Some(1.0);
    state.disk_allocation_ratio = Some(1.0);
    state.supported_instances = Some(match host.kind {
        0 => vec![triple("x86_64", "kvm"), triple("i686", "qemu")],
        1 => vec![triple("aarch64", "kvm")],
        _ => Vec::new(),
    });
    state.stats = Some([("num_instances".to_owned(), Some(instances.to_string()))].into());
    state.metrics = Some(
        host.metric
            .into_iter()
            .map(|value| Metric {
                name: "cpu.percent".to_owned(),
                value: Some(value),
            })
            .collect(),
    );
    state.pci_pools = Some(vec![PciPool {
        vendor_id: "8086".to_owned(),
        product_id: "1".to_owned(),
        numa_node: None,
        count: host.devices,
        tags: BTreeMap::new(),
    }]);
    state
}

fn options() -> impl Strategy<Value = Options> {
    let multiplier = || select(vec![1.0, 0.0, -2.5, 0.1, 1e6]);
    let filters = prop_oneof![
        1 => Just(Options::default().enabled_filters),
        2 => subsequence(FILTERS.to_vec(), 0..8).prop_shuffle()
            .prop_map(|names| names.into_iter().map(str::to_owned).collect()),
    ];
    let weighers = Options::default().weighers;
    let weighers = prop_oneof![
        1 => Just(weighers.clone()),
        1 => subsequence(weighers.clone(), 0..=weighers.len()).prop_shuffle(),
    ];
    (
        filters,
        weighers,
        multiplier(),
        multiplier(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |(filters, weighers, ram, instances, measured, lenient)| Options {
                enabled_filters: filters,
                weighers,
                ram_weight_multiplier: Some(ram),
                num_instances_weight_multiplier: Some(instances),
                metrics_weight_setting: if measured {
                    vec![("cpu.percent".to_owned(), -0.5)]
                } else {
                    Vec::new()
                },
                metrics_required: !lenient,
                ..Options::default()
            },
        )
}

fn request() -> impl Strategy<Value = RequestSpec> {
    let specs = prop::collection::vec(
        select(vec![
            ("capabilities:vcpus_total", ">= 16"),
            ("capabilities:free_ram_mb", ">= 4096"),
            ("capabilities:hypervisor_type", "s== QEMU"),
            ("capabilities:num_instances", "<= x"),
            ("num_io_ops", "<= 2"),
            ("ssd", "true"),
            ("hw:watchdog_action", "reset"),
            ("capabilities:nothing", "1"),
        ]),
        0..3,
    );
    let image = select(vec![
        "{}",
        r#"{"hw_architecture":"x86_64"}"#,
        r#"{"hw_architecture":"x86_64","img_hv_type":"kvm","img_hv_requested_version":">=7.0"}"#,
        r#"{"os_distro":"ubuntu"}"#,
        r#"{"hw_architecture":"x86_64","hw_maxphysaddr_bits":40}"#,
    ]);
    let policy = select(vec![
        "affinity",
        "anti-affinity",
        "soft-affinity",
        "soft-anti-affinity",
    ]);
    let group = (
        policy,
        prop::collection::vec(0_u8..8, 0..5),
        prop::collection::vec(0_usize..20, 0..4),
        select(vec!["", "1", "2", "0", "x"]),
    );
    let hint = select(vec![
        None,
        Some("same_host"),
        Some("different_host"),
        Some("_nova_check_type"),
    ]);
    (
        specs,
        image,
        prop::option::weighted(0.4, group),
        hint,
        prop::option::weighted(0.2, 0_usize..20),
        any::<bool>(),
    )
        .prop_map(|(specs, image, group, hint, named, forced)| {
            let image = format!(r#"{{"id":"i","properties":{image}}}"#);
            let names = named.map(|at| vec![format!("HOST{at}"), "host1".to_owned()]);
            RequestSpec {
                instance_uuid: uuid(3),
                num_instances: 1,
                project_id: Some("p1".to_owned()),
                flavor: Flavor {
                    name: "small".to_owned(),
                    extra_specs: Some(
                        specs
                            .into_iter()
                            .map(|(k, v)| (k, v.to_owned()))
                            .collect::<OrderedMap<String>>(),
                    ),
                    ..Flavor::default()
                },
                image: Some(Image::read(&json::loads(&image).unwrap()).unwrap()),
                instance_group: group.map(|(policy, members, hosts, limit)| InstanceGroup {
                    uuid: "g".to_owned(),
                    policy: policy.to_owned(),
                    rules: (!limit.is_empty())
                        .then(|| ("max_server_per_host".to_owned(), limit.to_owned()))
                        .into_iter()
                        .collect(),
                    members: members.into_iter().map(uuid).collect(),
                    hosts: hosts.into_iter().map(|at| format!("host{at}")).collect(),
                }),
                scheduler_hints: Some(
                    hint.map(|name| (name.to_owned(), vec![uuid(2)]))
                        .into_iter()
                        .collect(),
                ),
                force_hosts: names.clone().filter(|_| forced),
                ignore_hosts: names.filter(|_| !forced),
                ..RequestSpec::default()
            }
        })
}

type Bits = Result<(usize, Vec<(usize, u64)>), DecideFault>;

fn bits(decision: Result<Decision, DecideFault>) -> Bits {
    decision.map(|d| {
        (
            d.passing,
            d.best
                .into_iter()
                .map(|(at, total)| (at, total.to_bits()))
                .collect(),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn columns_decide_as_the_hosts_one_by_one_do(
        aggregates in aggregates(),
        hosts in prop::collection::vec(host(), 0..90),
        options in options(),
        requests in prop::collection::vec(request(), 1..4),
        top in select(vec![1, 3, 20, usize::MAX]),
        changes in prop::collection::vec((0_usize..90, prop::option::weighted(0.8, host())), 0..30),
    ) {
        let all: Vec<(Arc<Aggregate>, u64)> = aggregates
            .into_iter()
            .enumerate()
            .map(|(at, (metadata, set))| {
                let aggregate = Aggregate {
                    id: at as i64,
                    uuid: format!("a{at}"),
                    name: format!("a{at}"),
                    hosts: Vec::new(),
                    metadata,
                };
                (Arc::new(aggregate), set)
            })
            .collect();
        let states: Vec<HostState> = hosts.iter().enumerate().map(|(at, h)| state(at, h, &all)).collect();
        let mut cloud = CloudTable::new(states, options, NOW);
        // One cloud answers several requests: none leaves anything behind.
        for spec in &requests {
            let reference = bits(cloud.reference(spec, top));
            prop_assert_eq!(bits(cloud.decide(spec, top)), reference);
        }
        // Hosts change, come and go; what is kept ready follows them.
        for (at, change) in changes {
            match change {
                Some(host) if cloud.known().has(at) => cloud.put(at, state(at, &host, &all)),
                Some(host) => drop(cloud.add(state(at, &host, &all))),
                None => cloud.remove(at),
            }
        }
        for spec in &requests {
            let reference = bits(cloud.reference(spec, top));
            prop_assert_eq!(bits(cloud.decide(spec, top)), reference);
        }
    }
}
