//! Traces of short and long jobs: what is taken can be played to its end, on a small cluster with
//! servers that come and go.

use ebbtide_elastic::{Cluster, Elastic, ElasticPolicy, NoWatch, Setup, Trace, simulate};
use ebbtide_lifetime::distributions::Exponential;
use std::sync::Arc;

/// Tasks beyond this say nothing new.
const MOST: usize = 500;
const SECOND: u64 = 1_000_000;
/// Likewise years in which servers of a minute's life come and go.
const LONGEST_US: u64 = 100_000 * SECOND;

pub(super) fn run(bytes: &[u8]) {
    let Ok(trace) = Trace::read(bytes) else {
        return;
    };
    assert!(trace.tasks() <= bytes.len());
    let jobs = trace.jobs();
    let in_order = |pair: &[ebbtide_elastic::TraceJob]| pair[0].arrival_us <= pair[1].arrival_us;
    assert!(!jobs.is_empty() && jobs.windows(2).all(in_order));
    let tasks = jobs.iter().flat_map(|job| &job.tasks_us);
    let work = tasks.fold(trace.span_us(), |sum, us| sum.saturating_add(*us));
    if trace.tasks() <= MOST && work <= LONGEST_US {
        play(&trace);
    }
}

fn play(trace: &Trace) {
    let policy = ElasticPolicy::new(2, 3.0, 0.5).and_then(|policy| policy.threshold(0.3));
    let model = Exponential::new(60.0, f64::INFINITY).expect("a minute in the mean");
    let elastic = Elastic {
        lifetime: Some(Arc::new(model)),
        provisioning_us: (1 + trace.tasks() as u64 % 3) * SECOND,
        ..Elastic::new(policy.expect("one server is given up for three"))
    };
    let setup = Setup {
        cluster: Cluster {
            servers: 5,
            short_only: 2,
            ..Cluster::default()
        },
        elastic: Some(elastic),
        seed: 1,
    };
    let outcome = simulate(trace, &setup, &mut NoWatch).expect("there are servers for all jobs");
    assert_eq!(outcome.short.count() + outcome.long.count(), trace.tasks());
    assert!(outcome.transients.most <= 3);
}
