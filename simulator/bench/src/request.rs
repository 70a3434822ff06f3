//! Ordinary requests: the hosts have free capacity, and no instance has to leave. Measures how long
//! one request takes, and how close that is to reading the columns once.
//!
//! Hosts are partly filled, between empty and nearly full. Requests are of mixed sizes, every
//! fourth one is preemptible. A decision has to look at every host at least once. The same run
//! measures the cost of that on this machine: it sums up as many bytes as the needed columns have,
//! on the same thread.

use crate::BenchError;
use crate::cloud::{CloudPlan, Fill, NOW_MILLIS, plus, requests};
use crate::progress::Progress;
use crate::stats::{Latency, ratio, rounded};
use crate::timing::{timed, timed_cpu};
use ebbtide_engine::{Budgets, Engine, EngineConfig};
use ebbtide_model::{Decision, DecisionId, DecisionOutcome, Timestamp};
use serde::Serialize;
use std::hint::black_box;
use std::time::Duration;
use uuid::Uuid;

/// What has to be known of a host: capacity, and use by normal, preemptible and leaving instances,
/// eight bytes each, of the three classes that a flavor asks for; one byte of health; four of I/O
/// work, which a default weigher reads. The weighers for CPU, memory and disk read the same
/// columns.
pub const BYTES_PER_HOST: usize = 3 * 4 * 8 + 1 + 4;
/// Between two requests.
const STEP_MILLIS: i64 = 1000;
/// Requests before the measured ones.
const WARM_UP: u32 = 20;
/// How often the columns are read.
const READS: usize = 200;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct RequestOptions {
    pub hosts: u32,
    /// Requests that are measured.
    pub requests: u32,
    /// Another seed, another cloud and other requests.
    pub seed: u64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestReport {
    pub hosts: u32,
    /// How long one decision takes.
    #[serde(flatten)]
    pub latency: Latency,
    /// Requests measured.
    pub requests: u32,
    /// Of them, those that found a host that has the room, as far as the plan of the cloud says.
    /// All, or something is wrong.
    pub placed_with_room: u32,
    /// How many bytes of columns one host needs.
    pub bytes_per_host: usize,
    /// The median time to sum up so many bytes for every host.
    pub read_once_us: f64,
    /// How fast that was.
    pub read_gib_per_s: f64,
    /// How many times as long as reading the columns once a decision takes (medians).
    pub ratio_to_read_once: f64,
    /// Instances in the cloud.
    pub instances: u64,
    pub seed: u64,
    /// How long the table took to build.
    pub build_seconds: f64,
}

/// Builds the cloud, asks, reads.
///
/// # Errors
/// An option out of its range; the engine's.
pub fn run(
    options: &RequestOptions,
    progress: &mut dyn Progress,
) -> Result<RequestReport, BenchError> {
    for (name, value) in [("hosts", options.hosts), ("requests", options.requests)] {
        if value == 0 {
            return Err(BenchError::Option(format!("--{name} 0: use 1 or more")));
        }
    }
    let plan = CloudPlan {
        hosts: options.hosts,
        fill: Fill::Partly,
        seed: options.seed,
    };
    let (table, built) = timed(|| plan.table(progress));
    let table = table?;
    let engine = Engine::new(EngineConfig::default())?;
    let budgets = Budgets::unlimited();
    let mut all = requests(WARM_UP + options.requests, options.seed);
    for (_, request) in all.iter_mut().step_by(4) {
        let spec = ("ebbtide:preemptible".to_owned(), "true".to_owned());
        request.flavor.extra_specs.extend([spec]);
    }
    let mut times = Vec::with_capacity(all.len());
    let mut placed_with_room = 0;
    progress.begin("deciding", u64::from(options.requests));
    for (number, (size, request)) in (0_u32..).zip(&all) {
        let now = Timestamp::from_millis(NOW_MILLIS + STEP_MILLIS * i64::from(number));
        let id = DecisionId(Uuid::from_u128(u128::from(number)));
        let (decision, took) =
            timed_cpu(|| engine.decide(&table, &budgets, request, now, options.seed, id));
        let decision = decision?;
        if let Some(measured) = number.checked_sub(WARM_UP) {
            times.push(took);
            placed_with_room += u32::from(has_room(&plan, &decision, size));
            progress.set(u64::from(measured) + 1);
        }
    }
    let latency = Latency::of_both(&times);
    let bytes = BYTES_PER_HOST * options.hosts as usize;
    let read = Latency::of(&read_columns(bytes));
    Ok(RequestReport {
        hosts: options.hosts,
        latency,
        requests: options.requests,
        placed_with_room,
        bytes_per_host: BYTES_PER_HOST,
        read_once_us: read.p50_us,
        read_gib_per_s: gib_per_second(bytes, read.p50_us),
        ratio_to_read_once: quotient(latency.p50_us, read.p50_us),
        instances: table.instance_count() as u64,
        seed: options.seed,
        build_seconds: rounded(built.as_secs_f64()),
    })
}

/// True if the request got a host without victims, and the plan shows free capacity there.
fn has_room(plan: &CloudPlan, decision: &Decision, size: &crate::cloud::Size) -> bool {
    let DecisionOutcome::Placed(placements) = &decision.outcome else {
        return false;
    };
    let [placement] = placements.as_slice() else {
        return false;
    };
    let number = placement
        .host
        .strip_prefix("host-")
        .and_then(|n| n.parse().ok());
    number.is_some_and(|number| {
        let host = plan.host(number);
        let free = plus(plus(host.capacity, host.used(true), -1), size.amounts(), -1);
        placement.victims.is_empty() && !placement.waits_for_room && free.iter().all(|f| *f >= 0)
    })
}

/// How long it takes to sum up so many bytes, several times.
fn read_columns(bytes: usize) -> Vec<Duration> {
    let column: Vec<u64> = (0..bytes.div_ceil(8) as u64).collect();
    let read = || {
        black_box(&column)
            .iter()
            .fold(0_u64, |sum, n| sum.wrapping_add(*n))
    };
    (0..READS).map(|_| timed(|| black_box(read())).1).collect()
}

/// One over the other; 0 where the other is.
#[must_use]
pub fn quotient(one: f64, other: f64) -> f64 {
    if other > 0.0 {
        rounded(one / other)
    } else {
        0.0
    }
}

fn gib_per_second(bytes: usize, micros: f64) -> f64 {
    quotient(ratio(bytes as f64 / 1024.0, 1024) / 1024.0 * 1e6, micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoProgress;

    #[test]
    fn every_ordinary_request_finds_room() {
        let options = RequestOptions {
            hosts: 60,
            requests: 50,
            seed: 3,
        };
        let report = run(&options, &mut NoProgress).unwrap();
        assert_eq!(report.placed_with_room, 50);
        assert!(report.ratio_to_read_once > 0.0 && report.read_gib_per_s > 0.0);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        for (hosts, requests) in [(0, 1), (1, 0)] {
            let options = RequestOptions {
                hosts,
                requests,
                seed: 0,
            };
            let error = run(&options, &mut NoProgress).unwrap_err();
            assert_eq!(error.code(), "EB-BENCH-001");
        }
    }
}
