//! The examples under `weighers/examples` and `cost_modules/examples`: each passes its own tests,
//! builds, passes the conformance kit, and ranks as its README shows.

use crate::support::{built, cargo, failures};
use ebbtide_cost_api::{CostModule, NO_END, VictimBatch};
use ebbtide_model::{GroupPolicy, Resources};
use ebbtide_plugin_kit::{Check, Subject, check};
use ebbtide_wasm::{
    Grants, PluginSettings, Sandbox, SandboxLimits, WIT, WasmCostModule, WasmWeigher,
};
use ebbtide_weigher_api::{
    Column, Details, Fact, FactColumn, HostBatch, RequestDetails, RequestView, Texts, Weigher,
};
use std::path::{Path, PathBuf};

/// A column of the table in the README: its name there and in the contract, and one value a row.
type Values<'a> = (&'a str, &'a [&'a str]);

fn directory(kind: &str, name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(kind).join("examples").join(name)
}

fn settings(pairs: &[(&str, &str)]) -> PluginSettings {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Tests it, builds it, and runs the kit over it. Gives its bytes.
fn made(kind: &str, name: &str, set: &PluginSettings) -> Vec<u8> {
    let dir = directory(kind, name);
    let contract = std::fs::read_to_string(dir.join("wit/plugin.wit")).unwrap();
    assert_eq!(contract, WIT, "{name} has another contract");
    let said = cargo(&dir, &["test", "--quiet", "--locked"]);
    assert!(said.contains("test result: ok"), "{said}");
    let build = "build --release --quiet --locked --target wasm32-wasip2";
    cargo(&dir, &build.split(' ').collect::<Vec<_>>());
    let mut subject = Subject::new(&built(name));
    subject.settings = set.clone();
    let checks = check(&subject).unwrap();
    assert_eq!(failures(&checks), Vec::<&Check>::new(), "{name}");
    assert!(checks.iter().any(|check| check.name == "work"));
    refuses_what_it_does_not_know(&subject);
    std::fs::read(built(name)).unwrap()
}

fn refuses_what_it_does_not_know(subject: &Subject) {
    let mut wrong = subject.clone();
    wrong.settings.insert("no_such".to_owned(), "1".to_owned());
    let checks = check(&wrong).unwrap();
    let failed = failures(&checks);
    assert!(
        failed.len() == 1 && failed[0].says.contains("is not a setting"),
        "{checks:?}"
    );
}

/// The table of a README: rows by falling numbers, or by rising ones if less comes first.
fn table(names: &[&str], columns: &[Values<'_>], numbers: &[f64], what: &str) -> String {
    let mut order: Vec<usize> = (0..names.len()).collect();
    let sign = if what == "cost" { 1.0 } else { -1.0 };
    order.sort_by(|a, b| (sign * numbers[*a]).total_cmp(&(sign * numbers[*b])));
    let first = if what == "cost" { "instance" } else { "host" };
    let head = columns.iter().map(|(name, _)| format!(" `{name}` |"));
    let mut text = format!("| {first} |{} {what} |\n", head.collect::<String>());
    text += &format!("|---|{}---|\n", "---|".repeat(columns.len()));
    for row in order {
        let values = columns
            .iter()
            .map(|(_, values)| format!(" {} |", values[row]));
        let values: String = values.collect();
        // Rounded, and no minus before a zero.
        let number = (numbers[row] * 1000.0).round() / 1000.0 + 0.0;
        text += &format!("| {} |{values} {number} |\n", names[row]);
    }
    text
}

fn in_readme(kind: &str, name: &str, table: &str) {
    let readme = std::fs::read_to_string(directory(kind, name).join("README.md")).unwrap();
    assert!(
        readme.contains(table),
        "the README of {name} does not show what it does:\n{table}"
    );
}

fn number(text: &str) -> f64 {
    match text {
        "–" => 0.0,
        _ => text.parse().unwrap(),
    }
}

/// Who is to be placed.
#[derive(Default)]
struct Asks<'a> {
    group_policy: Option<GroupPolicy>,
    extra_specs: &'a [(&'a str, &'a str)],
    image_id: Option<&'a str>,
}

/// What a weigher gives to these hosts for an instance of 2 processors and 4 GiB.
fn weighed(weigher: &WasmWeigher, asks: &Asks<'_>, len: usize, values: &[Values<'_>]) -> Vec<f64> {
    let of = |name: &str| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("it reads {name}")).1
    };
    let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
    for column in weigher.needs() {
        columns[column.index()] = of(column.name()).iter().map(|text| number(text)).collect();
    }
    let facts: Vec<(Fact, FactColumn)> = weigher
        .facts()
        .iter()
        .map(|fact| {
            let said = of(&fact.to_string());
            let mut texts = Texts::default();
            for text in said {
                let text = if *text == "–" { "" } else { *text };
                let known = texts.texts.iter().position(|known| known == text);
                let code = known.unwrap_or(texts.texts.len());
                if code == texts.texts.len() {
                    texts.texts.push(text.to_owned());
                }
                texts.codes.push(code as u32);
            }
            (fact.clone(), FactColumn::Texts(texts))
        })
        .collect();
    let mut resources = Resources::new();
    for (class, amount) in [("VCPU", 2), ("MEMORY_MB", 4096)] {
        resources.set(class.parse().unwrap(), amount).unwrap();
    }
    let request = RequestView {
        project_id: "6d1a4b1f0c9e4c0f9a5e3c2b1a0f9e8d",
        resources: &resources,
        preemptible: false,
        group_policy: asks.group_policy,
        details: RequestDetails {
            flavor: "m1.medium",
            extra_specs: asks.extra_specs,
            image_id: asks.image_id,
            scheduler_hints: &[],
        },
    };
    let hosts = HostBatch {
        len,
        columns: &columns,
        preemptibles: None,
        details: Details {
            facts: &facts,
            ..Details::default()
        },
    };
    weigher
        .carrier()
        .weigh_and_measure(weigher.described(), &request, &hosts)
        .unwrap()
        .0
}

/// The names of the hosts, best first; hosts with the same number together.
fn ranked(names: &[&str], numbers: &[f64]) -> String {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| numbers[*b].total_cmp(&numbers[*a]));
    let mut text = names[order[0]].to_owned();
    for pair in order.windows(2) {
        let same = numbers[pair[0]] == numbers[pair[1]];
        text += if same { " = " } else { " > " };
        text += names[pair[1]];
    }
    text
}

fn weigher(name: &str, set: &[(&str, &str)]) -> WasmWeigher {
    let set = settings(set);
    let bytes = made("weighers", name, &set);
    let compiled = Sandbox::new().unwrap().compile(&bytes).unwrap();
    compiled
        .weigher(name, &set, SandboxLimits::default(), Grants::default())
        .unwrap()
}

fn cost_module(name: &str, set: &[(&str, &str)]) -> WasmCostModule {
    let set = settings(set);
    let bytes = made("cost_modules", name, &set);
    let compiled = Sandbox::new().unwrap().compile(&bytes).unwrap();
    compiled
        .cost_module(name, &set, SandboxLimits::default(), Grants::default())
        .unwrap()
}

#[test]
fn spread_domains_takes_the_rack_without_members_of_the_group() {
    let weigher = weigher("spread_domains", &[]);
    let names = ["a1", "a2", "b1", "b2", "x1"];
    let values: [Values<'_>; 3] = [
        ("text:rack", &["a", "a", "b", "b", "–"]),
        ("group_members", &["1", "0", "0", "0", "0"]),
        ("num_instances", &["3", "1", "9", "7", "12"]),
    ];
    let mut asks = Asks {
        group_policy: Some(GroupPolicy::SoftAntiAffinity),
        ..Asks::default()
    };
    let numbers = weighed(&weigher, &asks, 5, &values);
    assert_eq!(ranked(&names, &numbers), "b1 = b2 > x1 > a1 = a2");
    let table = table(&names, &values, &numbers, "number");
    in_readme("weighers", "spread_domains", &table);
    asks.group_policy = None;
    let numbers = weighed(&weigher, &asks, 5, &values);
    assert_eq!(ranked(&names, &numbers), "a1 = a2 > b1 = b2 > x1");
}

#[test]
fn pack_power_fills_what_is_running_and_overcommits_nothing() {
    let weigher = weigher("pack_power", &[]);
    let names = ["a1", "a2", "a3", "a4", "b1"];
    let values: [Values<'_>; 4] = [
        ("text:rack", &["a", "a", "a", "a", "b"]),
        ("num_instances", &["6", "2", "0", "9", "0"]),
        ("free_vcpus", &["4", "12", "16", "1", "16"]),
        ("free_ram_mb", &["16384", "49152", "65536", "2048", "65536"]),
    ];
    let numbers = weighed(&weigher, &Asks::default(), 5, &values);
    assert_eq!(ranked(&names, &numbers), "a1 > a2 > a3 > b1 > a4");
    let table = table(&names, &values, &numbers, "number");
    in_readme("weighers", "pack_power", &table);
}

#[test]
fn keep_licences_brings_those_to_the_licence_who_need_it_and_keeps_others_away() {
    let weigher = weigher("keep_licences", &[]);
    let names = ["plain", "oracle", "both", "windows"];
    let values: [Values<'_>; 1] = [(
        "text:licence",
        &["–", "oracle", "oracle,windows", "windows"],
    )];
    let asks = Asks {
        extra_specs: &[("licence", "oracle")],
        ..Asks::default()
    };
    let numbers = weighed(&weigher, &asks, 4, &values);
    assert_eq!(ranked(&names, &numbers), "oracle > both > plain > windows");
    let table = table(&names, &values, &numbers, "number");
    in_readme("weighers", "keep_licences", &table);
    let numbers = weighed(&weigher, &Asks::default(), 4, &values);
    assert_eq!(ranked(&names, &numbers), "plain > oracle = windows > both");
}

#[test]
fn cached_images_prefers_the_hosts_that_have_it() {
    let weigher = weigher("cached_images", &[]);
    let names = ["a", "b", "c"];
    let debian = "3b1e0c1a-5a0e-4a51-9a40-1f0d3c1c8a11";
    let both = "3b1e0c1a-5a0e-4a51-9a40-1f0d3c1c8a11,c0ffee00-1111-4222-8333-444455556666";
    let values: [Values<'_>; 1] = [("text:cached_images", &["–", debian, both])];
    let asks = Asks {
        image_id: Some("c0ffee00-1111-4222-8333-444455556666"),
        ..Asks::default()
    };
    let numbers = weighed(&weigher, &asks, 3, &values);
    assert_eq!(ranked(&names, &numbers), "c > a = b");
    let table = table(&names, &values, &numbers, "number");
    in_readme("weighers", "cached_images", &table);
    let numbers = weighed(&weigher, &Asks::default(), 3, &values);
    assert_eq!(ranked(&names, &numbers), "a = b = c");
}

/// What a cost module gives to instances of these ages, processors, memory and prices.
fn costs(module: &WasmCostModule, rows: &[[f64; 4]]) -> Vec<f64> {
    let unknown = module.facts().iter();
    let unknown: Vec<_> = unknown
        .map(|fact| (fact.clone(), fact.unknown(rows.len())))
        .collect();
    costs_on(module, rows, &unknown)
}

/// The same on hosts of which something is known.
fn costs_on(module: &WasmCostModule, rows: &[[f64; 4]], facts: &[(Fact, FactColumn)]) -> Vec<f64> {
    let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<f64>>();
    let len = rows.len();
    let batch = VictimBatch {
        len,
        age_seconds: &column(0),
        vcpus: &column(1),
        memory_mb: &column(2),
        price_per_hour: &column(3),
        max_price: &column(3),
        priority: &vec![0; len],
        project: &vec![0; len],
        ends_in_seconds: &vec![NO_END; len],
        flavors: None,
        facts,
    };
    let mut out = vec![f64::NAN; len];
    module.cost(&batch, &mut out).unwrap();
    out
}

#[test]
fn remaining_life_takes_who_would_be_gone_first() {
    let module = cost_module("remaining_life", &[]);
    let names = ["new", "survivor", "half", "old"];
    let ages = [600.0, 10_800.0, 43_200.0, 84_600.0];
    let rows = ages.map(|age| [age, 2.0, 4096.0, 0.1]);
    let numbers = costs(&module, &rows);
    let values: [Values<'_>; 1] = [("age_seconds", &["600", "10800", "43200", "84600"])];
    let table = table(&names, &values, &numbers, "cost");
    in_readme("cost_modules", "remaining_life", &table);
    assert_eq!(ranked(&names, &numbers), "survivor > new > half > old");
}

#[test]
fn owner_fairness_takes_a_larger_one_before_three_of_one_project() {
    let module = cost_module("owner_fairness", &[]);
    let numbers = costs(
        &module,
        &[2.0, 8.0].map(|vcpus| [600.0, vcpus, 4096.0, 0.1]),
    );
    assert_eq!(numbers, [2.0, 8.0]);
    let nth: Vec<f64> = (1..=4).map(|n| module.nth_of_a_project(n)).collect();
    assert_eq!(nth, [0.0, 4.0, 8.0, 12.0]);
    let three_of_one = 3.0 * numbers[0] + nth[0] + nth[1] + nth[2];
    let three_of_three = 3.0 * (numbers[0] + nth[0]);
    let large = numbers[1] + nth[0];
    let sets = ["three of three projects", "large", "three of one project"];
    let sums = [three_of_three, large, three_of_one];
    assert_eq!(
        ranked(&sets, &sums),
        "three of one project > large > three of three projects"
    );
    let values: [Values<'_>; 1] = [("vcpus", &["2 + 2 + 2", "8", "2 + 2 + 2"])];
    let table = table(&sets, &values, &sums, "cost");
    in_readme("cost_modules", "owner_fairness", &table);
}

#[test]
fn energy_price_turns_the_order_when_power_is_dear() {
    let names = ["small", "large"];
    let rows = [[600.0, 2.0, 4096.0, 0.02], [600.0, 64.0, 131_072.0, 0.16]];
    let values: [Values<'_>; 3] = [
        ("vcpus", &["2", "64"]),
        ("memory_mb", &["4096", "131072"]),
        ("price_per_hour", &["0.02", "0.16"]),
    ];
    for (price, order) in [("0.10", "large > small"), ("0.35", "small > large")] {
        let module = cost_module("energy_price", &[("price_per_kwh", price)]);
        let numbers = costs(&module, &rows);
        assert_eq!(ranked(&names, &numbers), order);
        let table = table(&names, &values, &numbers, "cost");
        in_readme("cost_modules", "energy_price", &table);
    }
}

#[test]
fn energy_price_goes_by_what_the_hosts_say_before_the_setting() {
    let module = cost_module("energy_price", &[("price_per_kwh", "0.35")]);
    let rows = [[600.0, 8.0, 16_384.0, 0.05]; 3];
    let column = |numbers: [f64; 3]| FactColumn::Numbers(numbers.to_vec());
    let facts = [
        ("has:power_price", column([1.0, 1.0, 0.0])),
        ("number:power_price", column([0.05, 0.6, 0.0])),
    ];
    let facts = facts.map(|(name, column)| (name.parse::<Fact>().unwrap(), column));
    let numbers = costs_on(&module, &rows, &facts);
    let names = ["cheap power", "dear power", "as the setting"];
    assert_eq!(
        ranked(&names, &numbers),
        "cheap power > as the setting > dear power"
    );
}

#[test]
fn licence_hosts_and_noisy_neighbours_are_filters_that_conform() {
    let licences = settings(&[("hosts", "oracle=2")]);
    made("weighers", "licence_hosts", &licences);
    made("weighers", "noisy_neighbours", &settings(&[("most", "5")]));
}
