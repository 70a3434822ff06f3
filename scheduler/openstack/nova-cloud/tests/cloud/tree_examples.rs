//! Examples of requests that are placed into trees of providers.

use crate::kit::{self, NOW, cloud_of, instance, inventory, node, request, server};
use ebbtide_nova::model::{Options, OrderedMap, PciDevice, PciPool, PciRequest, RequestGroup};
use ebbtide_nova_cloud::{
    Cloud, CloudSettings, Consumer, HeldFacts, HeldResources, NoPlan, NoPlanReason, PlanOptions,
    PreemptionPlan, ProviderFacts,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

fn gpu(number: u128) -> Uuid {
    Uuid::from_u128(0x1100_0000_0000_4000_8000_0000_0000_0000 + number)
}

fn pool() -> Uuid {
    gpu(900)
}

/// A child of the first host, or a provider of its own.
fn facts(uuid: Uuid, parent: Option<Uuid>, name: &str, class: &str, total: i64) -> ProviderFacts {
    ProviderFacts {
        uuid,
        name: name.to_owned(),
        generation: Some(1),
        parent,
        root: Some(parent.unwrap_or(uuid)),
        inventories: Some(BTreeMap::from([(class.to_owned(), inventory(total))])),
        used: Some(BTreeMap::new()),
        traits: Some(BTreeSet::new()),
        aggregates: Some(BTreeSet::new()),
    }
}

/// What a server takes of a host of the kit.
fn own(disk: bool) -> BTreeMap<String, u64> {
    let mut own = BTreeMap::from([("VCPU".to_owned(), 2), ("MEMORY_MB".to_owned(), 4000)]);
    if disk {
        own.insert("DISK_GB".to_owned(), 40);
    }
    own
}

fn held(resources: BTreeMap<String, u64>, uuid: Uuid) -> Consumer {
    Consumer {
        uuid,
        generation: 1,
        resources,
    }
}

/// A host of 16 CPUs with four GPUs of one VGPU each, all with a preemptible server.
fn gpu_cloud(class: &str, minutes: [i64; 4], specs: &[(&str, &str)]) -> Cloud {
    let mut cloud = cloud_of(&[16], Options::default(), CloudSettings::default());
    let mut all = Vec::new();
    for (number, minutes) in (0..).zip(minutes) {
        let name = format!("host0_0000:0{number}:00.0");
        cloud.put_provider(facts(gpu(number), Some(node(0)), &name, class, 1));
        let one = BTreeMap::from([(class.to_owned(), 1)]);
        cloud.consumers_of(gpu(number), 1, &[held(one, server(number))]);
        let mut record = instance(number, 0, 2, minutes, true);
        record.flavor = kit::flavor(2, &[&[("ebbtide:preemptible", "true")], specs].concat());
        cloud.put_instance(record);
        all.push(held(own(true), server(number)));
    }
    cloud.consumers_of(node(0), 1, &all);
    cloud
}

fn plan_for(cloud: &Cloud, many: u128, specs: &[(&str, &str)]) -> Result<PreemptionPlan, NoPlan> {
    let (mut spec, call) = request(2, many);
    let specs = specs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    spec.flavor.extra_specs = Some(specs.collect::<OrderedMap<String>>());
    let asked = cloud.ask(&mut spec).unwrap();
    cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default())
}

fn victims(plan: &PreemptionPlan) -> Vec<Uuid> {
    plan.victims.iter().map(|victim| victim.uuid).collect()
}

#[test]
fn a_request_for_a_vgpu_claims_the_one_of_its_victim() {
    let cloud = gpu_cloud("VGPU", [50, 10, 30, 20], &[]);
    for specs in [[("resources:VGPU", "1")], [("resources1:VGPU", "1")]] {
        let plan = plan_for(&cloud, 1, &specs).unwrap();
        assert_eq!(victims(&plan), [server(1)]);
        assert!(plan.optimal);
        assert_eq!(plan.victims[0].frees, ["1 VGPU of host0_0000:01:00.0"]);
        let claimed = &plan.instances[0].allocations;
        assert_eq!(claimed[&gpu(1)], BTreeMap::from([("VGPU".to_owned(), 1)]));
        assert_eq!(claimed[&node(0)], own(true));
        let said = &plan.instances[0].selections[0].candidate;
        assert_eq!(said.as_ref(), Some(&plan.instances[0].candidate));
    }
}

#[test]
fn isolated_groups_take_a_device_each_and_one_group_of_two_has_none() {
    let cloud = gpu_cloud("VGPU", [50, 10, 30, 20], &[]);
    let two = [
        ("resources1:VGPU", "1"),
        ("resources2:VGPU", "1"),
        ("group_policy", "isolate"),
    ];
    assert_eq!(
        victims(&plan_for(&cloud, 1, &two).unwrap()),
        [server(1), server(3)]
    );
    let none = plan_for(&cloud, 1, &[("resources1:VGPU", "2")]).unwrap_err();
    assert_eq!(none.reason, NoPlanReason::NotEnoughVictims);
    let told = format!("{:?}", none.explanation);
    assert!(told.contains("cannot take the request's groups"), "{told}");
}

#[test]
fn several_servers_of_a_request_get_a_device_each() {
    let cloud = gpu_cloud("VGPU", [50, 10, 30, 20], &[]);
    let plan = plan_for(&cloud, 3, &[("resources1:VGPU", "1")]).unwrap();
    let chosen: BTreeSet<Uuid> = victims(&plan).into_iter().collect();
    assert_eq!(chosen, BTreeSet::from([server(1), server(2), server(3)]));
    let claimed = plan
        .instances
        .iter()
        .flat_map(|one| one.allocations.keys().copied());
    let claimed: BTreeSet<Uuid> = claimed.collect();
    assert_eq!(claimed, BTreeSet::from([node(0), gpu(1), gpu(2), gpu(3)]));
}

#[test]
fn a_server_that_is_only_stopped_keeps_its_vgpu() {
    let cloud = gpu_cloud(
        "VGPU",
        [50, 10, 30, 20],
        &[("ebbtide:interruption", "stop")],
    );
    let none = plan_for(&cloud, 1, &[("resources1:VGPU", "1")]).unwrap_err();
    assert_eq!(none.reason, NoPlanReason::NotEnoughVictims);
}

#[test]
fn a_host_of_which_consumers_are_unknown_is_read_first() {
    let mut cloud = gpu_cloud("VGPU", [50, 10, 30, 20], &[]);
    let (mut spec, _) = request(2, 1);
    let specs = [("resources1:VGPU".to_owned(), "1".to_owned())];
    spec.flavor.extra_specs = Some(specs.into_iter().collect::<OrderedMap<String>>());
    let asked = cloud.ask(&mut spec).unwrap();
    assert!(cloud.needs_trees(&asked));
    assert!(cloud.unread_of_trees(&spec, &asked, 100).is_empty());
    // Nova deletes what a deleted server holds, and Placement's generations stay.
    cloud.remove_instance(server(1));
    assert_eq!(cloud.unread_of_trees(&spec, &asked, 100), [node(0), gpu(1)]);
    assert!(plan_for(&cloud, 1, &[("resources1:VGPU", "1")]).is_err());
    let rest = [0, 2, 3].map(|number| held(own(true), server(number)));
    cloud.consumers_of(node(0), 2, &rest);
    cloud.consumers_of(gpu(1), 2, &[]);
    let plan = plan_for(&cloud, 1, &[("resources1:VGPU", "1")]).unwrap();
    assert!(plan.victims.is_empty(), "{:?}", plan.victims);
}

#[test]
fn what_is_read_of_a_child_leaves_the_belief_of_the_host() {
    let mut cloud = cloud_of(&[16], Options::default(), CloudSettings::default());
    cloud.put_provider(facts(gpu(0), Some(node(0)), "g", "VGPU", 1));
    cloud.put_instance(instance(0, 0, 2, 10, true));
    let believed = cloud.consumer(server(0)).unwrap().0.clone();
    let one = BTreeMap::from([("VGPU".to_owned(), 1)]);
    cloud.consumers_of(gpu(0), 1, &[held(one.clone(), server(0))]);
    let both = cloud.consumer(server(0)).unwrap().0.clone();
    assert_eq!(both[&node(0)], believed[&node(0)]);
    assert_eq!(both[&gpu(0)], one);
    cloud.put_instance(instance(0, 0, 2, 10, true));
    assert_eq!(*cloud.consumer(server(0)).unwrap().0, both);
}

#[test]
fn what_placement_counts_twice_is_not_planned() {
    let cloud = gpu_cloud("VGPU", [50, 10, 30, 20], &[]);
    let none = plan_for(
        &cloud,
        1,
        &[("resources:VGPU", "1"), ("resources1:VGPU", "1")],
    );
    let none = none.unwrap_err();
    assert_eq!(none.reason, NoPlanReason::Unsupported);
    assert!(none.text.contains("group_policy=none"), "{}", none.text);
}

#[test]
fn disk_comes_from_a_shared_pool() {
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    let shared = BTreeSet::from([gpu(901)]);
    for number in 0..2 {
        let mut host = kit::provider(number, 4);
        host.inventories.as_mut().unwrap().remove("DISK_GB");
        host.aggregates = Some(shared.clone());
        cloud.put_provider(host);
        cloud.consumers_of(node(number), 1, &[]);
    }
    let mut disk = facts(pool(), None, "pool", "DISK_GB", 100);
    disk.aggregates = Some(shared);
    disk.traits = Some(BTreeSet::from(["MISC_SHARES_VIA_AGGREGATE".to_owned()]));
    cloud.put_provider(disk);
    let forty = || BTreeMap::from([("DISK_GB".to_owned(), 40)]);
    // The pool is full by two servers, one on each host; the hosts have CPUs left.
    for (number, minutes) in [(0, 30), (1, 10)] {
        cloud.put_instance(instance(number, number, 2, minutes, true));
        cloud.consumers_of(node(number), 2, &[held(own(false), server(number))]);
    }
    cloud.consumers_of(
        pool(),
        3,
        &[held(forty(), server(0)), held(forty(), server(1))],
    );
    let plan = plan_for(&cloud, 1, &[]).unwrap();
    assert_eq!(victims(&plan), [server(1)]);
    assert_eq!(plan.instances[0].host.uuid, node(1));
    assert_eq!(plan.instances[0].allocations[&pool()], forty());
    let several = plan_for(&cloud, 2, &[]).unwrap_err();
    assert_eq!(several.reason, NoPlanReason::Unsupported);
}

#[test]
fn a_pci_device_in_placement_is_of_the_provider_that_the_claim_names() {
    let mut cloud = gpu_cloud("CUSTOM_PCI_10DE_1EB8", [50, 10, 30, 20], &[]);
    let mut options = Options::default();
    options
        .enabled_filters
        .push("PciPassthroughFilter".to_owned());
    cloud.set_options(options);
    for number in 0..4_u128 {
        let mut record = cloud.instance(server(number)).unwrap().clone();
        record.held = HeldFacts::Held(Arc::new(HeldResources {
            pci_devices: vec![PciDevice {
                address: format!("0000:0{number}:00.0"),
                parent_addr: None,
                vendor_id: "10de".to_owned(),
                product_id: "1eb8".to_owned(),
                dev_type: "type-PCI".to_owned(),
                numa_node: None,
                parent_ifname: None,
            }],
            ..HeldResources::default()
        }));
        cloud.put_instance(record);
    }
    // Nova has dropped the pools of all devices but one, which the report has with its provider.
    let mut row = kit::compute(0, 16);
    row.row.pci_pools = vec![PciPool {
        vendor_id: "10de".to_owned(),
        product_id: "1eb8".to_owned(),
        numa_node: None,
        count: 0,
        tags: BTreeMap::from([
            ("dev_type".to_owned(), json!("type-PCI")),
            ("address".to_owned(), json!("0000:00:00.0")),
            ("rp_uuid".to_owned(), json!(gpu(0))),
        ]),
    }];
    cloud.put_compute(row).unwrap();
    let (mut spec, call) = request(2, 1);
    spec.pci_requests = Some(vec![PciRequest {
        count: 1,
        spec: vec![BTreeMap::from([
            ("vendor_id".to_owned(), json!("10de")),
            ("product_id".to_owned(), json!("1eb8")),
        ])],
        alias_name: Some("gpu".to_owned()),
        request_id: Some("r".to_owned()),
        requester_id: None,
        numa_policy: None,
    }]);
    spec.requested_resources = vec![RequestGroup {
        requester_id: Some("r-0".to_owned()),
        resources: BTreeMap::from([("CUSTOM_PCI_10DE_1EB8".to_owned(), 1)]),
        ..RequestGroup::default()
    }];
    let asked = cloud.ask(&mut spec).unwrap();
    let plan = cloud
        .plan(&spec, &call, &asked, NOW, &PlanOptions::default())
        .unwrap();
    assert_eq!(victims(&plan), [server(1)]);
    assert_eq!(plan.instances[0].candidate.mappings["r-0"], json!([gpu(1)]));
    let told = plan.victims[0].frees.join("; ");
    assert!(told.contains("PCI device 0000:01:00.0"), "{told}");
}
