//! Waiting times and costs, with and without preemptible nodes.

use crate::account::{InstanceHistory, price};
use crate::baseline::{JobRequest, reckon};
use crate::record::{BurstRecord, JobClass, JobLife, LifeEnd};
use ebbtide_model::Money;
use serde::{Deserialize, Serialize};

/// Waiting times of jobs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingTimes {
    /// Jobs that were started.
    pub started: usize,
    /// Mean of the queueing delay, until the first start, seconds.
    pub mean_seconds: f64,
    /// Half of the jobs waited no longer.
    pub median_seconds: f64,
    /// 95 of 100 jobs waited no longer.
    pub p95_seconds: f64,
    pub longest_seconds: f64,
    /// Mean of all waiting, also after a job was cut, seconds.
    pub mean_all_waiting_seconds: f64,
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
            mean_seconds: mean(&delays),
            median_seconds: part(50),
            p95_seconds: part(95),
            longest_seconds: seconds(*longest),
            mean_all_waiting_seconds: mean(all),
        }
    }
}

/// Figures of one kind of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindReport {
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
    pub in_vain_seconds: f64,
    /// With preemptible nodes.
    pub with: WaitingTimes,
    pub without: WaitingTimes,
}

impl KindReport {
    /// The mean delay without preemptible nodes divided by the mean delay with them. `None` if
    /// there is nothing to compare, infinite if no job waits with them.
    #[must_use]
    pub fn improvement(&self) -> Option<f64> {
        let (with, without) = (&self.with, &self.without);
        let known = with.started > 0 && without.started > 0 && without.mean_seconds > 0.0;
        known.then(|| without.mean_seconds / with.mean_seconds)
    }
}

/// The instances and their cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    pub paid: Money,
    /// Cost of the same time on demand.
    pub on_demand: Money,
}

/// How often an error was reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TroubleCount {
    pub code: String,
    /// How often.
    pub times: u64,
}

/// The report of an elastic partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BurstReport {
    /// How many times shorter the mean delay of short jobs is; `None` without anything to compare,
    /// or if none waits.
    pub improvement: Option<f64>,
    /// The baseline, in words.
    pub baseline: String,
    /// Whether the baseline was measured.
    pub measured: bool,
    /// Length of the reported time.
    pub seconds: f64,
    /// On-demand nodes.
    pub stays: usize,
    /// Short jobs, then long ones.
    pub kinds: Vec<KindReport>,
    /// The instances and their cost.
    pub money: MoneyReport,
    /// Errors.
    pub troubles: Vec<TroubleCount>,
}

/// Compares a record with the same jobs, simulated on the on-demand nodes
/// ([`mod@crate::baseline`]). Instances count if `counts` says so of their node.
#[must_use]
pub fn report(record: &BurstRecord, counts: impl Fn(&str) -> bool) -> BurstReport {
    let stays = record.stays.len();
    let kinds = [JobClass::Short, JobClass::Long];
    let troubles = record.troubles.iter().map(|(code, times)| TroubleCount {
        code: code.clone(),
        times: *times,
    });
    let made = BurstReport {
        improvement: None,
        baseline: format!(
            "reckoned: the same jobs, as long as they ran, on the {stays} nodes that stay, in order of submission with conservative backfilling"
        ),
        measured: false,
        seconds: (record.until - record.from.unwrap_or(record.until)) as f64 / 1_000.0,
        stays,
        kinds: kinds
            .into_iter()
            .map(|kind| one_kind(record, kind, reckoned(record, kind)))
            .collect(),
        money: money(record, counts),
        troubles: troubles.collect(),
    };
    made.compared()
}

impl BurstReport {
    /// The same report, compared with a run of the same jobs without instances.
    #[must_use]
    pub fn against(mut self, other: &Self) -> Self {
        let jobs: usize = other.kinds.iter().map(|kind| kind.jobs).sum();
        self.baseline = format!(
            "measured: a run of {jobs} jobs on {} nodes without instances",
            other.stays
        );
        self.measured = true;
        for kind in &mut self.kinds {
            let mut same = other.kinds.iter().filter(|one| one.kind == kind.kind);
            kind.without = same
                .next()
                .map_or_else(WaitingTimes::default, |one| one.with.clone());
        }
        self.compared()
    }

    fn compared(mut self) -> Self {
        let short = self.kinds.first().and_then(KindReport::improvement);
        self.improvement = short.filter(|times| times.is_finite());
        self
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
        in_vain_seconds: in_vain as f64 / 1_000.0,
        with: waits(record, kind),
        without,
    }
}

fn money(record: &BurstRecord, counts: impl Fn(&str) -> bool) -> MoneyReport {
    let lives = record.lives.values().filter(|life| counts(&life.node));
    let lives: Vec<&InstanceHistory> = lives.collect();
    let count = |how| {
        let ends = lives.iter().filter_map(|life| life.end);
        ends.filter(|(_, end)| *end == how).count()
    };
    let until = record.until;
    let ms: i64 = lives.iter().map(|life| life.paid_ms(i64::MIN, until)).sum();
    let paid: u64 = lives.iter().map(|life| life.paid(i64::MIN, until)).sum();
    MoneyReport {
        instances: lives.len(),
        interrupted: count(LifeEnd::Interrupted),
        never_up: count(LifeEnd::NeverUp),
        hours: ms as f64 / 3_600_000.0,
        paid: Money::from_micros(paid),
        on_demand: Money::from_micros(price(ms, record.on_demand)),
    }
}
