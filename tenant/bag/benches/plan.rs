//! Plans for 10,000 tasks over 15 types: the goal is under two seconds.

// A benchmark that cannot plan has nothing to measure.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use criterion::{Criterion, criterion_group, criterion_main};
use ebbtide_bag::simulate::{Scenario, simulate};
use ebbtide_bag::{Bag, Effort, InstanceType, Rules, Task, plan};
use ebbtide_model::Money;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Durations of half an hour to two days, four sizes of memory (or one), 15 types from 2 to 64
/// vCPUs; a day and a half as deadline.
fn bag(tasks: usize, sizes: u64) -> Bag {
    let mut chance = Pcg64Mcg::seed_from_u64(8);
    let tasks = (0..tasks)
        .map(|at| Task {
            name: format!("t{at}"),
            seconds: chance.random_range(1_800..172_800),
            memory_mb: 1024 * chance.random_range(1..=sizes),
            checkpoints: None,
        })
        .collect();
    let types = (0..15u32)
        .map(|at| {
            let vcpus = 2 << (at % 6);
            InstanceType {
                name: format!("v{at}"),
                vcpus,
                memory_mb: u64::from(vcpus) * (2 << (at % 3)) * 1024,
                on_demand: Some(Money::from_micros(u64::from(vcpus * (45_000 + at * 700)))),
                preemptible: Some(Money::from_micros(u64::from(vcpus * (13_000 + at * 300)))),
                slowdown: 0.7 - f64::from(at) * 0.03,
            }
        })
        .collect();
    let rules = Rules {
        deadline: 36 * 3600,
        boot: 60,
        ..Rules::default()
    };
    Bag::new(tasks, types, rules).unwrap()
}

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bag");
    group.sample_size(10);
    for sizes in [1, 4] {
        let bag = bag(10_000, sizes);
        group.bench_function(
            format!("greedy plan, 10000 tasks, 15 types, {sizes} sizes"),
            |b| {
                b.iter(|| plan(&bag, Effort::Greedy));
            },
        );
        group.bench_function(
            format!("searched plan, 10000 tasks, 15 types, {sizes} sizes"),
            |b| {
                b.iter(|| plan(&bag, Effort::usual(1)));
            },
        );
        let greedy = plan(&bag, Effort::Greedy);
        let searched = plan(&bag, Effort::usual(1));
        group.bench_function(
            format!("a quiet run, 10000 tasks, 15 types, {sizes} sizes"),
            |b| {
                b.iter(|| simulate(&bag, &searched, &Scenario::default()).unwrap());
            },
        );
        assert_eq!(searched.flaw(&bag), None);
        let dollars = |micros: u64| micros as f64 / 1e6;
        eprintln!(
            "greedy {} $ ({} instances), searched {} $ ({}), bound {} $",
            dollars(greedy.price.quiet()),
            greedy.vms.len(),
            dollars(searched.price.quiet()),
            searched.vms.len(),
            dollars(searched.bound)
        );
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
