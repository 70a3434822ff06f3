//! Random traces and clusters, and the shared data.

#![allow(dead_code)] // Each test uses some of it.

use ebbtide_elastic::{Cluster, Trace, TraceJob};
use proptest::prelude::*;
use std::io::Read;

/// Jobs whose tasks take longer than this are long, seconds.
pub const CUTOFF: u64 = 50;
pub const SECOND: u64 = 1_000_000;

pub fn job(arrival: u64, estimate: u64, tasks: &[u64]) -> TraceJob {
    TraceJob {
        arrival_us: arrival * SECOND,
        estimate_us: estimate * SECOND,
        tasks_us: tasks.iter().map(|s| s * SECOND).collect(),
    }
}

/// Jobs that come at random, short ones and, if `long`, long ones.
pub fn traces(most: usize, long: bool) -> impl Strategy<Value = Trace> {
    let short = (1u64..CUTOFF, prop::collection::vec(0u64..60, 1..10));
    let longs = (CUTOFF + 1..400, prop::collection::vec(1u64..500, 1..6));
    let weight = u32::from(long) * 2;
    let one = if weight == 0 {
        (0u64..60, short.boxed())
    } else {
        (0u64..60, prop_oneof![3 => short, weight => longs].boxed())
    };
    prop::collection::vec(one, 1..most).prop_map(|jobs| {
        let mut now = 0;
        let each = jobs.into_iter().map(|(after, (estimate, tasks))| {
            now += after;
            job(now, estimate, &tasks)
        });
        Trace::new(each.collect()).unwrap()
    })
}

pub fn cluster(servers: u32, short_only: u32) -> Cluster {
    Cluster {
        servers,
        short_only,
        cutoff_us: CUTOFF * SECOND,
        min_probes: 6,
        ..Cluster::default()
    }
}

/// A Yahoo trace of the public data, decompressed, and whether it is a reduced one.
pub fn shared(name: &str) -> (Vec<u8>, bool) {
    public(&format!("yahoo-hawk-subtraces/{name}"))
}

/// The cut of Google's trace, decompressed, and whether it is a reduced one.
pub fn google() -> (Vec<u8>, bool) {
    public("google2011-subtrace-hawk/GOOG_subtrace.tr.zst")
}

fn public(name: &str) -> (Vec<u8>, bool) {
    let data = ebbtide_test_data::data(name);
    let raw = std::fs::read(&data.path).unwrap();
    let mut text = Vec::new();
    let mut frame = ruzstd::decoding::StreamingDecoder::new(raw.as_slice()).unwrap();
    frame.read_to_end(&mut text).unwrap();
    (text, data.reduced)
}
