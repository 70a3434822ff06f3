//! Requests with PCI devices and NUMA cells: examples, and plans against brute force over all sets
//! of victims, each judged by Nova's filters on a host that is built without them.

use crate::kit::{self, NOW, cloud_of, compute, instance, request, server, settle};
use ebbtide_nova::filters::{self, Context};
use ebbtide_nova::hosts::{self, ComputeRow};
use ebbtide_nova::model::{
    AllocationCandidate, InstanceNumaCell, InstanceNumaTopology, NumaCell, NumaTopology, Options,
    PagesTopology, PciDevice, PciPool, PciRequest, RequestSpec,
};
use ebbtide_nova::{filtering, numa};
use ebbtide_nova_cloud::{
    Cloud, CloudSettings, Consumer, HeldFacts, HeldResources, InstanceRecord, NoPlan, NoPlanReason,
    PlanOptions, PreemptionPlan, ProviderSnapshot, VerifyResult,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// Nova's options with both filters, which an operator has to enable.
pub(crate) fn options() -> Options {
    let mut options = Options::default();
    let both = ["NUMATopologyFilter", "PciPassthroughFilter"];
    let both = both.map(str::to_owned);
    options.enabled_filters.extend(both);
    options
}

const VENDOR: &str = "10de";
const PRODUCT: &str = "1eb8";

fn device(number: i64, node: Option<i64>) -> PciDevice {
    PciDevice {
        address: format!("0000:{number:02x}:00.0"),
        parent_addr: None,
        vendor_id: VENDOR.to_owned(),
        product_id: PRODUCT.to_owned(),
        dev_type: "type-PCI".to_owned(),
        numa_node: node,
        parent_ifname: None,
    }
}

/// A pool for each device, as newer releases of Nova have them.
fn pool(device: &PciDevice) -> PciPool {
    PciPool {
        vendor_id: device.vendor_id.clone(),
        product_id: device.product_id.clone(),
        numa_node: device.numa_node,
        count: 1,
        tags: BTreeMap::from([
            ("dev_type".to_owned(), device.dev_type.clone().into()),
            ("address".to_owned(), device.address.clone().into()),
        ]),
    }
}

fn gpus(count: i64, policy: Option<&str>) -> Vec<PciRequest> {
    let spec = [("vendor_id", VENDOR), ("product_id", PRODUCT)];
    vec![PciRequest {
        count,
        spec: vec![
            spec.map(|(key, value)| (key.to_owned(), value.into()))
                .into(),
        ],
        alias_name: Some("gpu".to_owned()),
        request_id: Some("r".to_owned()),
        requester_id: None,
        numa_policy: policy.map(str::to_owned),
    }]
}

/// Two cells of two floating and four dedicated CPUs and 8 GiB each.
pub(crate) fn cells() -> NumaTopology {
    let cell = |id: i64| {
        let first = id * 8;
        NumaCell {
            id,
            cpuset: BTreeSet::from([first, first + 1]),
            pcpuset: (first + 2..first + 6).collect(),
            memory: 8192,
            cpu_usage: 0,
            memory_usage: 0,
            pinned_cpus: BTreeSet::new(),
            siblings: vec![
                (first + 2..first + 4).collect(),
                (first + 4..first + 6).collect(),
            ],
            mempages: vec![
                PagesTopology {
                    size_kb: 4,
                    total: 1_048_576,
                    used: 0,
                    reserved: 0,
                },
                PagesTopology {
                    size_kb: 2048,
                    total: 2048,
                    used: 0,
                    reserved: 0,
                },
            ],
            socket: Some(0),
            network_metadata: None,
        }
    };
    NumaTopology {
        cells: vec![cell(0), cell(1)],
    }
}

/// A guest of so many cells.
pub(crate) fn guest(
    cells: i64,
    cpus: i64,
    policy: &str,
    threads: Option<&str>,
    pages: Option<i64>,
) -> InstanceNumaTopology {
    let cell = |id: i64| {
        let own: BTreeSet<i64> = (id * cpus..(id + 1) * cpus).collect();
        let pinned = policy == "dedicated";
        InstanceNumaCell {
            id,
            cpuset: if pinned { BTreeSet::new() } else { own.clone() },
            pcpuset: if pinned { own } else { BTreeSet::new() },
            memory: 1024 * cpus,
            pagesize: pages,
            cpu_policy: Some(policy.to_owned()),
            cpu_thread_policy: threads.map(str::to_owned),
            cpuset_reserved: None,
            cpu_pinning: None,
        }
    };
    InstanceNumaTopology {
        cells: (0..cells).map(cell).collect(),
        emulator_threads_policy: None,
    }
}

pub(crate) fn held(topology: Option<InstanceNumaTopology>, devices: Vec<PciDevice>) -> HeldFacts {
    HeldFacts::Held(Arc::new(HeldResources {
        numa_topology: topology,
        pci_devices: devices,
        fault: None,
    }))
}

/// A host of 16 CPUs with four GPUs, of which each of four preemptible servers of 2 CPUs holds one.
fn gpu_cloud(minutes: [i64; 4], change: impl Fn(u128, &mut InstanceRecord)) -> Cloud {
    let mut cloud = cloud_of(&[16], options(), CloudSettings::default());
    for (number, minutes) in (0..).zip(minutes) {
        let mut record = instance(number, 0, 2, minutes, true);
        let address = i64::try_from(number).unwrap();
        record.held = held(None, vec![device(address, None)]);
        change(number, &mut record);
        settle(&mut cloud, record);
    }
    cloud
}

pub(crate) fn plan_for(
    cloud: &Cloud,
    many: u128,
    change: impl Fn(&mut RequestSpec),
) -> Result<PreemptionPlan, NoPlan> {
    let (mut spec, call) = request(2, many);
    change(&mut spec);
    let asked = cloud.ask(&mut spec).unwrap();
    cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default())
}

fn with_gpus(count: i64) -> impl Fn(&mut RequestSpec) {
    move |spec| spec.pci_requests = Some(gpus(count, None))
}

pub(crate) fn victims(plan: &PreemptionPlan) -> Vec<Uuid> {
    plan.victims.iter().map(|victim| victim.uuid).collect()
}

#[test]
fn a_request_for_a_gpu_takes_the_cheapest_although_there_are_cpus() {
    let cloud = gpu_cloud([50, 10, 30, 20], |_, _| {});
    let plan = plan_for(&cloud, 1, with_gpus(1)).unwrap();
    assert_eq!(victims(&plan), [server(1)]);
    assert!(plan.optimal);
    assert_eq!(
        plan.victims[0].frees,
        ["PCI device 0000:01:00.0 (10de:1eb8)"]
    );
    let two = plan_for(&cloud, 1, with_gpus(2)).unwrap();
    assert_eq!(victims(&two), [server(1), server(3)]);
    let none = plan_for(&cloud, 1, with_gpus(5)).unwrap_err();
    assert_eq!(none.reason, NoPlanReason::NotEnoughVictims);
    let told = format!("{:?}", none.explanation);
    assert!(
        told.contains("PciPassthroughFilter refuses the host"),
        "{told}"
    );
}

#[test]
fn several_servers_of_a_request_get_a_device_each() {
    let cloud = gpu_cloud([50, 10, 30, 20], |_, _| {});
    let plan = plan_for(&cloud, 3, with_gpus(1)).unwrap();
    let chosen: BTreeSet<Uuid> = victims(&plan).into_iter().collect();
    assert_eq!(chosen, BTreeSet::from([server(1), server(2), server(3)]));
    assert_eq!(plan.instances.len(), 3);
}

#[test]
fn a_server_that_is_only_stopped_keeps_its_device() {
    let stops = |number: u128, record: &mut InstanceRecord| {
        if number == 1 {
            let specs = [
                ("ebbtide:preemptible", "true"),
                ("ebbtide:interruption", "stop"),
            ];
            record.flavor = kit::flavor(2, &specs);
        }
    };
    let cloud = gpu_cloud([50, 10, 30, 20], stops);
    let plan = plan_for(&cloud, 1, with_gpus(1)).unwrap();
    assert_eq!(victims(&plan), [server(3)]);
}

#[test]
fn a_server_of_which_nothing_is_known_is_no_victim_and_the_explanation_says_why() {
    let broken = |_: u128, record: &mut InstanceRecord| {
        record.held = HeldFacts::Held(Arc::new(HeldResources {
            fault: Some("its NUMA topology cannot be read: no JSON".to_owned()),
            ..HeldResources::default()
        }));
    };
    let cloud = gpu_cloud([50, 10, 30, 20], broken);
    let none = plan_for(&cloud, 1, with_gpus(1)).unwrap_err();
    assert_eq!(none.reason, NoPlanReason::NotEnoughVictims);
    let told = format!("{:?}", none.explanation);
    assert!(
        told.contains("vm-0 is no victim: its NUMA topology cannot be read"),
        "{told}"
    );
}

#[test]
fn a_plan_for_a_device_is_verified_with_the_filters() {
    let cloud = gpu_cloud([50, 10, 30, 20], |_, _| {});
    let mut plan = plan_for(&cloud, 1, with_gpus(1)).unwrap();
    let consumers = (0..4).map(|number| Consumer {
        uuid: server(number),
        generation: 1,
        resources: BTreeMap::from([
            ("VCPU".to_owned(), 2),
            ("MEMORY_MB".to_owned(), 4000),
            ("DISK_GB".to_owned(), 40),
        ]),
    });
    let truth = [ProviderSnapshot {
        provider: kit::node(0),
        generation: 1,
        consumers: consumers.collect(),
    }];
    assert_eq!(cloud.verify(&mut plan, &truth), VerifyResult::Good);
    // Another server has given its device back meanwhile: the victim need not leave.
    let mut cloud = cloud;
    let mut row = compute(0, 16);
    row.row.pci_pools = vec![pool(&device(9, None))];
    cloud.put_compute(row).unwrap();
    assert!(matches!(
        cloud.verify(&mut plan, &truth),
        VerifyResult::Changed(_)
    ));
}

#[test]
fn hosts_on_which_devices_are_leaving_get_no_second_plan() {
    let mut cloud = gpu_cloud([50, 10, 30, 20], |_, _| {});
    cloud.set_leaving(server(0), true);
    assert!(plan_for(&cloud, 1, with_gpus(1)).is_err());
    cloud.set_leaving(server(0), false);
    assert!(plan_for(&cloud, 1, with_gpus(1)).is_ok());
}

/// A server of a random host.
#[derive(Debug, Clone)]
struct Guest {
    vcpus: i64,
    minutes: i64,
    preemptible: bool,
    /// CPUs, dedicated or not, threads, pages.
    cells: Option<(i64, bool, Option<&'static str>, Option<i64>)>,
    devices: usize,
}

fn a_guest() -> impl Strategy<Value = Guest> {
    let threads = select(vec![None, None, Some("isolate"), Some("require")]);
    let pages = select(vec![None, None, Some(2048)]);
    let cells = prop::option::weighted(0.7, (1_i64..4, any::<bool>(), threads, pages));
    (
        1_i64..4,
        1_i64..200,
        prop::bool::weighted(0.8),
        cells,
        0_usize..3,
    )
        .prop_map(|(vcpus, minutes, preemptible, cells, devices)| Guest {
            vcpus,
            minutes,
            preemptible,
            cells,
            devices,
        })
}

fn topology_of(
    (cpus, dedicated, threads, pages): (i64, bool, Option<&str>, Option<i64>),
) -> InstanceNumaTopology {
    let policy = if dedicated { "dedicated" } else { "shared" };
    guest(1, cpus, policy, threads.filter(|_| dedicated), pages)
}

/// The host's row with these servers on it.
fn row_with(
    on: &[&(i64, Option<InstanceNumaTopology>, Vec<PciDevice>)],
    all: &[PciDevice],
) -> ComputeRow {
    let mut row = kit::row(0, 8);
    let mut topology = cells();
    for guest in on.iter().filter_map(|one| one.1.as_ref()) {
        topology = numa::usage_with(&topology, guest).unwrap();
    }
    row.numa_topology = Some(topology);
    let taken: BTreeSet<&PciDevice> = on.iter().flat_map(|one| &one.2).collect();
    let free = all.iter().filter(|device| !taken.contains(device));
    row.pci_pools = free.map(pool).collect();
    row
}

/// Whether Nova's filters pass a host of this row.
fn passes(row: &ComputeRow, spec: &RequestSpec) -> bool {
    let options = options();
    let mut state = hosts::new_state("host0", "host0", kit::CELL);
    hosts::update(&mut state, row).unwrap();
    state.allocation_candidates = vec![AllocationCandidate {
        allocations: serde_json::json!({}),
        mappings: serde_json::json!({"": [row.uuid]}),
    }];
    let context = Context {
        options: &options,
        now: NOW,
    };
    let mut both = ["NUMATopologyFilter", "PciPassthroughFilter"].into_iter();
    both.all(|name| {
        let filter = filters::by_name(name).unwrap();
        filtering::passes(filter, &mut state, spec, &context).unwrap_or(false)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_plan_for_cells_and_devices_is_the_cheapest_that_novas_filters_accept(
        guests in prop::collection::vec(a_guest(), 0..7),
        nodes in prop::collection::vec(select(vec![None, Some(0), Some(1)]), 0..5),
        vcpus in 1_i64..4,
        parts in 0_i64..3,
        cell in (1_i64..4, any::<bool>(), select(vec![None, None, Some("isolate"), Some("require")]), select(vec![None, Some(2048), Some(-1)])),
        wanted in 0_i64..3,
        policy in select(vec![None, Some("required"), Some("preferred")]),
    ) {
        prop_assume!(parts > 0 || wanted > 0);
        let all: Vec<PciDevice> = (0..).zip(nodes).map(|(n, node)| device(n, node)).collect();
        // Servers come one after another, as far as they fit.
        let mut on: Vec<(i64, Option<InstanceNumaTopology>, Vec<PciDevice>)> = Vec::new();
        let mut kept: Vec<Guest> = Vec::new();
        for own in guests {
            let used: i64 = on.iter().map(|one| one.0).sum();
            let taken: Vec<&PciDevice> = on.iter().flat_map(|one| &one.2).collect();
            let free = all.iter().filter(|device| !taken.contains(device));
            let devices: Vec<PciDevice> = free.take(own.devices).cloned().collect();
            let now: Vec<_> = on.iter().collect();
            let host = row_with(&now, &all).numa_topology.unwrap();
            let mut topology = own.cells.map(topology_of);
            let nothing = numa::PciNeeds {
                requests: &[],
                stats: None,
                mapping: ebbtide_nova::pci::ProviderMapping::Groups(&[]),
            };
            let limits = numa::NumaFitLimits { cpu_allocation_ratio: 1.0, ram_allocation_ratio: 1.0, network_metadata: None };
            let fits = topology.as_mut().is_none_or(|guest| {
                numa::fit(&host, guest, Some(&limits), &nothing, false).unwrap_or(false)
            });
            if used + own.vcpus <= 8 && fits {
                on.push((own.vcpus, topology, devices));
                kept.push(own);
            }
        }
        let mut cloud = cloud_of(&[8], options(), CloudSettings::default());
        let everyone: Vec<_> = on.iter().collect();
        let mut facts = compute(0, 8);
        facts.row = row_with(&everyone, &all);
        cloud.put_compute(facts).unwrap();
        for (number, own) in (0..).zip(&kept) {
            let mut record = instance(number, 0, own.vcpus, own.minutes, own.preemptible);
            let (_, topology, devices) = &on[number as usize];
            record.held = held(topology.clone(), devices.clone());
            settle(&mut cloud, record);
        }
        let (mut spec, call) = request(vcpus, 1);
        if parts > 0 {
            let (cpus, dedicated, threads, pages) = cell;
            let policy = if dedicated { "dedicated" } else { "shared" };
            spec.numa_topology = Some(guest(parts, cpus, policy, threads.filter(|_| dedicated), pages));
        }
        if wanted > 0 {
            spec.pci_requests = Some(gpus(wanted, policy));
        }
        let movable: Vec<usize> = (0..kept.len()).filter(|at| kept[*at].preemptible).collect();
        let accepted = |set: u32| {
            let gone = |at: usize| {
                let bit = movable.iter().position(|m| *m == at);
                bit.is_some_and(|bit| set >> bit & 1 == 1)
            };
            let left: Vec<_> = (0..on.len()).filter(|at| !gone(*at)).map(|at| &on[at]).collect();
            let used: i64 = left.iter().map(|one| one.0).sum();
            used + vcpus <= 8 && passes(&row_with(&left, &all), &spec)
        };
        let everything = (1_u32 << movable.len()) - 1;
        let sets = (0..=everything).filter(|_| accepted(everything));
        let cheapest = sets.filter(|set| accepted(*set)).map(|set| {
            let members = (0..movable.len()).filter(|bit| set >> bit & 1 == 1);
            let cost: i64 = members.clone().map(|bit| kept[movable[bit]].minutes % 60 * 60).sum();
            (cost, members.count())
        }).min();
        let asked = cloud.ask(&mut spec).unwrap();
        let planned = cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default());
        match planned {
            Err(no) => prop_assert_eq!(cheapest, None, "{:?}: {}", no.reason, no.text),
            Ok(plan) => {
                prop_assert!(plan.optimal);
                let found = (plan.cost.round() as i64, plan.victims.len());
                prop_assert_eq!(Some(found), cheapest);
                let limits = plan.instances[0].selections[0].limits;
                prop_assert_eq!(limits.is_some(), parts > 0);
            }
        }
    }
}
