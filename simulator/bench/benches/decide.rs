//! How long one decision takes, for comparing two versions of the code on the same machine: `cargo
//! bench -p ebbtide-bench --bench decide`. Percentiles over mixed requests, and checks, are in
//! `ebbtide-lab bench`.

// A benchmark that cannot set up its cloud has nothing to say.
#![allow(clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ebbtide_bench::workload::Workload;
use std::hint::black_box;

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide");
    group.sample_size(20);
    for hosts in [1_000, 10_000] {
        let workloads = [
            ("ordinary", Workload::ordinary(hosts)),
            ("preempting", Workload::preempting(hosts, 16)),
        ];
        for (name, workload) in workloads {
            let workload = workload.unwrap();
            let mut turn = 0;
            group.bench_function(BenchmarkId::new(name, hosts), |b| {
                b.iter(|| {
                    turn += 1;
                    black_box(workload.decide(turn).unwrap())
                });
            });
        }
    }
    group.finish();
}

criterion_group!(all, decisions);
criterion_main!(all);
