//! How long a normal request for GPUs takes that has to evict preemptible servers: what
//! `Cloud::ask` and `Cloud::decide_once` take together, the calls that serve a request.
//!
//! `cargo bench -p ebbtide-nova-cloud --bench gpus [-- --hosts N --requests N --only TEXT]`. With
//! `--simple` every host is asked, which is the reference: the first plan of each case is compared
//! with the plan that comes of it. Servers were launched at any second of the last 100 hours; with
//! `--whole-minutes` at whole minutes, so that one sixtieth of them costs the same.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark: it measures time and prints a table"
)]

#[path = "../tests/cloud/kit.rs"]
mod kit;

use ebbtide_nova::model::{
    InstanceNumaCell, InstanceNumaTopology, NumaCell, NumaTopology, Options, PagesTopology,
    PciDevice, PciPool, PciRequest, RequestSpec,
};
use ebbtide_nova::numa;
use ebbtide_nova_cloud::{Cloud, CloudSettings, HeldFacts, HeldResources, OnePass, PlanOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const GPUS: i64 = 8;
const VENDOR: &str = "10de";
const PRODUCT: &str = "2330";
/// CPUs of a host; a GPU's share of them is an eighth.
const VCPUS: i64 = 64;
const WARM_UP: usize = 5;

/// How the hosts of a cloud are.
#[derive(Clone, Copy)]
struct Shape {
    hosts: u128,
    /// Seconds between the times at which servers can have been launched. Nova keeps seconds.
    every: i64,
    /// CPUs of a server for each of its GPUs: 8 leave none on a full host, 4 leave half.
    cpus: i64,
    /// Servers are pinned to the cells of their GPUs.
    pinned: bool,
}

/// The same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn options() -> Options {
    let mut options = Options::default();
    let both = ["NUMATopologyFilter", "PciPassthroughFilter"];
    options.enabled_filters.extend(both.map(str::to_owned));
    options
}

/// Every second host has two cells, and says which GPU is near to which.
fn has_cells(host: u128) -> bool {
    host % 2 == 1
}

fn device(host: u128, number: i64) -> PciDevice {
    PciDevice {
        address: format!("0000:{number:02x}:00.0"),
        parent_addr: None,
        vendor_id: VENDOR.to_owned(),
        product_id: PRODUCT.to_owned(),
        dev_type: "type-PCI".to_owned(),
        numa_node: has_cells(host).then_some(number / 4),
        parent_ifname: None,
    }
}

/// Pools whose devices are all in use.
fn pools(host: u128) -> Vec<PciPool> {
    let nodes = if has_cells(host) {
        vec![Some(0), Some(1)]
    } else {
        vec![None]
    };
    let pool = |numa_node| PciPool {
        vendor_id: VENDOR.to_owned(),
        product_id: PRODUCT.to_owned(),
        numa_node,
        count: 0,
        tags: BTreeMap::from([("dev_type".to_owned(), "type-PCI".into())]),
    };
    nodes.into_iter().map(pool).collect()
}

fn cells() -> NumaTopology {
    let cell = |id: i64| NumaCell {
        id,
        cpuset: BTreeSet::new(),
        pcpuset: (id * 32..id * 32 + 32).collect(),
        memory: 64_000,
        cpu_usage: 0,
        memory_usage: 0,
        pinned_cpus: BTreeSet::new(),
        siblings: (id * 32..id * 32 + 32)
            .map(|cpu| [cpu].into_iter().collect())
            .collect(),
        mempages: vec![PagesTopology {
            size_kb: 4,
            total: 64_000 * 256,
            used: 0,
            reserved: 0,
        }],
        socket: Some(id),
        network_metadata: None,
    };
    NumaTopology {
        cells: vec![cell(0), cell(1)],
    }
}

/// A guest's cell on so many CPUs from a number on; `None`: not placed yet.
fn guest_cell(id: i64, cpus: i64, on: Option<i64>) -> InstanceNumaCell {
    InstanceNumaCell {
        id,
        cpuset: BTreeSet::new(),
        pcpuset: (0..cpus).collect(),
        memory: cpus * 2000,
        pagesize: None,
        cpu_policy: Some("dedicated".to_owned()),
        cpu_thread_policy: None,
        cpuset_reserved: None,
        cpu_pinning: on.map(|first| (0..cpus).map(|cpu| (cpu, first + cpu)).collect()),
    }
}

/// The cells of a server with these GPUs.
fn held_cells(first: i64, gpus: i64, cpus: i64) -> InstanceNumaTopology {
    let per_cell = gpus.min(4);
    let cells = (first / 4..(first + gpus - 1) / 4 + 1).map(|node| {
        let on = node * 32 + first % 4 * 8;
        guest_cell(node, per_cell * cpus, Some(on))
    });
    InstanceNumaTopology {
        cells: cells.collect(),
        emulator_threads_policy: None,
    }
}

/// Every GPU of every host belongs to a preemptible server of one to eight.
fn full(shape: Shape) -> Cloud {
    let hosts = usize::try_from(shape.hosts).unwrap();
    let mut cloud = kit::cloud_of(&vec![VCPUS; hosts], options(), CloudSettings::default());
    let mut numbers = Numbers(28);
    let mut server = 0;
    for host in 0..shape.hosts {
        let mut topology = has_cells(host).then(cells);
        let mut first = 0;
        while first < GPUS {
            // A server's GPUs are in one cell, or all there are.
            let most = if first == 0 { 4 } else { 3 };
            let gpus = [1, 2, 4, 8][usize::try_from(numbers.below(most)).unwrap()];
            let gpus = if first % gpus == 0 && first + gpus <= GPUS {
                gpus
            } else {
                1
            };
            let mut record = kit::instance(server, host, gpus * shape.cpus, 0, true);
            let seconds = i64::try_from(numbers.below(360_000)).unwrap() / shape.every;
            record.launched_at = Some(kit::NOW - seconds * shape.every * 1_000_000);
            let pinned = shape.pinned && has_cells(host);
            let own = pinned.then(|| held_cells(first, gpus, shape.cpus));
            if let (Some(topology), Some(own)) = (&mut topology, &own) {
                *topology = numa::usage_with(topology, own).unwrap();
            }
            record.held = HeldFacts::Held(Arc::new(HeldResources {
                numa_topology: own,
                pci_devices: (first..first + gpus).map(|n| device(host, n)).collect(),
                fault: None,
            }));
            kit::settle(&mut cloud, record);
            server += 1;
            first += gpus;
        }
        let mut compute = kit::compute(host, VCPUS);
        compute.row.numa_topology = topology;
        compute.row.pci_pools = pools(host);
        cloud.put_compute(compute).unwrap();
    }
    cloud
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Ask {
    gpus: i64,
    policy: Option<&'static str>,
    /// The guest has one cell with dedicated CPUs.
    cell: bool,
}

fn with_gpus(spec: &mut RequestSpec, ask: Ask, cpus: i64) {
    let tags = [("vendor_id", VENDOR), ("product_id", PRODUCT)];
    spec.pci_requests = Some(vec![PciRequest {
        count: ask.gpus,
        spec: vec![
            tags.map(|(key, value)| (key.to_owned(), value.into()))
                .into(),
        ],
        alias_name: Some("gpu".to_owned()),
        request_id: Some("r".to_owned()),
        requester_id: None,
        numa_policy: ask.policy.map(str::to_owned),
    }]);
    spec.numa_topology = ask.cell.then(|| InstanceNumaTopology {
        cells: vec![guest_cell(0, ask.gpus * cpus, None)],
        emulator_threads_policy: None,
    });
}

/// One request, from the question to the plan.
fn serve(cloud: &Cloud, ask: Ask, cpus: i64, number: usize) -> (Duration, OnePass) {
    let (mut spec, call) = kit::request(ask.gpus * cpus, 1);
    with_gpus(&mut spec, ask, cpus);
    // Not so much later that a heartbeat is missing: other victims are the cheapest.
    let now = kit::NOW + i64::try_from(number * 7 % 40).unwrap() * 1_000_000;
    let options = PlanOptions::default();
    let begin = Instant::now();
    let asked = cloud.ask(&mut spec).unwrap();
    let pass = cloud
        .decide_once(&spec, &call, &asked, now, None, Some(&options))
        .unwrap();
    let taken = begin.elapsed();
    let plan = pass.victims.as_ref().unwrap().as_ref().unwrap();
    assert!(plan.optimal && !plan.victims.is_empty());
    (taken, black_box(pass))
}

/// Processor time of this thread in nanoseconds. Linux updates it a few hundred times a second, so
/// only that of many requests says something.
fn processor_time() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    told.split(' ').next().unwrap().parse().unwrap()
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let number = |name: &str, other: u32| {
        argument(name).map_or(other, |number| number.parse::<u32>().unwrap())
    };
    let hosts = u128::from(number("--hosts", 10_000));
    let requests = usize::try_from(number("--requests", 100)).unwrap();
    let only = argument("--only").unwrap_or_default();
    let simple = std::env::args().any(|argument| argument == "--simple");
    let whole_minutes = std::env::args().any(|argument| argument == "--whole-minutes");
    let clouds = [
        ("everything full", 8, false),
        ("half of the CPUs free", 4, false),
        ("pinned, everything full", 8, true),
    ];
    println!("| hosts | cloud | request | p50 | p99 | max | CPU, mean | victims |");
    println!("|---|---|---|---|---|---|---|---|");
    for (name, cpus, pinned) in clouds {
        let asks = if pinned {
            vec![(1, Some("required"), true), (4, Some("preferred"), true)]
        } else {
            let policies = [None, Some("required")];
            let counts = [1, 2, 8].into_iter();
            counts
                .flat_map(|gpus| policies.map(|policy| (gpus, policy, false)))
                .collect()
        };
        let told = |(gpus, policy, cell): (i64, Option<&str>, bool)| {
            let policy = policy.map_or(String::new(), |policy| format!(", {policy}"));
            let cell = if cell { ", one cell" } else { "" };
            format!("{gpus} GPUs{policy}{cell}")
        };
        let line = |ask: &(i64, Option<&str>, bool)| format!("{name}: {}", told(*ask));
        if !asks.iter().any(|ask| line(ask).contains(&only)) {
            continue;
        }
        let mut cloud = full(Shape {
            hosts,
            every: if whole_minutes { 60 } else { 1 },
            cpus,
            pinned,
        });
        cloud.decide_simply(simple);
        // No request has asked for such devices yet.
        let mut first = None;
        for &(gpus, policy, cell) in asks.iter().filter(|ask| line(ask).contains(&only)) {
            let ask = Ask { gpus, policy, cell };
            let mut times = Vec::new();
            let mut victims = 0;
            let (cold, pass) = serve(&cloud, ask, cpus, 0);
            first.get_or_insert(cold);
            cloud.decide_simply(true);
            let (_, reference) = serve(&cloud, ask, cpus, 0);
            cloud.decide_simply(simple);
            assert_eq!(pass.victims, reference.victims);
            for request in 0..WARM_UP {
                serve(&cloud, ask, cpus, request);
            }
            let begin = processor_time();
            for request in 0..requests {
                let (taken, pass) = serve(&cloud, ask, cpus, request);
                times.push(taken);
                victims += pass.victims.unwrap().unwrap().victims.len();
            }
            let mean = Duration::from_nanos((processor_time() - begin) / requests as u64);
            times.sort_unstable();
            let rank = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
            println!(
                "| {hosts} | {name} | {} | {:.2?} | {:.2?} | {:.2?} | {mean:.2?} | {:.2} |",
                told((gpus, policy, cell)),
                rank(50),
                rank(99),
                rank(100),
                victims as f64 / times.len() as f64
            );
        }
        println!(
            "First request for such devices, {name}: {:.2?}",
            first.unwrap_or_default()
        );
    }
}
