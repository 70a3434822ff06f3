//! How many instructions one decision takes. Counts do not depend on how busy the machine is, so CI can compare them.
//!
//! `cargo bench -p ebbtide-bench --bench instructions`. Needs valgrind and the runner of the same version:
//! `cargo install --locked gungraun-runner --version 0.20.0`. Tables are built before anything is counted.

// A benchmark that cannot set up its cloud has nothing to say; the macros make public functions.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

use ebbtide_bench::workload::Workload;
use ebbtide_model::Decision;
use gungraun::{library_benchmark, library_benchmark_group, main};
use std::hint::black_box;

fn ordinary(hosts: u32) -> Workload {
    Workload::ordinary(hosts).unwrap()
}

fn preempting(hosts: u32, preemptibles: u32) -> Workload {
    Workload::preempting(hosts, preemptibles).unwrap()
}

#[library_benchmark]
#[bench::ordinary_1000(args = (1000), setup = ordinary)]
#[bench::preempting_1000_of_16(args = (1000, 16), setup = preempting)]
fn decide(workload: Workload) -> (Workload, Decision) {
    // Given back, so that freeing the cloud is not counted.
    let decision = black_box(&workload).decide(black_box(0)).unwrap();
    (workload, decision)
}

library_benchmark_group!(name = decisions, benchmarks = decide);
main!(library_benchmark_groups = decisions);
