//! Clusters without preemptible servers: what others are compared with.

use super::play::Figures;
use super::sweep::SweepPoint;
use super::{ElasticArgs, Terms};
use ebbtide_elastic::{Cluster, Recovery, Trace};

/// Short jobs that end later than without preemptible servers, over all seeds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LateJobs {
    /// How many of all short jobs.
    pub(super) share: f64,
    /// By how much, seconds: their mean and the longest.
    pub(super) mean: f64,
    pub(super) max: f64,
}

impl LateJobs {
    /// Above that a job is later, microseconds: messages take a part of it.
    const SLACK_US: u64 = 1_000_000;

    /// Of pairs of runs with the same seed: without preemptible servers, and with them.
    pub(super) fn of(trace: &Trace, cutoff_us: u64, alone: &[Figures], each: &[Figures]) -> Self {
        let (mut jobs, mut late, mut sum_us, mut most_us) = (0u64, 0u64, 0u64, 0u64);
        for (alone, own) in alone.iter().zip(each) {
            let ends = alone.ends.iter().zip(&own.ends);
            for (job, (alone, own)) in trace.jobs().iter().zip(ends) {
                if job.estimate_us > cutoff_us {
                    continue;
                }
                jobs += 1;
                let by_us = own.saturating_sub(*alone);
                if by_us > Self::SLACK_US {
                    late += 1;
                    sum_us += by_us;
                    most_us = most_us.max(by_us);
                }
            }
        }
        Self {
            share: late as f64 / jobs.max(1) as f64,
            mean: sum_us as f64 / late.max(1) as f64 / 1e6,
            max: most_us as f64 / 1e6,
        }
    }
}

/// A cluster without preemptible servers that others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    /// Whether all servers share a queue.
    shares_queue: bool,
    /// Its servers for short jobs only.
    pub(super) short_only: u32,
}

impl Reference {
    /// What a recovery is compared with: this many servers for short jobs only.
    pub(super) fn of(recovery: Recovery, short_only: u32) -> Self {
        Self {
            shares_queue: recovery.shares_queue(),
            short_only,
        }
    }

    /// Whether all servers share a queue.
    pub(super) fn shares_queue(self) -> bool {
        self.shares_queue
    }

    pub(super) fn cluster(self, cluster: &Cluster) -> Cluster {
        let given_up = cluster.short_only - self.short_only;
        Cluster {
            servers: cluster.servers - given_up,
            short_only: self.short_only,
            recovery: if self.shares_queue {
                Recovery::Requeue
            } else {
                Recovery::Copies
            },
            ..cluster.clone()
        }
    }
}

/// Those that are needed, the static partition of the first point first. Servers that are left
/// alone are only compared with where recoveries are compared.
pub(super) fn references(
    args: &ElasticArgs,
    terms: &Terms,
    points: &[SweepPoint],
) -> Vec<Reference> {
    let mut all: Vec<Reference> = Vec::new();
    let mut add = |one: Reference| {
        if one.short_only > 0 && !all.contains(&one) {
            all.push(one);
        }
    };
    for point in points {
        add(Reference::of(point.recovery, terms.cluster.short_only));
        if !args.recovery.is_empty() {
            add(Reference::of(
                point.recovery,
                point.elastic.policy.on_demand(),
            ));
        }
    }
    all
}
