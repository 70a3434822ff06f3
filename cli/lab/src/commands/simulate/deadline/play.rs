//! Every job with every policy, over all cores.

use super::{DeadlineArgs, seconds};
use crate::error::LabError;
use crate::progress::ReplayProgress;
use ebbtide_deadline::{
    DeadlineError, DeadlineJob, Decider, JobCost, JobEnd, JobTerms, PolicyKind, RecordedSeries,
    optimum, simulate,
};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// How often the bar moves.
const REDRAW: Duration = Duration::from_millis(100);

/// Work, fraction and changeover of jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    /// Seconds.
    pub(super) work: u64,
    pub(super) fraction: f64,
    /// Seconds.
    pub(super) deadline: u64,
    /// Seconds.
    pub(super) changeover: u64,
}

/// A job at one place of one trace.
#[derive(Debug, Clone, Copy)]
struct Place {
    setting: usize,
    trace: usize,
    start: usize,
}

/// What came of one job under each policy.
#[derive(Debug, Clone)]
pub(super) struct PlayedJob {
    /// The number of its trace.
    pub(super) trace: usize,
    pub(super) on_demand: JobCost,
    pub(super) optimum: JobCost,
    pub(super) ends: Vec<JobEnd>,
}

/// All jobs of one setting.
#[derive(Debug)]
pub(super) struct SettingResult {
    pub(super) setting: Setting,
    pub(super) policies: Vec<PolicyKind>,
    pub(super) jobs: Vec<PlayedJob>,
}

/// The means over jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    /// Mean cost over the cost on demand, and its quartiles.
    pub(super) of_on_demand: f64,
    pub(super) quartiles: (f64, f64),
    /// Mean cost over the optimum's mean cost, less 1.
    pub(super) above_optimum: f64,
    /// The same job by job: its mean, and what nineteen of twenty jobs do not exceed.
    pub(super) above_each: f64,
    pub(super) above_p95: f64,
    /// Mean hours paid.
    pub(super) on_demand_hours: f64,
    pub(super) spot_hours: f64,
    pub(super) servers: f64,
    pub(super) missed: u64,
    pub(super) jobs: u64,
}

impl SettingResult {
    /// Jobs with a missed deadline, over all policies.
    pub(super) fn missed(&self) -> u64 {
        let ends = self.jobs.iter().flat_map(|job| &job.ends);
        ends.filter(|end| !end.met()).count() as u64
    }

    /// Mean cost of the optimum over the cost on demand.
    pub(super) fn optimum(&self) -> f64 {
        mean(self.jobs.iter().map(|job| job.optimum.over(job.on_demand)))
    }

    /// The means of a policy, by its number, over the jobs of one trace or of all.
    pub(super) fn summary(&self, policy: usize, trace: Option<usize>) -> Option<Summary> {
        let wanted = |job: &&PlayedJob| trace.is_none_or(|trace| job.trace == trace);
        let jobs: Vec<&PlayedJob> = self.jobs.iter().filter(wanted).collect();
        Summary::of(&jobs, policy)
    }
}

impl Summary {
    fn of(jobs: &[&PlayedJob], policy: usize) -> Option<Self> {
        let pairs: Vec<(&PlayedJob, &JobEnd)> = jobs
            .iter()
            .filter_map(|job| Some((*job, job.ends.get(policy)?)))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let over = |of: fn(&PlayedJob, &JobEnd) -> f64| -> Vec<f64> {
            let mut all: Vec<f64> = pairs.iter().map(|(job, end)| of(job, end)).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let paid = over(|job, end| end.cost.over(job.on_demand));
        let least = over(|job, _| job.optimum.over(job.on_demand));
        let above = over(|job, end| end.cost.over(job.optimum) - 1.0);
        let mean_of = |all: &[f64]| mean(all.iter().copied());
        Some(Self {
            of_on_demand: mean_of(&paid),
            quartiles: (quantile(&paid, 0.25), quantile(&paid, 0.75)),
            above_optimum: mean_of(&paid) / mean_of(&least) - 1.0,
            above_each: mean_of(&above),
            above_p95: quantile(&above, 0.95),
            on_demand_hours: mean_of(&over(|_, end| end.on_demand as f64 / 3_600.0)),
            spot_hours: mean_of(&over(|_, end| end.spot as f64 / 3_600.0)),
            servers: mean_of(&over(|_, end| f64::from(end.changeovers))),
            missed: pairs.iter().filter(|(_, end)| !end.met()).count() as u64,
            jobs: pairs.len() as u64,
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    sum / count
}

/// Of sorted values: the least that this part of them does not exceed.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len() as f64 * part).ceil() as usize;
    let value = sorted.get(at.saturating_sub(1));
    value.copied().unwrap_or(f64::NAN)
}

/// Mean cost of a policy over the optimum's mean cost, over all jobs of all settings, less 1.
pub(super) fn above_optimum(settings: &[SettingResult], policy: usize) -> f64 {
    let (mut paid, mut least) = (0.0, 0.0);
    for job in settings.iter().flat_map(|setting| &setting.jobs) {
        if let Some(end) = job.ends.get(policy) {
            paid += end.cost.over(job.on_demand);
            least += job.optimum.over(job.on_demand);
        }
    }
    paid / least - 1.0
}

fn settings(args: &DeadlineArgs) -> Vec<Setting> {
    let mut all = Vec::new();
    for &changeover in &args.job.changeover {
        for &work in &args.job.work {
            for &fraction in &args.job.fraction {
                let work = seconds(work);
                all.push(Setting {
                    work,
                    fraction,
                    deadline: (work as f64 / fraction).round() as u64,
                    changeover: seconds(changeover),
                });
            }
        }
    }
    all
}

/// Plays all jobs. A trace that is too short for a setting has no job there.
pub(super) fn all(
    context: &mut Context,
    args: &DeadlineArgs,
    traces: &[RecordedSeries],
) -> Result<Vec<SettingResult>, CliError> {
    let settings = settings(args);
    let policies = args.policies();
    let mut places = Vec::new();
    for (setting, of) in settings.iter().enumerate() {
        let short = |trace: &&RecordedSeries| trace.series.starts(of.deadline) == 0;
        let short = traces.iter().filter(short).count();
        if short > 0 {
            context.output.say(&format!(
                "{short} of {} traces are shorter than a deadline after {:.1} h and have no job with it",
                traces.len(),
                of.deadline as f64 / 3_600.0
            ));
        }
        for (trace, recorded) in traces.iter().enumerate() {
            let starts = args.starts as usize;
            let starts = recorded
                .series
                .sampled_starts(of.deadline, starts, args.seed);
            places.extend(starts.into_iter().map(|start| Place {
                setting,
                trace,
                start,
            }));
        }
    }
    let play = |place: &Place| {
        let setting = settings[place.setting];
        one(args, &traces[place.trace], &policies, setting, place)
    };
    let played = run(context, args, &places, &play)?;
    let mut results: Vec<SettingResult> = settings
        .iter()
        .map(|&setting| SettingResult {
            setting,
            policies: policies.clone(),
            jobs: Vec::new(),
        })
        .collect();
    for (place, job) in places.iter().zip(played) {
        results[place.setting].jobs.push(job);
    }
    if let Some(empty) = results.iter().find(|result| result.jobs.is_empty()) {
        return Err(CliError::Usage(format!(
            "no trace is as long as {:.1} hours, the deadline of --fraction {}",
            empty.setting.deadline as f64 / 3_600.0,
            empty.setting.fraction
        )));
    }
    Ok(results)
}

fn one(
    args: &DeadlineArgs,
    trace: &RecordedSeries,
    policies: &[PolicyKind],
    setting: Setting,
    place: &Place,
) -> Result<PlayedJob, DeadlineError> {
    let series = &trace.series;
    let job = DeadlineJob::new(JobTerms {
        work: setting.work,
        deadline: setting.deadline,
        changeover: setting.changeover,
        poll: series.step(),
        loss_lag: 0,
        prices: args.prices(),
    })?;
    let market = series.window(place.start, setting.deadline)?;
    let history = series.history(place.start, seconds(args.history));
    let mut ends = Vec::with_capacity(policies.len());
    for &kind in policies {
        let mut decider = Decider::new(job, kind, &history)?;
        ends.push(simulate(&mut decider, market, series.step())?);
    }
    Ok(PlayedJob {
        trace: place.trace,
        on_demand: job.on_demand_cost(),
        optimum: optimum(&job, market, series.step())?,
        ends,
    })
}

/// Hands jobs to threads; the answers come in their order.
fn run(
    context: &mut Context,
    args: &DeadlineArgs,
    places: &[Place],
    play: &(dyn Fn(&Place) -> Result<PlayedJob, DeadlineError> + Sync),
) -> Result<Vec<PlayedJob>, CliError> {
    let threads = args
        .threads
        .and_then(|n| usize::try_from(n).ok())
        .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
        .unwrap_or(1);
    let mut progress = ReplayProgress::of(context, places.len(), "jobs");
    let next = AtomicUsize::new(0);
    let mut done: Vec<Option<PlayedJob>> = places.iter().map(|_| None).collect();
    let mut failed: Option<DeadlineError> = None;
    std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads.min(places.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(place) = places.get(n) else {
                        return;
                    };
                    let played = play(place);
                    let stop = played.is_err();
                    // Sending fails only if the command itself is ending.
                    if sender.send((n, played)).is_err() || stop {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut count = 0;
        loop {
            match results.recv_timeout(REDRAW) {
                Ok((n, Ok(played))) => {
                    count += 1;
                    if let Some(place) = done.get_mut(n) {
                        *place = Some(played);
                    }
                }
                Ok((_, Err(error))) => failed = Some(error),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            progress.set(context, count, "");
        }
    });
    progress.end();
    match failed {
        Some(error) => Err(LabError::Deadline {
            place: String::new(),
            error,
        }
        .into()),
        None => Ok(done.into_iter().flatten().collect()),
    }
}
