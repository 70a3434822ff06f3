//! What one call costs: the usual host by number of candidates, and the same for a host that cannot
//! win.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ebbtide_solver::{Problem, Scratch, SearchLimits, lower_bound, solve};
use rand::RngExt;

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Columns, Host, distinct_vectors, mixed_flavors, seeded};

/// So many hosts are solved in turn: one host alone would be learnt by the branch predictor.
const HOSTS: u64 = 64;

fn each_host(
    bench: &mut Criterion,
    group: &str,
    size: usize,
    hosts: &[Host],
    limits: SearchLimits,
) {
    let columns: Vec<Columns> = hosts.iter().map(Columns::of).collect();
    let problems: Vec<Problem<'_>> = columns
        .iter()
        .zip(hosts)
        .map(|(columns, host)| columns.problem(host))
        .collect();
    let mut scratch = Scratch::new();
    let mut next = 0;
    bench
        .benchmark_group(group)
        .bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                next = (next + 1) % problems.len();
                let outcome = solve(black_box(&problems[next]), &mut scratch, limits);
                black_box(outcome.is_ok())
            });
        });
}

fn usual_hosts(bench: &mut Criterion) {
    for size in [8, 16, 40] {
        let mut hosts: Vec<Host> = (0..HOSTS)
            .map(|seed| mixed_flavors(&mut seeded(seed), size))
            .collect();
        each_host(bench, "mixed_flavors", size, &hosts, SearchLimits::DEFAULT);

        let search = SearchLimits {
            quick_nodes: 0,
            ..SearchLimits::DEFAULT
        };
        each_host(bench, "mixed_flavors_search_only", size, &hosts, search);

        let columns: Vec<Columns> = hosts.iter().map(Columns::of).collect();
        let problems: Vec<Problem<'_>> = columns
            .iter()
            .zip(&hosts)
            .map(|(columns, host)| columns.problem(host))
            .collect();
        let mut next = 0;
        bench.benchmark_group("lower_bound").bench_function(
            BenchmarkId::from_parameter(size),
            |bencher| {
                bencher.iter(|| {
                    next = (next + 1) % problems.len();
                    black_box(lower_bound(black_box(&problems[next])))
                });
            },
        );

        for host in &mut hosts {
            host.cutoff = Some(1);
        }
        each_host(
            bench,
            "mixed_flavors_that_cannot_win",
            size,
            &hosts,
            SearchLimits::DEFAULT,
        );

        // A large preemptor: half of what all candidates hold.
        for host in &mut hosts {
            host.cutoff = None;
            host.deficit = (0..3)
                .map(|class| {
                    host.candidates
                        .iter()
                        .map(|c| c.resources[class])
                        .sum::<i64>()
                        / 2
                })
                .collect();
        }
        each_host(
            bench,
            "mixed_flavors_half_the_host",
            size,
            &hosts,
            SearchLimits::DEFAULT,
        );

        for host in &mut hosts {
            for (at, candidate) in host.candidates.iter_mut().enumerate() {
                candidate.budgets = vec![at as u32 % 4, 4 + at as u32 % 3];
            }
            host.limits = vec![2; 7];
            host.deficit = vec![4, 4 * 2048, 4 * 20];
        }
        each_host(
            bench,
            "mixed_flavors_with_budgets",
            size,
            &hosts,
            SearchLimits::DEFAULT,
        );
    }
}

fn distinct_hosts(bench: &mut Criterion) {
    let hosts: Vec<Host> = (0..HOSTS)
        .map(|seed| {
            let cost = |rng: &mut rand_pcg::Pcg64Mcg, _: i64| rng.random_range(0..3_600_000_000);
            distinct_vectors(&mut seeded(seed), 40, 3, 10, cost)
        })
        .collect();
    each_host(bench, "distinct_vectors", 40, &hosts, SearchLimits::DEFAULT);
}

fn all(bench: &mut Criterion) {
    usual_hosts(bench);
    distinct_hosts(bench);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(800));
    targets = all
}
criterion_main!(benches);
