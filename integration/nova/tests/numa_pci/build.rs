//! Builders that read as statements.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

use ebbtide_nova::hosts::{Ratios, from_dict};
use ebbtide_nova::model::{
    InstanceNumaCell, InstanceNumaTopology, NumaCell, NumaTopology, PagesTopology, PciPool,
    PciRequest,
};
use ebbtide_nova::python::{Value as PyValue, from_json};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A host cell without hyperthreads or pages: 4 GiB, CPUs both floating and dedicated.
pub(crate) fn cell(id: i64, cpus: std::ops::Range<i64>) -> NumaCell {
    NumaCell {
        id,
        cpuset: cpus.clone().collect(),
        pcpuset: cpus.clone().collect(),
        memory: 4096,
        cpu_usage: 0,
        memory_usage: 0,
        pinned_cpus: Default::default(),
        siblings: cpus.map(|cpu| std::iter::once(cpu).collect()).collect(),
        mempages: Vec::new(),
        socket: Some(id),
        network_metadata: None,
    }
}

/// The same with two neighbouring threads to a core.
pub(crate) fn threaded(id: i64, cpus: std::ops::Range<i64>) -> NumaCell {
    NumaCell {
        siblings: cpus
            .clone()
            .step_by(2)
            .map(|first| [first, first + 1].into_iter().collect())
            .collect(),
        ..cell(id, cpus)
    }
}

/// Pages of a size that fill 4 GiB.
pub(crate) fn pages(size_kb: i64) -> PagesTopology {
    PagesTopology {
        size_kb,
        total: 4 * 1024 * 1024 / size_kb,
        used: 0,
        reserved: 0,
    }
}

/// A host's topology in the form of the oracle's cases.
pub(crate) fn host_of(topology: &Value) -> NumaTopology {
    let mut host = json!({"host": "h", "nodename": "h", "uuid": "u", "vcpus": 1, "vcpus_used": 0,
        "memory_mb": 1, "memory_mb_used": 0, "local_gb": 1, "local_gb_used": 0,
        "hypervisor_type": "QEMU", "hypervisor_version": 1});
    host["numa_topology"] = topology.clone();
    let PyValue::Dict(host) = from_json(&host) else {
        panic!("a host is a dict")
    };
    let (cpu, ram, disk) = (1.0, 1.0, 1.0);
    let row = from_dict::compute(&host, &Ratios { cpu, ram, disk }).unwrap();
    row.numa_topology.unwrap()
}

pub(crate) fn host(cells: impl IntoIterator<Item = NumaCell>) -> NumaTopology {
    NumaTopology {
        cells: cells.into_iter().collect(),
    }
}

/// A guest cell of 1 GiB with so many pinned CPUs, `prefer`.
pub(crate) fn pinned(id: i64, cpus: i64) -> InstanceNumaCell {
    InstanceNumaCell {
        id,
        cpuset: Default::default(),
        pcpuset: (id * cpus..(id + 1) * cpus).collect(),
        memory: 1024,
        pagesize: None,
        cpu_policy: Some("dedicated".to_owned()),
        cpu_thread_policy: None,
        cpuset_reserved: None,
        cpu_pinning: None,
    }
}

/// The same with floating CPUs.
pub(crate) fn floating(id: i64, cpus: i64) -> InstanceNumaCell {
    let pinned = pinned(id, cpus);
    InstanceNumaCell {
        cpuset: pinned.pcpuset,
        pcpuset: Default::default(),
        cpu_policy: None,
        ..pinned
    }
}

pub(crate) fn threads(policy: &str, cell: InstanceNumaCell) -> InstanceNumaCell {
    InstanceNumaCell {
        cpu_thread_policy: Some(policy.to_owned()),
        ..cell
    }
}

pub(crate) fn guest(cells: impl IntoIterator<Item = InstanceNumaCell>) -> InstanceNumaTopology {
    InstanceNumaTopology {
        cells: cells.into_iter().collect(),
        emulator_threads_policy: None,
    }
}

fn tags<const N: usize>(tags: [(&str, &str); N]) -> BTreeMap<String, Value> {
    let own = tags.map(|(name, value)| (name.to_owned(), json!(value)));
    own.into_iter().collect()
}

/// VFs of one card.
pub(crate) fn pool(numa_node: Option<i64>, count: i64) -> PciPool {
    PciPool {
        vendor_id: "8086".to_owned(),
        product_id: "1520".to_owned(),
        numa_node,
        count,
        tags: tags([("dev_type", "type-VF")]),
    }
}

pub(crate) fn tagged(tag: &str, value: &str, pool: PciPool) -> PciPool {
    let mut tags = pool.tags;
    tags.insert(tag.to_owned(), json!(value));
    PciPool { tags, ..pool }
}

/// Asks for VFs of that card.
pub(crate) fn devices(count: i64, numa_policy: Option<&str>) -> PciRequest {
    PciRequest {
        count,
        spec: vec![tags([("vendor_id", "8086"), ("product_id", "1520")])],
        alias_name: Some("nic".to_owned()),
        request_id: Some("nic-request".to_owned()),
        requester_id: None,
        numa_policy: numa_policy.map(str::to_owned),
    }
}
