//! How many instructions one decision takes. Counts do not depend on how busy the machine is, so CI
//! can compare them.
//!
//! `cargo bench -p ebbtide-bench --bench instructions`. Needs valgrind and the runner of the same
//! version: `cargo install --locked gungraun-runner --version 0.20.0`. Tables are built before
//! anything is counted.

// A benchmark that cannot set up its cloud has nothing to say; the macros make public functions.
#![allow(clippy::unwrap_used, unreachable_pub)]

use ebbtide_bench::nova::read_input;
use ebbtide_bench::workload::Workload;
use ebbtide_model::Decision;
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::table::CloudTable;
use gungraun::{library_benchmark, library_benchmark_group, main};
use std::hint::black_box;
use std::path::Path;

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

/// Nova's benchmark input of a thousand hosts, as columns, in a scheduler that has answered other
/// requests already.
fn nova(file: &str) -> (CloudTable, RequestSpec) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../integration/nova/bench")
        .join(file);
    let input = read_input(&path).unwrap();
    let cloud = input.cloud();
    for other in &input.requests[1..] {
        cloud.decide(other, 20).unwrap();
    }
    (cloud, input.requests[0].clone())
}

#[library_benchmark]
#[bench::nova_1000(args = ("hosts_1000.jsonl.gz"), setup = nova)]
fn decide_as_nova((cloud, request): (CloudTable, RequestSpec)) -> (CloudTable, RequestSpec, usize) {
    let decision = cloud.decide(black_box(&request), 20).unwrap();
    (cloud, request, black_box(decision.passing))
}

library_benchmark_group!(name = decisions, benchmarks = [decide, decide_as_nova]);
main!(library_benchmark_groups = decisions);
