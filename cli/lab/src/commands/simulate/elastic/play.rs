//! Every partition with every seed, over all cores.

use super::reference::{LateJobs, Reference, references};
use super::sweep::{Knob, SweepPoint};
use super::{ElasticArgs, Terms};
use crate::progress::ReplayProgress;
use ebbtide_elastic::{
    Cluster, Elastic, ElasticError, Gain, MeasuredTimes, Recovery, Setup, SimulationResult, Trace,
    Watch, WatchEvent, simulate,
};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Points of a distribution that a chart can show.
const POINTS: usize = 500;
/// How often the bar moves.
const REDRAW: Duration = Duration::from_millis(100);

/// The figures of one run, or the means over several.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// Queueing delay of short tasks, seconds: mean, median, nine of ten, 99 of 100, longest (over
    /// all seeds).
    pub(super) mean: f64,
    pub(super) median: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
    /// Mean queueing delay of long tasks, mean time of short and of long jobs, seconds.
    pub(super) long_mean: f64,
    pub(super) short_job: f64,
    pub(super) long_job: f64,
    pub(super) long_load: f64,
    pub(super) above: f64,
    pub(super) transients_up: f64,
    pub(super) transients_most: f64,
    pub(super) launched: f64,
    pub(super) interrupted: f64,
    pub(super) lost: f64,
    pub(super) lost_seconds: f64,
    /// From the loss of a task until it began again, seconds: mean and longest.
    pub(super) again_mean: f64,
    pub(super) again_max: f64,
    pub(super) most_losses: f64,
    pub(super) life_mean_hours: f64,
    pub(super) life_max_hours: f64,
    pub(super) paid_hours: f64,
    /// Delays of short tasks with the first seed: (seconds, share not above).
    pub(super) distribution: Vec<(f64, f64)>,
    /// When each job ended, microseconds; only of a single run, and only if it is needed.
    pub(super) ends: Vec<u64>,
}

impl Figures {
    fn of(outcome: &SimulationResult, distribution: bool, ends: Vec<u64>) -> Self {
        let SimulationResult {
            short, transients, ..
        } = outcome;
        let lives: &MeasuredTimes = &transients.lives;
        Self {
            mean: short.mean(),
            median: short.quantile(0.5),
            p90: short.quantile(0.9),
            p99: short.quantile(0.99),
            max: short.max(),
            long_mean: outcome.long.mean(),
            short_job: outcome.short_jobs.mean(),
            long_job: outcome.long_jobs.mean(),
            long_load: outcome.mean_long_load,
            above: outcome.above_threshold,
            transients_up: transients.mean_up,
            transients_most: f64::from(transients.most),
            launched: transients.launched as f64,
            interrupted: transients.interrupted as f64,
            lost: outcome.lost as f64,
            lost_seconds: outcome.lost_seconds,
            again_mean: outcome.again.mean(),
            again_max: outcome.again.max(),
            most_losses: f64::from(outcome.most_losses),
            life_mean_hours: lives.mean() / 3_600.0,
            life_max_hours: lives.max() / 3_600.0,
            paid_hours: transients.paid_hours,
            distribution: if distribution {
                short.distribution(POINTS)
            } else {
                Vec::new()
            },
            ends,
        }
    }

    /// Means over the seeds; what is a maximum stays one.
    fn over(seeds: &[Self]) -> Self {
        let count = seeds.len().max(1) as f64;
        let mean = |of: fn(&Self) -> f64| seeds.iter().map(of).sum::<f64>() / count;
        let most = |of: fn(&Self) -> f64| seeds.iter().map(of).fold(0.0, f64::max);
        Self {
            mean: mean(|f| f.mean),
            median: mean(|f| f.median),
            p90: mean(|f| f.p90),
            p99: mean(|f| f.p99),
            max: most(|f| f.max),
            long_mean: mean(|f| f.long_mean),
            short_job: mean(|f| f.short_job),
            long_job: mean(|f| f.long_job),
            long_load: mean(|f| f.long_load),
            above: mean(|f| f.above),
            transients_up: mean(|f| f.transients_up),
            transients_most: most(|f| f.transients_most),
            launched: mean(|f| f.launched),
            interrupted: mean(|f| f.interrupted),
            lost: mean(|f| f.lost),
            lost_seconds: mean(|f| f.lost_seconds),
            again_mean: mean(|f| f.again_mean),
            again_max: most(|f| f.again_max),
            most_losses: most(|f| f.most_losses),
            life_mean_hours: mean(|f| f.life_mean_hours),
            life_max_hours: most(|f| f.life_max_hours),
            paid_hours: mean(|f| f.paid_hours),
            distribution: seeds
                .first()
                .map_or_else(Vec::new, |f| f.distribution.clone()),
            ends: Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct SimulatedPartition {
    pub(super) swept: Option<(Knob, f64)>,
    pub(super) elastic: Elastic,
    pub(super) recovery: Recovery,
    pub(super) figures: Figures,
    /// Short jobs that end more than a second later than on its on-demand servers alone; none if
    /// that was not played.
    pub(super) later: Option<LateJobs>,
    /// The static partition's mean delay divided by this one's, and the same for the longest delay;
    /// infinite if no task waits here.
    pub(super) improvement: f64,
    pub(super) max_improvement: f64,
    /// The least and the greatest quotient of the means over all seeds: the effect of chance.
    pub(super) spread: (f64, f64),
    /// Transient servers over r, and what of the given-up servers' price is saved.
    pub(super) normalised: f64,
    pub(super) saving: f64,
}

/// Everything.
pub(super) struct PartitionResults {
    /// The static partition of the first recovery.
    pub(super) fixed: Figures,
    /// All clusters without preemptible servers.
    pub(super) references: Vec<(Reference, Figures)>,
    pub(super) partitions: Vec<SimulatedPartition>,
    pub(super) short_tasks: usize,
    pub(super) seconds: f64,
}

impl PartitionResults {
    /// The partitions that were asked for, by r.
    pub(super) fn asked(&self) -> impl Iterator<Item = &SimulatedPartition> {
        self.partitions.iter().filter(|one| one.swept.is_none())
    }

    /// Those of the sweep of a setting.
    pub(super) fn swept(&self, knob: Knob) -> impl Iterator<Item = (f64, &SimulatedPartition)> {
        let each = self.partitions.iter();
        each.filter_map(move |one| match one.swept {
            Some((of, value)) if of == knob => Some((value, one)),
            _ => None,
        })
    }

    /// The settings that were swept, each once.
    pub(super) fn knobs(&self) -> Vec<Knob> {
        let mut knobs: Vec<Knob> = Vec::new();
        for (knob, _) in self.partitions.iter().filter_map(|one| one.swept) {
            if !knobs.contains(&knob) {
                knobs.push(knob);
            }
        }
        knobs
    }
}

/// Counts the jobs of all threads that have come, for the bar, and writes down when each job ended.
struct Counter<'a> {
    arrived: &'a AtomicUsize,
    /// Empty if it is not needed.
    ends: Vec<u64>,
}

impl Watch for Counter<'_> {
    fn record(&mut self, at_us: u64, what: WatchEvent) {
        match what {
            WatchEvent::Arrived { .. } => {
                self.arrived.fetch_add(1, Ordering::Relaxed);
            }
            // The last of its tasks is what remains.
            WatchEvent::Ended { job, .. } => {
                if let Some(end) = self.ends.get_mut(job as usize) {
                    *end = at_us;
                }
            }
            _ => {}
        }
    }
}

/// Plays the clusters without preemptible servers and all points.
pub(super) fn all(
    context: &mut Context,
    args: &ElasticArgs,
    trace: &Trace,
    terms: &Terms,
    points: Vec<SweepPoint>,
) -> Result<PartitionResults, CliError> {
    let begin = clock::instant();
    let seeds: Vec<u64> = (0..u64::from(args.seeds))
        .map(|more| args.seed.wrapping_add(more))
        .collect();
    // First what is compared with, then each point, with all seeds.
    let references = references(args, terms, &points);
    let without = references
        .iter()
        .map(|reference| (reference.cluster(&terms.cluster), None));
    let with = points.iter().map(|point| {
        let cluster = Cluster {
            recovery: point.recovery,
            ..terms.cluster.clone()
        };
        (cluster, Some(point.elastic.clone()))
    });
    let setups: Vec<Setup> = without
        .chain(with)
        .flat_map(|(cluster, elastic)| {
            seeds.iter().map(move |seed| Setup {
                cluster: cluster.clone(),
                elastic: elastic.clone(),
                seed: *seed,
            })
        })
        .collect();
    setups.iter().try_for_each(Setup::checked)?;
    let mut figures = run(context, args, trace, &setups)?.into_iter();
    let mut next = || -> Vec<Figures> { figures.by_ref().take(seeds.len()).collect() };
    let references: Vec<(Reference, Vec<Figures>)> =
        references.into_iter().map(|one| (one, next())).collect();
    let find = |recovery: Recovery, short_only: u32| {
        let wanted = Reference::of(recovery, short_only);
        let found = references.iter().find(|(one, _)| *one == wanted);
        found.map_or(&[][..], |(_, each)| each.as_slice())
    };
    let cutoff = terms.cluster.cutoff_us;
    let played = points.into_iter().map(|point| {
        let each = next();
        let fixed_each = find(point.recovery, terms.cluster.short_only);
        let alone = find(point.recovery, point.elastic.policy.on_demand());
        let late = !args.recovery.is_empty() && !alone.is_empty();
        let later = late.then(|| LateJobs::of(trace, cutoff, alone, &each));
        judged(point, fixed_each, &each, later)
    });
    let partitions = played.collect();
    let references: Vec<(Reference, Figures)> = references
        .iter()
        .map(|(one, each)| (*one, Figures::over(each)))
        .collect();
    let fixed = references
        .first()
        .map_or_else(Figures::default, |(_, figures)| figures.clone());
    let short = trace.jobs().iter().filter(|job| job.estimate_us <= cutoff);
    Ok(PartitionResults {
        fixed,
        references,
        partitions,
        short_tasks: short.map(|job| job.tasks_us.len()).sum(),
        seconds: begin.elapsed().as_secs_f64(),
    })
}

fn judged(
    point: SweepPoint,
    fixed_each: &[Figures],
    each: &[Figures],
    later: Option<LateJobs>,
) -> SimulatedPartition {
    let (fixed, figures) = (Figures::over(fixed_each), Figures::over(each));
    let pairs = fixed_each.iter().zip(each);
    let quotients = pairs.map(|(fixed, elastic)| Gain::quotient(fixed.mean, elastic.mean));
    let spread = quotients.fold((f64::INFINITY, 0.0_f64), |(low, high), quotient| {
        (low.min(quotient), high.max(quotient))
    });
    let policy = &point.elastic.policy;
    let (normalised, saving) = Gain::price(figures.transients_up, policy);
    SimulatedPartition {
        swept: point.swept,
        recovery: point.recovery,
        later,
        improvement: Gain::quotient(fixed.mean, figures.mean),
        max_improvement: Gain::quotient(fixed.max, figures.max),
        spread,
        normalised,
        saving,
        figures,
        elastic: point.elastic,
    }
}

/// Hands setups to threads; the answers come in their order.
fn run(
    context: &mut Context,
    args: &ElasticArgs,
    trace: &Trace,
    setups: &[Setup],
) -> Result<Vec<Figures>, CliError> {
    let threads = args
        .threads
        .and_then(|n| usize::try_from(n).ok())
        .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
        .unwrap_or(1);
    let jobs = trace.jobs().len();
    let mut progress = ReplayProgress::of(context, jobs * setups.len(), "jobs");
    let (next, arrived) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut done: Vec<Option<Figures>> = setups.iter().map(|_| None).collect();
    let mut failed: Option<ElasticError> = None;
    std::thread::scope(|scope| {
        let (told, results) = mpsc::channel();
        for _ in 0..threads.min(setups.len()) {
            let (told, next, arrived) = (told.clone(), &next, &arrived);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(setup) = setups.get(n) else {
                        return;
                    };
                    let compared = !args.recovery.is_empty();
                    let mut counter = Counter {
                        arrived,
                        ends: vec![0; if compared { jobs } else { 0 }],
                    };
                    let outcome = simulate(trace, setup, &mut counter);
                    let first = setup.seed == args.seed;
                    let figures = outcome.map(|outcome| Figures::of(&outcome, first, counter.ends));
                    let stop = figures.is_err();
                    // Sending fails only if the command itself is ending.
                    if told.send((n, figures)).is_err() || stop {
                        return;
                    }
                }
            });
        }
        drop(told);
        loop {
            match results.recv_timeout(REDRAW) {
                Ok((n, Ok(figures))) => {
                    if let Some(place) = done.get_mut(n) {
                        *place = Some(figures);
                    }
                }
                Ok((_, Err(error))) => failed = Some(error),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            progress.set(context, arrived.load(Ordering::Relaxed), "");
        }
    });
    progress.end();
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(done.into_iter().flatten().collect()),
    }
}
