//! Prints what the explanation of a decision costs, apart from the decision: `cargo run --release
//! -p ebbtide-nova-cloud --example explain_cost`.

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
use ebbtide_nova_cloud::{ClaimResult, Cloud, CloudSettings, Scheduling, SchedulingAction};
use std::hint::black_box;
use std::time::Instant;

/// Requests of one measurement.
const REQUESTS: usize = 500;

/// Median, in microseconds.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn decided(cloud: &Cloud) -> Scheduling {
    let (mut spec, call) = kit::request(2, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud
        .decide(spec, call, &candidates, kit::NOW, None)
        .unwrap();
    while let SchedulingAction::Claim(_) = scheduling.next() {
        scheduling.claimed(ClaimResult::Taken);
    }
    scheduling
}

/// How long `work` takes, and what comes of it.
fn timed<T>(times: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    times.push(start.elapsed().as_secs_f64() * 1e6);
    done
}

fn main() {
    println!("hosts   decision  its record  explanation  Placement's step   JSON   bytes");
    for hosts in [100_usize, 1000, 5000] {
        let vcpus: Vec<i64> = (0..hosts).map(|n| [8, 16, 1][n % 3]).collect();
        let cloud = kit::cloud_of(&vcpus, Options::default(), CloudSettings::default());
        let (mut spec, _) = kit::request(2, 1);
        let asked = cloud.ask(&mut spec).unwrap();
        let mut times: [Vec<f64>; 5] = Default::default();
        let [decision, keep, explain, offer, json] = &mut times;
        let mut bytes = 0;
        for _ in 0..REQUESTS {
            let scheduling = timed(decision, || decided(&cloud));
            let record = timed(keep, || scheduling.into_record());
            let explained = timed(explain, || record.explain(&mut Vec::new()));
            let step = timed(offer, || {
                cloud.explain_offer(&spec, &asked, record.candidates())
            });
            assert_eq!((explained[0].ranking.len(), step.dropped.len()), (5, 3));
            let text = timed(json, || serde_json::to_string(&explained).unwrap());
            bytes = black_box(text).len();
        }
        let [decision, keep, explain, offer, json] = times.map(median);
        println!(
            "{hosts:5} {decision:7.1} us {keep:8.2} us {explain:9.1} us {offer:14.1} us {json:5.1} us {bytes:6}"
        );
    }
}
