//! What operators say of hosts, as columns for the weighers that read it. Whatever depends on
//! aggregates is worked out once for each aggregate set.

use crate::HostTable;
use crate::table::{ClassColumns, HostIndex};
use ebbtide_model::ResourceClass;
use ebbtide_model::python::number::float;
use ebbtide_weigher_api::{Fact, FactColumn, Texts};
use std::collections::{BTreeSet, HashMap};

/// The column of a fact over these hosts.
pub(crate) fn column(table: &HostTable, hosts: &[HostIndex], fact: &Fact) -> FactColumn {
    match fact {
        Fact::Trait(name) => {
            let has = |host: HostIndex| {
                let traits = table.traits(table.trait_set(host));
                traits.iter().any(|known| known.as_str() == name)
            };
            by_set(hosts, |host| table.trait_set(host), has)
        }
        Fact::Number(key) => {
            by_aggregates(table, hosts, |host| number(table, host, key).unwrap_or(0.0))
        }
        Fact::Has(key) => by_aggregates(table, hosts, |host| {
            f64::from(u8::from(number(table, host, key).is_some()))
        }),
        Fact::Text(key) => texts(table, hosts, |host| said(table, host, key)),
        Fact::AvailabilityZone => texts(table, hosts, |host| {
            let set = table.aggregate_set(host);
            let zones: BTreeSet<&str> = table.aggregate_sets().zones(set).into_iter().collect();
            joined(&zones)
        }),
        Fact::Total(class) => by_class(table, hosts, class, |columns, at| columns.total[at] as f64),
        Fact::Used(class) => by_class(table, hosts, class, |columns, at| {
            (columns.normal[at] + columns.preemptible[at] + columns.leaving[at]) as f64
        }),
        Fact::AllocationRatio(class) => {
            by_class(table, hosts, class, |columns, at| columns.ratio[at])
        }
        Fact::Aggregates => texts(table, hosts, |host| aggregates(table, host)),
        Fact::HostName => {
            let mut known: HashMap<HostIndex, u32> = HashMap::new();
            let mut column = Texts::default();
            for host in hosts {
                // Candidates share hosts, hosts do not share names.
                let next = code(column.texts.len());
                let own = *known.entry(*host).or_insert(next);
                if own == next {
                    column.texts.push(table.host_name(*host).to_owned());
                }
                column.codes.push(own);
            }
            FactColumn::Texts(column)
        }
    }
}

/// A yes or no that is the same for all hosts of a set.
fn by_set(
    hosts: &[HostIndex],
    set_of: impl Fn(HostIndex) -> u32,
    holds: impl Fn(HostIndex) -> bool,
) -> FactColumn {
    let mut known: HashMap<u32, f64> = HashMap::new();
    let value = |host: &HostIndex| {
        let entry = known.entry(set_of(*host));
        *entry.or_insert_with(|| f64::from(u8::from(holds(*host))))
    };
    FactColumn::Numbers(hosts.iter().map(value).collect())
}

fn by_aggregates(
    table: &HostTable,
    hosts: &[HostIndex],
    value: impl Fn(HostIndex) -> f64,
) -> FactColumn {
    let mut known: HashMap<u32, f64> = HashMap::new();
    let each = hosts.iter().map(|host| {
        let entry = known.entry(table.aggregate_set(*host));
        *entry.or_insert_with(|| value(*host))
    });
    FactColumn::Numbers(each.collect())
}

/// A value of a resource class for each host; 0 if no host has the class and no instance uses it.
fn by_class(
    table: &HostTable,
    hosts: &[HostIndex],
    class: &str,
    value: impl Fn(&ClassColumns, usize) -> f64,
) -> FactColumn {
    let class: Option<ResourceClass> = class.parse().ok();
    let columns = class.and_then(|class| table.class(&class));
    let value = |host: &HostIndex| columns.map_or(0.0, |columns| value(columns, host.at()));
    FactColumn::Numbers(hosts.iter().map(value).collect())
}

/// What normal instances use of a resource class, and what no eviction frees.
pub(super) fn used_normal(table: &HostTable, hosts: &[HostIndex], class: &str) -> Vec<f64> {
    let class: Option<ResourceClass> = class.parse().ok();
    let columns = class.and_then(|class| table.class(&class));
    let used = |host: &HostIndex| columns.map_or(0, |columns| columns.normal[host.at()]) as f64;
    hosts.iter().map(used).collect()
}

/// The host's aggregates as JSON.
fn aggregates(table: &HostTable, host: HostIndex) -> String {
    let sets = table.aggregate_sets();
    let mut all: Vec<_> = sets.in_set(table.aggregate_set(host)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let each = all.iter().map(
        |aggregate| serde_json::json!({"name": aggregate.name, "metadata": aggregate.metadata}),
    );
    serde_json::Value::Array(each.collect()).to_string()
}

/// The smallest number that the host's aggregates have under a key. What is not a finite number
/// says nothing.
fn number(table: &HostTable, host: HostIndex, key: &str) -> Option<f64> {
    let sets = table.aggregate_sets();
    let values = sets
        .in_set(table.aggregate_set(host))
        .filter_map(|aggregate| float(aggregate.metadata.get(key)?))
        .filter(|value| value.is_finite());
    values.min_by(f64::total_cmp)
}

fn said(table: &HostTable, host: HostIndex, key: &str) -> String {
    let sets = table.aggregate_sets();
    let values = sets.in_set(table.aggregate_set(host));
    let values = values.filter_map(|aggregate| aggregate.metadata.get(key));
    joined(&values.map(String::as_str).collect())
}

fn joined(words: &BTreeSet<&str>) -> String {
    let words: Vec<&str> = words.iter().copied().collect();
    words.join(",")
}

fn code(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Texts that depend on the host's aggregates.
fn texts(table: &HostTable, hosts: &[HostIndex], text: impl Fn(HostIndex) -> String) -> FactColumn {
    let mut of_set: HashMap<u32, u32> = HashMap::new();
    let mut column = Texts::default();
    for host in hosts {
        let set = table.aggregate_set(*host);
        let known = of_set.entry(set).or_insert_with(|| {
            let text = text(*host);
            // Several sets may say the same.
            let same = column.texts.iter().position(|known| *known == text);
            code(same.unwrap_or_else(|| {
                column.texts.push(text);
                column.texts.len() - 1
            }))
        });
        column.codes.push(*known);
    }
    FactColumn::Texts(column)
}
