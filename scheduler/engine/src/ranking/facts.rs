//! What operators say of hosts, as columns for the weighers that read it. Whatever depends on aggregates is worked out once for each aggregate set.

use super::Place;
use crate::pyfloat::python_float;
use crate::state::State;
use crate::table::{ClassColumns, HostIndex};
use ebbtide_model::ResourceClass;
use ebbtide_weigher_api::{Fact, FactColumn, Texts};
use std::collections::{BTreeSet, HashMap};

/// The column of a fact over these hosts.
pub(crate) fn column(state: &State<'_>, places: &[Place], fact: &Fact) -> FactColumn {
    let table = state.table;
    match fact {
        Fact::Trait(name) => {
            let has = |host: HostIndex| {
                let traits = table.traits(table.trait_set(host));
                traits.iter().any(|known| known.as_str() == name)
            };
            by_set(places, |host| table.trait_set(host), has)
        }
        Fact::Number(key) => by_aggregates(state, places, |host| {
            number(state, host, key).unwrap_or(0.0)
        }),
        Fact::Has(key) => by_aggregates(state, places, |host| {
            f64::from(u8::from(number(state, host, key).is_some()))
        }),
        Fact::Text(key) => texts(state, places, |host| said(state, host, key)),
        Fact::AvailabilityZone => texts(state, places, |host| {
            let set = table.aggregate_set(host);
            let zones: BTreeSet<&str> = table.aggregate_sets().zones(set).into_iter().collect();
            joined(&zones)
        }),
        Fact::Total(class) => {
            by_class(state, places, class, |columns, at| columns.total[at] as f64)
        }
        Fact::Used(class) => by_class(state, places, class, |columns, at| {
            (columns.normal[at] + columns.preemptible[at] + columns.leaving[at]) as f64
        }),
        Fact::AllocationRatio(class) => {
            by_class(state, places, class, |columns, at| columns.ratio[at])
        }
        Fact::Aggregates => texts(state, places, |host| aggregates(state, host)),
        // No two hosts share one.
        Fact::HostName => {
            let names = places
                .iter()
                .map(|place| table.host_name(place.host).to_owned());
            FactColumn::Texts(Texts {
                codes: (0..places.len()).map(code).collect(),
                texts: names.collect(),
            })
        }
    }
}

/// A yes or no that is the same for all hosts of a set.
fn by_set(
    places: &[Place],
    set_of: impl Fn(HostIndex) -> u32,
    holds: impl Fn(HostIndex) -> bool,
) -> FactColumn {
    let mut known: HashMap<u32, f64> = HashMap::new();
    let value = |place: &Place| {
        let entry = known.entry(set_of(place.host));
        *entry.or_insert_with(|| f64::from(u8::from(holds(place.host))))
    };
    FactColumn::Numbers(places.iter().map(value).collect())
}

fn by_aggregates(
    state: &State<'_>,
    places: &[Place],
    value: impl Fn(HostIndex) -> f64,
) -> FactColumn {
    let mut known: HashMap<u32, f64> = HashMap::new();
    let each = places.iter().map(|place| {
        let entry = known.entry(state.table.aggregate_set(place.host));
        *entry.or_insert_with(|| value(place.host))
    });
    FactColumn::Numbers(each.collect())
}

/// What is known of a resource class; 0 where nobody has or uses it.
fn by_class(
    state: &State<'_>,
    places: &[Place],
    class: &str,
    value: impl Fn(&ClassColumns, usize) -> f64,
) -> FactColumn {
    let class: Option<ResourceClass> = class.parse().ok();
    let columns = class.and_then(|class| state.table.class(&class));
    let value = |place: &Place| columns.map_or(0.0, |columns| value(columns, place.host.at()));
    FactColumn::Numbers(places.iter().map(value).collect())
}

/// The host's aggregates as JSON.
fn aggregates(state: &State<'_>, host: HostIndex) -> String {
    let sets = state.table.aggregate_sets();
    let mut all: Vec<_> = sets.in_set(state.table.aggregate_set(host)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let each = all.iter().map(
        |aggregate| serde_json::json!({"name": aggregate.name, "metadata": aggregate.metadata}),
    );
    serde_json::Value::Array(each.collect()).to_string()
}

/// The smallest number that the host's aggregates have under a key. What is not a finite number says nothing.
fn number(state: &State<'_>, host: HostIndex, key: &str) -> Option<f64> {
    let sets = state.table.aggregate_sets();
    let values = sets
        .in_set(state.table.aggregate_set(host))
        .filter_map(|aggregate| python_float(aggregate.metadata.get(key)?))
        .filter(|value| value.is_finite());
    values.min_by(f64::total_cmp)
}

fn said(state: &State<'_>, host: HostIndex, key: &str) -> String {
    let sets = state.table.aggregate_sets();
    let values = sets.in_set(state.table.aggregate_set(host));
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
fn texts(state: &State<'_>, places: &[Place], text: impl Fn(HostIndex) -> String) -> FactColumn {
    let mut of_set: HashMap<u32, u32> = HashMap::new();
    let mut column = Texts::default();
    for place in places {
        let set = state.table.aggregate_set(place.host);
        let known = of_set.entry(set).or_insert_with(|| {
            let text = text(place.host);
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
