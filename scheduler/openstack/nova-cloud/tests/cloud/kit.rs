//! Words for tests, benchmarks and examples: clouds of equal hosts, servers, requests.

#![allow(dead_code, reason = "each of its users needs a part of it")]

use ebbtide_nova::hosts::ComputeRow;
use ebbtide_nova::image::Image;
use ebbtide_nova::model::{Flavor, Options, OrderedMap, RequestSpec, Service};
use ebbtide_nova::python::json;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::{
    CellFacts, ClaimResult, Cloud, CloudError, CloudSettings, ComputeFacts, DecisionPlugins,
    InstanceRecord, Inventory, ProviderFacts, SchedulingAction, SelectedHost, ServiceFacts,
};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Noon, in microseconds since 1970.
pub const NOW: i64 = 1_772_366_400_000_000;
/// The cost module that decides, unless a test says otherwise.
pub const COST_MODULE: &str = "partial_hour";
/// The only cell, unless a test says otherwise.
pub const CELL: &str = "00000000-0000-4000-8000-00000000cell";

pub fn node(number: u128) -> Uuid {
    Uuid::from_u128(0x1000_0000_0000_0000_0000_0000_0000_0000 + number)
}

pub fn server(number: u128) -> Uuid {
    Uuid::from_u128(0x2000_0000_0000_0000_0000_0000_0000_0000 + number)
}

/// A request's instance.
pub fn fresh(number: u128) -> Uuid {
    Uuid::from_u128(0x3000_0000_0000_0000_0000_0000_0000_0000 + number)
}

/// These weighers and this built-in cost module.
pub fn plugins(weighers: Plugins, cost_module: &str) -> DecisionPlugins {
    DecisionPlugins {
        weighers,
        cost_module: cost_module.to_owned(),
        ..DecisionPlugins::default()
    }
}

/// These in shadow, and none but Nova's own weighers that decide.
pub fn put_in_shadow(cloud: &mut Cloud, shadow: Option<DecisionPlugins>) -> Result<(), CloudError> {
    cloud.set_plugins(plugins(Plugins::default(), COST_MODULE), shadow)
}

pub fn host_name(number: u128) -> String {
    format!("host{number}")
}

/// A host with CPUs, and 2000 MiB and 20 GiB for each.
pub fn row(number: u128, vcpus: i64) -> ComputeRow {
    let host = host_name(number);
    ComputeRow {
        nodename: host.clone(),
        host,
        uuid: node(number).to_string(),
        vcpus,
        vcpus_used: 0,
        memory_mb: vcpus * 2000,
        free_ram_mb: Some(vcpus * 2000),
        local_gb: vcpus * 20,
        local_gb_used: 0,
        free_disk_gb: Some(vcpus * 20),
        disk_available_least: None,
        cpu_allocation_ratio: 1.0,
        ram_allocation_ratio: 1.0,
        disk_allocation_ratio: 1.0,
        hypervisor_type: "QEMU".to_owned(),
        hypervisor_version: 8_002_000,
        cpu_info: Some("{}".to_owned()),
        host_ip: Some("192.0.2.1".to_owned()),
        supported_instances: Some(vec![vec![
            Some("x86_64".to_owned()),
            Some("kvm".to_owned()),
            Some("hvm".to_owned()),
        ]]),
        stats: Some(BTreeMap::from([(
            "failed_builds".to_owned(),
            Some("0".to_owned()),
        )])),
        metrics: None,
        numa_topology: None,
        pci_pools: Vec::new(),
        updated_at: Some(NOW - 5_000_000),
    }
}

pub fn compute(number: u128, vcpus: i64) -> ComputeFacts {
    ComputeFacts {
        uuid: node(number),
        cell_uuid: CELL.to_owned(),
        row: row(number, vcpus),
    }
}

pub fn service(number: u128) -> ServiceFacts {
    ServiceFacts {
        host: host_name(number),
        service: Service {
            last_seen_up: Some(NOW - 3_000_000),
            ..Service::default()
        },
    }
}

pub fn inventory(total: i64) -> Inventory {
    Inventory {
        total,
        reserved: 0,
        min_unit: 1,
        max_unit: total,
        step_size: 1,
        allocation_ratio: 1.0,
    }
}

/// What Placement would say of a host of [`row`] with nothing on it.
pub fn provider(number: u128, vcpus: i64) -> ProviderFacts {
    let inventories = [
        ("VCPU", vcpus),
        ("MEMORY_MB", vcpus * 2000),
        ("DISK_GB", vcpus * 20),
    ];
    ProviderFacts {
        uuid: node(number),
        name: host_name(number),
        generation: Some(1),
        parent: None,
        root: Some(node(number)),
        inventories: Some(
            inventories
                .into_iter()
                .map(|(class, total)| (class.to_owned(), inventory(total)))
                .collect(),
        ),
        used: Some(BTreeMap::new()),
        traits: Some(BTreeSet::from(["COMPUTE_NODE".to_owned()])),
        aggregates: Some(BTreeSet::new()),
    }
}

/// Hosts 0, 1, … with as many CPUs as said, read from Placement.
pub fn cloud_of(vcpus: &[i64], options: Options, settings: CloudSettings) -> Cloud {
    let mut cloud = Cloud::new(options, settings).unwrap();
    cloud.set_cells(&[CellFacts {
        uuid: CELL.to_owned(),
        disabled: false,
    }]);
    for (number, vcpus) in (0..).zip(vcpus) {
        cloud.put_service(service(number));
        cloud.put_compute(compute(number, *vcpus)).unwrap();
        cloud.put_provider(provider(number, *vcpus));
    }
    cloud
}

pub fn flavor(vcpus: i64, specs: &[(&str, &str)]) -> Flavor {
    Flavor {
        name: format!("m{vcpus}"),
        flavorid: vcpus.to_string(),
        vcpus,
        memory_mb: vcpus * 2000,
        root_gb: vcpus * 20,
        extra_specs: Some(
            specs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<OrderedMap<String>>(),
        ),
        ..Flavor::default()
    }
}

/// A server on a host, launched so many minutes ago.
pub fn instance(
    number: u128,
    host: u128,
    vcpus: i64,
    minutes: i64,
    preemptible: bool,
) -> InstanceRecord {
    let specs: &[(&str, &str)] = if preemptible {
        &[("ebbtide:preemptible", "true")]
    } else {
        &[]
    };
    InstanceRecord {
        uuid: server(number),
        name: format!("vm-{number}"),
        host: Some(host_name(host)),
        node: Some(host_name(host)),
        project_id: format!("project-{}", number % 3),
        user_id: "user".to_owned(),
        flavor: flavor(vcpus, specs),
        launched_at: Some(NOW - minutes * 60_000_000),
        vm_state: Some("active".to_owned()),
        ..InstanceRecord::default()
    }
}

/// Puts a server that Placement knows, too.
pub fn settle(cloud: &mut Cloud, record: InstanceRecord) {
    let vcpus = record.flavor.vcpus;
    let host = record.host.as_ref().unwrap()[4..].parse().unwrap();
    let amount = |n: i64| u64::try_from(n).unwrap();
    let resources = BTreeMap::from([
        ("VCPU".to_owned(), amount(vcpus)),
        ("MEMORY_MB".to_owned(), amount(vcpus * 2000)),
        ("DISK_GB".to_owned(), amount(vcpus * 20)),
    ]);
    cloud.claimed(
        record.uuid,
        &BTreeMap::from([(node(host), resources)]),
        Some(1),
    );
    cloud.put_instance(record);
}

/// A request for a number of normal instances.
pub fn request(vcpus: i64, many: u128) -> (RequestSpec, ScheduleCall) {
    let spec = RequestSpec {
        num_instances: i64::try_from(many).unwrap(),
        project_id: Some("project-n".to_owned()),
        user_id: Some("user".to_owned()),
        flavor: flavor(vcpus, &[]),
        image: Some(Image::read(&json::loads(r#"{"id":"i","properties":{}}"#).unwrap()).unwrap()),
        scheduler_hints: Some(BTreeMap::new()),
        pci_requests: Some(Vec::new()),
        ..RequestSpec::default()
    };
    let call = ScheduleCall {
        instance_uuids: Some((0..many).map(|n| fresh(n).to_string()).collect()),
        return_alternates: true,
        no_placement: false,
        orphans: false,
    };
    (spec, call)
}

/// Decides with claims that are taken unless `refuse` says otherwise. What comes of it, and the
/// hosts that were tried.
pub fn decide(
    cloud: &Cloud,
    mut spec: RequestSpec,
    call: ScheduleCall,
    mut refuse: impl FnMut(&str, usize) -> bool,
) -> (Result<Vec<Vec<SelectedHost>>, &'static str>, Vec<String>) {
    let asked = match cloud.ask(&mut spec) {
        Ok(asked) => asked,
        Err(fault) => return (Err(fault.class), Vec::new()),
    };
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud.decide(spec, call, &candidates, NOW, None).unwrap();
    let mut tried = Vec::new();
    loop {
        match scheduling.next() {
            SchedulingAction::Claim(claim) => {
                let refused = refuse(&claim.host.host, tried.len());
                tried.push(claim.host.host);
                scheduling.claimed(if refused {
                    ClaimResult::Refused
                } else {
                    ClaimResult::Taken
                });
            }
            SchedulingAction::Done(selections) => return (Ok(selections), tried),
            SchedulingAction::Failed { fault, .. } => return (Err(fault.class), tried),
        }
    }
}
