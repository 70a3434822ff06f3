//! Requests for devices and cells: by columns and lower bounds they are decided as host by host, to
//! the last bit of the explanation, while hosts and servers change under the columns.

use crate::kit;
use ebbtide_nova::model::{
    InstanceNumaCell, InstanceNumaTopology, NumaCell, NumaTopology, Options, PciDevice, PciPool,
    PciRequest, RequestSpec,
};
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::{
    ClaimResult, Cloud, CloudSettings, HeldFacts, HeldResources, OnePass, PlanOptions, Scheduling,
    SchedulingAction,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PRODUCTS: [&str; 3] = ["1eb8", "20b0", "2330"];
const VCPUS: i64 = 8;

fn options() -> Options {
    let mut options = Options::default();
    let both = ["NUMATopologyFilter", "PciPassthroughFilter"];
    options.enabled_filters.extend(both.map(str::to_owned));
    options
}

/// A device of a host: its number says its address, product and cell.
fn device(number: usize, dev_type: &str) -> PciDevice {
    PciDevice {
        address: format!("0000:{number:02x}:00.0"),
        parent_addr: None,
        vendor_id: "10de".to_owned(),
        product_id: PRODUCTS[number % 3].to_owned(),
        dev_type: dev_type.to_owned(),
        numa_node: [None, Some(0), Some(1)][number / 3 % 3],
        parent_ifname: None,
    }
}

/// A host's pools: those of a product in a cell are one, or each device has its own.
#[derive(Debug, Clone)]
struct Pools {
    free: BTreeSet<usize>,
    /// Pools without a free device are there.
    empty: bool,
    by_address: bool,
    pf: bool,
}

fn pools(host: &Pools) -> Vec<PciPool> {
    let mut pools: Vec<PciPool> = Vec::new();
    for number in 0..9 {
        let count = i64::from(host.free.contains(&number));
        if count == 0 && !host.empty {
            continue;
        }
        let device = device(number, if host.pf { "type-PF" } else { "type-PCI" });
        let mut tags = BTreeMap::from([("dev_type".to_owned(), device.dev_type.into())]);
        if host.by_address {
            tags.insert("address".to_owned(), device.address.into());
        }
        let pool = PciPool {
            vendor_id: device.vendor_id,
            product_id: device.product_id,
            numa_node: device.numa_node,
            count,
            tags,
        };
        let same = |known: &&mut PciPool| {
            PciPool {
                count,
                ..(**known).clone()
            } == pool
        };
        match pools.iter_mut().find(same) {
            Some(known) => known.count += count,
            None => pools.push(pool),
        }
    }
    pools
}

fn cells() -> NumaTopology {
    let cell = |id: i64| NumaCell {
        id,
        cpuset: BTreeSet::from([id * 4, id * 4 + 1]),
        pcpuset: [id * 4 + 2, id * 4 + 3].into_iter().collect(),
        memory: 16_000,
        cpu_usage: 0,
        memory_usage: 0,
        pinned_cpus: BTreeSet::from([id * 4 + 2]),
        siblings: Vec::new(),
        mempages: Vec::new(),
        socket: None,
        network_metadata: None,
    };
    NumaTopology {
        cells: vec![cell(0), cell(1)],
    }
}

fn guest(dedicated: bool, on: Option<i64>) -> InstanceNumaTopology {
    let own = BTreeSet::from([0]);
    InstanceNumaTopology {
        cells: vec![InstanceNumaCell {
            id: on.unwrap_or(0),
            cpuset: if dedicated {
                BTreeSet::new()
            } else {
                own.clone()
            },
            pcpuset: if dedicated { own } else { BTreeSet::new() },
            memory: 2000,
            pagesize: None,
            cpu_policy: Some(if dedicated { "dedicated" } else { "shared" }.to_owned()),
            cpu_thread_policy: None,
            cpuset_reserved: None,
            cpu_pinning: on.filter(|_| dedicated).map(|cell| vec![(0, cell * 4 + 2)]),
        }],
        emulator_threads_policy: None,
    }
}

#[derive(Debug, Clone)]
struct Server {
    vcpus: i64,
    minutes: i64,
    preemptible: bool,
    devices: BTreeSet<usize>,
    /// A pinned cell.
    cell: Option<i64>,
    /// What it holds is not known.
    fault: bool,
    stops: bool,
}

#[derive(Debug, Clone)]
struct Host {
    pools: Pools,
    has_cells: bool,
    servers: Vec<Server>,
}

fn a_server() -> impl Strategy<Value = Server> {
    let devices = prop::collection::btree_set(0_usize..9, 0..4);
    let cell = select(vec![None, None, Some(0), Some(1)]);
    let odd = (prop::bool::weighted(0.05), prop::bool::weighted(0.1));
    (
        1_i64..4,
        1_i64..300,
        prop::bool::weighted(0.85),
        devices,
        cell,
        odd,
    )
        .prop_map(
            |(vcpus, minutes, preemptible, devices, cell, (fault, stops))| Server {
                vcpus,
                minutes,
                preemptible,
                devices,
                cell,
                fault,
                stops,
            },
        )
}

fn some_pools() -> impl Strategy<Value = Pools> {
    let free = prop::collection::btree_set(0_usize..9, 0..3);
    let odd = prop::bool::weighted(0.1);
    (free, any::<bool>(), any::<bool>(), odd).prop_map(|(free, empty, by_address, pf)| Pools {
        free,
        empty,
        by_address,
        pf,
    })
}

fn a_host() -> impl Strategy<Value = Host> {
    let servers = prop::collection::vec(a_server(), 0..7);
    (some_pools(), any::<bool>(), servers).prop_map(|(pools, has_cells, servers)| Host {
        pools,
        has_cells,
        servers,
    })
}

/// A host, and what it or a server of it becomes.
fn a_change() -> impl Strategy<Value = (prop::sample::Index, Pools, Server)> {
    (any::<prop::sample::Index>(), some_pools(), a_server())
}

fn put_host(cloud: &mut Cloud, number: usize, host: &Host) {
    let mut compute = kit::compute(number as u128, VCPUS);
    compute.row.numa_topology = host.has_cells.then(cells);
    compute.row.pci_pools = pools(&host.pools);
    cloud.put_compute(compute).unwrap();
}

fn put_server(cloud: &mut Cloud, host: usize, place: usize, own: &Server, pf: bool) {
    let number = (host * 10 + place) as u128;
    let mut record = kit::instance(
        number,
        host as u128,
        own.vcpus,
        own.minutes,
        own.preemptible,
    );
    if own.stops && own.preemptible {
        let specs = [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:interruption", "stop"),
        ];
        record.flavor = kit::flavor(own.vcpus, &specs);
    }
    let dev_type = if pf { "type-PF" } else { "type-PCI" };
    let devices = own.devices.iter();
    record.held = HeldFacts::Held(Arc::new(HeldResources {
        numa_topology: own.cell.map(|cell| guest(true, Some(cell))),
        pci_devices: devices.map(|number| device(*number, dev_type)).collect(),
        fault: own.fault.then(|| "no JSON".to_owned()),
    }));
    kit::settle(cloud, record);
}

/// One alias: products that it may be.
fn wanted(count: i64, products: &[usize], pf: bool, id: usize) -> PciRequest {
    let spec = |product: &usize| {
        let mut tags = BTreeMap::from([
            ("vendor_id".to_owned(), Value::from("10DE")),
            ("product_id".to_owned(), PRODUCTS[*product].into()),
        ]);
        if pf {
            tags.insert("dev_type".to_owned(), "type-PF".into());
        }
        tags
    };
    PciRequest {
        count,
        spec: products.iter().map(spec).collect(),
        alias_name: Some("gpu".to_owned()),
        request_id: Some(format!("r{id}")),
        requester_id: None,
        numa_policy: None,
    }
}

/// Vcpus, servers, devices by alias, a cell that is dedicated or not.
type Asked = (i64, u128, Vec<(i64, Vec<usize>, bool)>, Option<bool>);

fn a_request() -> impl Strategy<Value = Asked> {
    let products = prop::collection::btree_set(0_usize..3, 1..3)
        .prop_map(|products| products.into_iter().collect::<Vec<_>>());
    let alias = (0_i64..5, products, prop::bool::weighted(0.15));
    let aliases = prop::collection::vec(alias, 0..3);
    let several = select(vec![1, 1, 1, 2, 3]);
    (
        1_i64..5,
        several,
        aliases,
        select(vec![None, None, Some(false), Some(true)]),
    )
}

fn request((vcpus, many, aliases, cell): &Asked) -> (RequestSpec, ScheduleCall) {
    let (mut spec, call) = kit::request(*vcpus, *many);
    let aliases = aliases.iter().enumerate();
    let requests = aliases.map(|(id, (count, products, pf))| wanted(*count, products, *pf, id));
    spec.pci_requests = Some(requests.collect());
    spec.numa_topology = cell.map(|dedicated| guest(dedicated, None));
    (spec, call)
}

/// Everything that a scheduling says, while every second claim is refused.
fn told(mut scheduling: Scheduling) -> String {
    let mut told = String::new();
    for turn in 0.. {
        let action = scheduling.next();
        told.push_str(&format!("{action:?} {:?}\n", scheduling.filtered()));
        if !matches!(action, SchedulingAction::Claim(_)) {
            break;
        }
        scheduling.claimed(match turn % 2 {
            0 => ClaimResult::Refused,
            _ => ClaimResult::Taken,
        });
    }
    let mut warnings = Vec::new();
    let explained = scheduling.into_record().explain(&mut warnings);
    format!("{told}{explained:#?}{warnings:?}")
}

/// Everything that one way of deciding says, and whether it has victims.
fn answer(cloud: &Cloud, asked: &Asked) -> (String, bool) {
    let (mut spec, call) = request(asked);
    let query = cloud.ask(&mut spec).unwrap();
    let options = PlanOptions::default();
    let plan = cloud.plan(&spec, &call, &query, kit::NOW, &options);
    let pass = cloud.decide_once(&spec, &call, &query, kit::NOW, None, Some(&options));
    let OnePass {
        scheduling,
        has_room,
        victims,
        ..
    } = pass.unwrap();
    let scheduling = scheduling.map(told);
    let told = format!("{has_room} {scheduling:?} {victims:#?} {plan:#?}");
    (told, plan.is_ok_and(|plan| !plan.victims.is_empty()))
}

/// Both ways answer the same. Whether they have victims.
fn compare(cloud: &mut Cloud, asked: &Asked) -> bool {
    let (fast, has_victims) = answer(cloud, asked);
    cloud.decide_simply(true);
    let (simple, _) = answer(cloud, asked);
    cloud.decide_simply(false);
    let mut lines = fast.lines().zip(simple.lines());
    assert_eq!(lines.find(|(fast, simple)| fast != simple), None);
    assert_eq!(fast.len(), simple.len());
    has_victims
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn devices_and_cells_are_decided_as_host_by_host(
        hosts in prop::collection::vec(a_host(), 1..12),
        changes in prop::collection::vec(a_change(), 0..6),
        asked in prop::collection::vec(a_request(), 1..4),
    ) {
        let sizes = vec![VCPUS; hosts.len()];
        let mut cloud = kit::cloud_of(&sizes, options(), CloudSettings::default());
        for (number, host) in hosts.iter().enumerate() {
            put_host(&mut cloud, number, host);
            for (place, own) in host.servers.iter().enumerate() {
                put_server(&mut cloud, number, place, own, host.pools.pf);
            }
        }
        for asked in &asked {
            compare(&mut cloud, asked);
        }
        // What was counted for the first requests follows.
        for (turn, (host, pools, own)) in changes.into_iter().enumerate() {
            let at = host.index(hosts.len());
            let (number, place) = (at as u128, turn % 7);
            match turn % 5 {
                0 => put_host(&mut cloud, at, &Host { pools, ..hosts[at].clone() }),
                1 => put_server(&mut cloud, at, place, &own, pools.pf),
                2 => cloud.remove_instance(kit::server(number * 10)),
                3 => cloud.set_leaving(kit::server(number * 10 + 1), true),
                _ => {
                    cloud.remove_compute(kit::node(number));
                    put_host(&mut cloud, at, &Host { pools, ..hosts[at].clone() });
                }
            }
            for asked in &asked {
                compare(&mut cloud, asked);
            }
        }
    }
}

/// More hosts than a block of the columns has.
#[test]
fn among_hundreds_of_hosts_the_plans_are_the_same() {
    let mut cloud = kit::cloud_of(&[VCPUS; 300], options(), CloudSettings::default());
    let mut planned = 0;
    for number in 0..300_usize {
        let taken: Vec<BTreeSet<usize>> = match number % 4 {
            0 => vec![BTreeSet::from([0, 3]), BTreeSet::from([6])],
            1 => vec![
                BTreeSet::from([0]),
                BTreeSet::from([3]),
                BTreeSet::from([6, 1]),
            ],
            2 => vec![BTreeSet::from([0, 3, 6]), BTreeSet::new()],
            _ => vec![BTreeSet::from([1]), BTreeSet::from([2])],
        };
        let pools = Pools {
            free: BTreeSet::new(),
            empty: number % 3 > 0,
            by_address: number % 5 == 0,
            pf: false,
        };
        let host = Host {
            pools,
            has_cells: number % 2 == 0,
            servers: Vec::new(),
        };
        put_host(&mut cloud, number, &host);
        for (place, devices) in taken.into_iter().enumerate() {
            let own = Server {
                vcpus: 2,
                minutes: (number * 7919 + place * 977) as i64 % 700,
                preemptible: (number + place) % 9 > 0,
                devices,
                cell: None,
                fault: false,
                stops: false,
            };
            put_server(&mut cloud, number, place, &own, false);
        }
    }
    for count in 1..5 {
        for many in 1..4 {
            let asked = (1, many, vec![(count, vec![0], false)], None);
            planned += usize::from(compare(&mut cloud, &asked));
        }
    }
    assert_eq!(
        planned, 9,
        "one, two and three devices, for one to three servers"
    );
}
