//! What the operator's weighers read of Nova's host states and requests, beyond columns.

use crate::filters::PreemptibleHold;
use crate::model::{HostState, Options, RequestSpec};
use crate::python::number;
use ebbtide_model::{ResourceClass, Resources};
use ebbtide_weigher_api::{Fact, FactColumn, Texts};
use std::collections::{BTreeMap, BTreeSet};

/// The columns of facts over these hosts.
pub(super) fn fill(
    facts: &[Fact],
    hosts: &[&HostState],
    options: &Options,
) -> Vec<(Fact, FactColumn)> {
    let each = facts.iter();
    each.map(|fact| (fact.clone(), column(fact, hosts, options)))
        .collect()
}

/// Turns facts of h_f into those of h_n: what preemptible instances hold is not in use.
pub(super) fn hide(facts: &mut [(Fact, FactColumn)], hidden: &[PreemptibleHold]) {
    for (fact, column) in facts {
        let (Fact::Used(class), FactColumn::Numbers(numbers)) = (&*fact, column) else {
            continue;
        };
        for (used, held) in numbers.iter_mut().zip(hidden) {
            *used -= match class.as_str() {
                "VCPU" => held.vcpus as f64,
                "MEMORY_MB" => held.memory_mb as f64,
                "DISK_GB" => held.disk_gb as f64,
                _ => 0.0,
            };
        }
    }
}

fn column(fact: &Fact, hosts: &[&HostState], options: &Options) -> FactColumn {
    let numbers = |value: &dyn Fn(&HostState) -> f64| {
        FactColumn::Numbers(hosts.iter().map(|host| value(host)).collect())
    };
    match fact {
        // Traits are Placement's; Nova's weighers do not see them.
        Fact::Trait(_) => fact.unknown(hosts.len()),
        Fact::Number(key) => numbers(&|host| smallest(host, key).unwrap_or(0.0)),
        Fact::Has(key) => numbers(&|host| f64::from(u8::from(smallest(host, key).is_some()))),
        Fact::Total(class) => numbers(&|host| total(host, class)),
        Fact::Used(class) => numbers(&|host| used(host, class)),
        Fact::AllocationRatio(class) => numbers(&|host| ratio(host, class)),
        Fact::Text(key) => texts(hosts, |host| joined(said(host, key))),
        Fact::Aggregates => texts(hosts, aggregates),
        Fact::HostName => texts(hosts, |host| host.host.clone()),
        Fact::AvailabilityZone => texts(hosts, |host| {
            let zones = joined(said(host, "availability_zone"));
            match zones.is_empty() {
                true => options.default_availability_zone.clone(),
                false => zones,
            }
        }),
    }
}

/// What the host's aggregates say under a key.
fn said<'a>(host: &'a HostState, key: &'a str) -> impl Iterator<Item = &'a str> {
    let aggregates = host.aggregates.iter();
    aggregates
        .filter_map(move |aggregate| aggregate.metadata.get(key))
        .map(String::as_str)
}

fn smallest(host: &HostState, key: &str) -> Option<f64> {
    let numbers = said(host, key).filter_map(number::float);
    numbers
        .filter(|number| number.is_finite())
        .min_by(f64::total_cmp)
}

fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: BTreeSet<&str> = words.collect();
    words.into_iter().collect::<Vec<&str>>().join(",")
}

fn total(host: &HostState, class: &str) -> f64 {
    match class {
        "VCPU" => host.vcpus_total as f64,
        "MEMORY_MB" => host.total_usable_ram_mb as f64,
        "DISK_GB" => host.total_usable_disk_gb as f64,
        _ => 0.0,
    }
}

fn used(host: &HostState, class: &str) -> f64 {
    match class {
        "VCPU" => host.vcpus_used as f64,
        "MEMORY_MB" => (host.total_usable_ram_mb - host.free_ram_mb.unwrap_or(0)) as f64,
        "DISK_GB" => host.disk_mb_used as f64 / 1024.0,
        _ => 0.0,
    }
}

fn ratio(host: &HostState, class: &str) -> f64 {
    let ratio = match class {
        "VCPU" => host.cpu_allocation_ratio,
        "MEMORY_MB" => host.ram_allocation_ratio,
        "DISK_GB" => host.disk_allocation_ratio,
        _ => None,
    };
    ratio.unwrap_or(0.0)
}

fn aggregates(host: &HostState) -> String {
    let mut all: Vec<_> = host.aggregates.iter().collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let each = all.iter().map(
        |aggregate| serde_json::json!({"name": aggregate.name, "metadata": aggregate.metadata}),
    );
    serde_json::Value::Array(each.collect()).to_string()
}

fn texts(hosts: &[&HostState], text: impl Fn(&HostState) -> String) -> FactColumn {
    let mut column = Texts::default();
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    for host in hosts {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let text = text(host);
        let code = *known.entry(text.clone()).or_insert(next);
        if code == next {
            column.texts.push(text);
        }
        column.codes.push(code);
    }
    FactColumn::Texts(column)
}

/// What one instance of the request takes.
pub(super) fn resources(spec: &RequestSpec) -> Resources {
    let flavor = &spec.flavor;
    let swap_gb = (flavor.swap.max(0) + 1023) / 1024;
    let amounts = [
        (ResourceClass::vcpu(), flavor.vcpus),
        (ResourceClass::memory_mb(), flavor.memory_mb),
        (
            ResourceClass::disk_gb(),
            flavor.root_gb + flavor.ephemeral_gb + swap_gb,
        ),
    ];
    let mut resources = Resources::new();
    for (class, amount) in amounts {
        // A negative amount, or one beyond all bounds, is one that a weigher need not know.
        if let Ok(amount) = u64::try_from(amount) {
            let _ = resources.set(class, amount);
        }
    }
    resources
}
