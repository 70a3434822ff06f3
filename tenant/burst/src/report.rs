//! Waiting times and costs, with and without preemptible nodes.

use crate::baseline::{JobRequest, reckon};
use crate::record::{BurstRecord, JobClass, JobLife, LifeEnd, price};

/// The baseline of the comparison.
#[derive(Debug, Clone, Copy)]
pub enum Baseline<'a> {
    /// A record of a run without preemptible nodes.
    Measured(&'a BurstRecord),
    /// The same jobs, simulated on the on-demand nodes ([`mod@crate::baseline`]).
    Reckoned,
}

/// Waiting times of jobs of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitingTimes {
    /// Jobs that were started.
    pub started: usize,
    /// Mean of the queueing delay, until the first start, seconds.
    pub mean: f64,
    /// Half of the jobs waited no longer.
    pub median: f64,
    /// 95 of 100 jobs waited no longer.
    pub p95: f64,
    /// The longest.
    pub longest: f64,
    /// Mean of all waiting, also after a job was cut, seconds.
    pub mean_all: f64,
}

impl WaitingTimes {
    /// Computes the figures from delays and total waiting times in milliseconds.
    fn of(mut delays: Vec<i64>, all: &[i64]) -> Self {
        delays.sort_unstable();
        let Some(longest) = delays.last() else {
            return Self::default();
        };
        let seconds = |ms: i64| ms as f64 / 1_000.0;
        let mean = |each: &[i64]| {
            let sum: i64 = each.iter().sum();
            seconds(sum) / each.len().max(1) as f64
        };
        // The smallest value that the given percentage of jobs does not exceed.
        let part = |hundredths: usize| {
            let rank = (delays.len() * hundredths).div_ceil(100).max(1);
            seconds(delays[rank - 1])
        };
        Self {
            started: delays.len(),
            mean: mean(&delays),
            median: part(50),
            p95: part(95),
            longest: seconds(*longest),
            mean_all: mean(all),
        }
    }
}

/// Figures of one kind of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct KindReport {
    /// Which.
    pub kind: JobClass,
    /// Jobs in the record.
    pub jobs: usize,
    /// Jobs that ended successfully.
    pub completed: usize,
    /// Jobs that ended in another way.
    pub failed: usize,
    /// Jobs that were requeued at least once.
    pub cut_jobs: usize,
    /// Number of requeues.
    pub cuts: usize,
    /// Total duration of requeued runs, seconds: lost if the jobs saved nothing.
    pub in_vain: f64,
    /// With preemptible nodes.
    pub with: WaitingTimes,
    /// Without.
    pub without: WaitingTimes,
}

impl KindReport {
    /// The mean delay without preemptible nodes divided by the mean delay with them. `None` if
    /// there is nothing to compare, infinite if no job waits with them.
    #[must_use]
    pub fn improvement(&self) -> Option<f64> {
        let known = self.with.started > 0 && self.without.started > 0 && self.without.mean > 0.0;
        known.then(|| self.without.mean / self.with.mean)
    }
}

/// The instances and their cost, millionths.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MoneyReport {
    /// Number of instances.
    pub instances: usize,
    /// Instances that the provider took.
    pub interrupted: usize,
    /// Instances that never came up.
    pub never_up: usize,
    /// Total paid time, hours.
    pub hours: f64,
    /// Cost of the instances.
    pub paid: u64,
    /// Cost of the same time on demand.
    pub on_demand: u64,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstReport {
    /// Start of the reported time, milliseconds.
    pub from: i64,
    /// End of the reported time.
    pub until: i64,
    /// The baseline, in words.
    pub baseline: String,
    /// Whether the baseline was measured.
    pub measured: bool,
    /// Short jobs, then long ones.
    pub kinds: Vec<KindReport>,
    /// The instances and their cost.
    pub money: MoneyReport,
    /// Error codes and their counts.
    pub troubles: Vec<(String, u64)>,
}

/// Compares a record with its baseline.
#[must_use]
pub fn report(record: &BurstRecord, baseline: Baseline<'_>) -> BurstReport {
    let words = match baseline {
        Baseline::Measured(other) => format!(
            "measured: a run of {} jobs on {} nodes without instances",
            other.jobs.len(),
            other.stays.len()
        ),
        Baseline::Reckoned => format!(
            "reckoned: the same jobs, as long as they ran, on the {} nodes that stay, in order of submission with conservative backfilling",
            record.stays.len()
        ),
    };
    let kinds = [JobClass::Short, JobClass::Long];
    let without = |kind| match baseline {
        Baseline::Measured(other) => waits(other, kind),
        Baseline::Reckoned => reckoned(record, kind),
    };
    BurstReport {
        from: record.from.unwrap_or(record.until),
        until: record.until,
        baseline: words,
        measured: matches!(baseline, Baseline::Measured(_)),
        kinds: kinds
            .into_iter()
            .map(|kind| one_kind(record, kind, without(kind)))
            .collect(),
        money: money(record),
        troubles: record
            .troubles
            .iter()
            .map(|(code, count)| (code.clone(), *count))
            .collect(),
    }
}

fn of_kind(record: &BurstRecord, kind: JobClass) -> impl Iterator<Item = &JobLife> {
    record.jobs.values().filter(move |job| job.kind == kind)
}

fn waits(record: &BurstRecord, kind: JobClass) -> WaitingTimes {
    let delays = of_kind(record, kind).filter_map(JobLife::delay).collect();
    let all: Vec<i64> = of_kind(record, kind).filter_map(JobLife::waited).collect();
    WaitingTimes::of(delays, &all)
}

/// Jobs that have not ended count as running until the record's end: their real duration is
/// unknown.
fn reckoned(record: &BurstRecord, kind: JobClass) -> WaitingTimes {
    let started: Vec<&JobLife> = record
        .jobs
        .values()
        .filter(|job| job.delay().is_some())
        .collect();
    let asked: Vec<JobRequest> = started
        .iter()
        .map(|job| {
            let last = job.runs.last();
            let so_far = last.map_or(0, |run| run.end.unwrap_or(record.until) - run.start);
            JobRequest {
                submitted: job.submitted,
                length: job.length().unwrap_or(so_far).max(1),
                nodes: job.nodes,
                cpus: job.cpus.div_ceil(job.nodes.max(1)),
            }
        })
        .collect();
    let cpus: Vec<u32> = record.stays.values().copied().collect();
    let starts = reckon(&cpus, &asked);
    let delays: Vec<i64> = started
        .iter()
        .zip(&asked)
        .zip(starts)
        .filter(|((job, _), _)| job.kind == kind)
        .filter_map(|((_, asked), start)| Some(start? - asked.submitted))
        .collect();
    let all = delays.clone();
    WaitingTimes::of(delays, &all)
}

fn one_kind(record: &BurstRecord, kind: JobClass, without: WaitingTimes) -> KindReport {
    let count = |of: &dyn Fn(&JobLife) -> bool| of_kind(record, kind).filter(|job| of(job)).count();
    let in_vain: i64 = of_kind(record, kind).map(JobLife::in_vain).sum();
    KindReport {
        kind,
        jobs: count(&|_| true),
        completed: count(&|job| job.over == Some(true)),
        failed: count(&|job| job.over == Some(false)),
        cut_jobs: count(&|job| job.cuts() > 0),
        cuts: of_kind(record, kind).map(JobLife::cuts).sum(),
        in_vain: in_vain as f64 / 1_000.0,
        with: waits(record, kind),
        without,
    }
}

fn money(record: &BurstRecord) -> MoneyReport {
    let count = |how| {
        let ends = record.lives.values().filter_map(|life| life.end);
        ends.filter(|(_, end)| *end == how).count()
    };
    let each = record.lives.values();
    let ms: i64 = each.map(|life| life.paid_ms(i64::MIN, record.until)).sum();
    MoneyReport {
        instances: record.lives.len(),
        interrupted: count(LifeEnd::Interrupted),
        never_up: count(LifeEnd::NeverUp),
        hours: ms as f64 / 3_600_000.0,
        paid: record.spent(i64::MIN, record.until),
        on_demand: price(ms, record.on_demand),
    }
}
