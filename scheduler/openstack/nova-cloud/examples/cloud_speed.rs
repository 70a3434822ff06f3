//! Prints how long the cloud takes and how much memory it needs: `cargo run --release -p
//! ebbtide-nova-cloud --example cloud_speed`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example that measures"
)]
#![allow(unreachable_pub, reason = "an example")]

#[path = "../tests/cloud/kit.rs"]
mod kit;

use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Cloud, CloudSettings, SchedulingAction};
use std::time::Instant;

/// Resident memory in kB, as Linux tells it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// Median of many runs, in microseconds.
fn median(runs: usize, mut run: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|at| {
            let start = Instant::now();
            run(at);
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn full(hosts: u128) -> Cloud {
    let vcpus = vec![8; usize::try_from(hosts).unwrap()];
    let mut cloud = kit::cloud_of(&vcpus, Options::default(), CloudSettings::default());
    for number in 0..hosts * 4 {
        let minutes = i64::try_from(number * 7919 % 600).unwrap();
        kit::settle(
            &mut cloud,
            kit::instance(number, number / 4, 2, minutes, true),
        );
    }
    cloud
}

fn main() {
    println!(
        "hosts   request  +reference  3 instances  change of host  claim+release    plan  plan 3  kB/host  kB/host+4"
    );
    for hosts in [100_u128, 1000, 5000] {
        let many = usize::try_from(hosts).unwrap();
        let before = resident();
        let mut cloud = kit::cloud_of(&vec![8; many], Options::default(), CloudSettings::default());
        let empty = resident().saturating_sub(before);
        let decide = |cloud: &Cloud, instances: u128| {
            let (mut spec, call) = kit::request(2, instances);
            let asked = cloud.ask(&mut spec).unwrap();
            let candidates = cloud.candidates(&asked).unwrap();
            let mut scheduling = cloud
                .decide(spec, call, &candidates, kit::NOW, None)
                .unwrap();
            while let SchedulingAction::Claim(_) = scheduling.next() {
                scheduling.claimed(ebbtide_nova_cloud::ClaimResult::Taken);
            }
            assert!(matches!(scheduling.next(), SchedulingAction::Done(_)));
        };
        let ordinary = median(300, |_| decide(&cloud, 1));
        let several = median(50, |_| decide(&cloud, 3));
        // One host that Nova cannot weigh by columns sends everybody the reference's way: a
        // multiplier that is infinite.
        let wild = ebbtide_nova::model::Aggregate {
            id: 1,
            uuid: kit::fresh(1).to_string(),
            name: "wild".to_owned(),
            hosts: vec!["host0".to_owned()],
            metadata: [("ram_weight_multiplier".to_owned(), "1e200".to_owned())].into(),
        };
        cloud.put_aggregate(wild);
        let reference = median(50, |_| decide(&cloud, 1));
        cloud.remove_aggregate(1);
        let change = median(2000, |at| {
            let mut compute = kit::compute(at as u128 % hosts, 8);
            compute.row.free_ram_mb = Some(i64::try_from(at % 1000).unwrap());
            cloud.put_compute(compute).unwrap();
        });
        let build = median(2000, |at| {
            let mut compute = kit::compute(at as u128 % hosts, 8);
            compute.row.free_ram_mb = Some(i64::try_from(at % 1000).unwrap());
            std::hint::black_box(compute);
        });
        let allocations = [(
            kit::node(1),
            [("VCPU".to_owned(), 1), ("MEMORY_MB".to_owned(), 1)].into(),
        )]
        .into();
        let claims = median(2000, |_| {
            cloud.claimed(kit::fresh(1), &allocations, None);
            cloud.released(kit::fresh(1));
        });
        drop(cloud);
        let before = resident();
        let cloud = full(hosts);
        let filled = resident().saturating_sub(before);
        let plan = |instances: u128| {
            let (mut spec, call) = kit::request(2, instances);
            let asked = cloud.ask(&mut spec).unwrap();
            let plan = cloud
                .plan(&spec, &call, &asked, kit::NOW, &Default::default())
                .unwrap();
            assert!(!plan.victims.is_empty());
        };
        let one = median(100, |_| plan(1));
        let three = median(50, |_| plan(3));
        println!(
            "{hosts:5} {ordinary:7.0} us {reference:8.0} us {several:9.0} us {:12.1} us {claims:11.1} us {one:6.0} us {three:6.0} us {:6} {:6}",
            change - build,
            empty / u64::try_from(hosts).unwrap(),
            filled / u64::try_from(hosts).unwrap()
        );
    }
}
