//! How long the cloud takes: an ordinary request, the change of a host, a plan on full hosts.

#![allow(unreachable_pub, clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/cloud/kit.rs"]
mod kit;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Cloud, CloudSettings, SchedulingAction};
use std::hint::black_box;

/// Hosts of 8 CPUs, each with four servers of 2.
fn full(hosts: u128, preemptible: bool) -> Cloud {
    let vcpus = vec![8; usize::try_from(hosts).unwrap()];
    let mut cloud = kit::cloud_of(&vcpus, Options::default(), CloudSettings::default());
    for number in 0..hosts * 4 {
        let minutes = i64::try_from(number * 7919 % 600).unwrap();
        kit::settle(
            &mut cloud,
            kit::instance(number, number / 4, 2, minutes, preemptible),
        );
    }
    cloud
}

fn benches(c: &mut Criterion) {
    for hosts in [1000, 5000] {
        let vcpus = vec![8; usize::try_from(hosts).unwrap()];
        let mut cloud = kit::cloud_of(&vcpus, Options::default(), CloudSettings::default());
        let (spec, call) = kit::request(2, 1);
        c.bench_with_input(
            BenchmarkId::new("ordinary request", hosts),
            &hosts,
            |b, _| {
                b.iter(|| {
                    let mut spec = spec.clone();
                    let asked = cloud.ask(&mut spec).unwrap();
                    let candidates = cloud.candidates(&asked).unwrap();
                    let mut scheduling = cloud
                        .decide(spec, call.clone(), &candidates, kit::NOW, None)
                        .unwrap();
                    assert!(matches!(
                        black_box(scheduling.next()),
                        SchedulingAction::Claim(_)
                    ));
                });
            },
        );
        let mut used = 0;
        c.bench_with_input(
            BenchmarkId::new("change of one host", hosts),
            &hosts,
            |b, hosts| {
                b.iter(|| {
                    used += 1;
                    let mut compute = kit::compute(used % hosts, 8);
                    compute.row.free_ram_mb = Some(i64::try_from(used % 1000).unwrap());
                    cloud.put_compute(compute).unwrap();
                });
            },
        );
        let cloud = full(hosts, true);
        c.bench_with_input(BenchmarkId::new("plan", hosts), &hosts, |b, _| {
            b.iter(|| {
                let mut spec = spec.clone();
                let asked = cloud.ask(&mut spec).unwrap();
                let plan = cloud
                    .plan(&spec, &call, &asked, kit::NOW, &Default::default())
                    .unwrap();
                assert_eq!(black_box(plan).victims.len(), 1);
            });
        });
    }
}

criterion_group!(cloud, benches);
criterion_main!(cloud);
