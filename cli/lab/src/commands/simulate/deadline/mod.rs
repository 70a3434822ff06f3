//! `ebbtide-lab simulate deadline`: one job with a deadline on recorded availability.

mod json;
mod play;
mod tables;

use crate::error::LabError;
use clap::{Args, ValueEnum};
use ebbtide_bag::read::price;
use ebbtide_deadline::{
    DeadlineError, HourPrices, PolicyKind, RecordedSeries, SeriesKind, read_runs,
};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use std::path::{Path, PathBuf};

pub(super) const HELP: &str = "\
A job needs --work on one server and must be done by work / --fraction. At each step of a trace it waits, holds a
preemptible server if there is one, or holds an on-demand server. Each new server makes no progress for --changeover
and is paid meanwhile. The policies:

  greedy            preemptible servers while there are any, waiting otherwise; on demand when time runs out
  time-sliced       greedy in each of --slices equal slices of the time
  uniform-progress  of the paper 'Can't Be Late' (NSDI 2024): on demand when the job is behind the straight line from
                    start to deadline, until it is at the line of two changeovers later
  uniform-progress-keep  the same, but an on-demand server is kept until there is a preemptible one
  planned           ours: least expected cost, with how long periods with and without servers last learnt from the
                    trace so far (--history before the start)

Each is compared with on demand all the way and with the omniscient optimum, the least cost when the whole trace is
known. Jobs start at --starts places of each trace, drawn with --seed. Exit code 1 if a deadline was missed.
docs/tenants/deadlines.md has more.

Traces are CSV, plain, gzip or zstd, with the columns kind,file,gap_s,start_tick,ticks,value: runs of ticks with the
same number of servers. A cluster of several counts as there when all of it is.

Examples:
  ebbtide-lab simulate deadline --traces ../shared/data/spot-traces-skypilot
  ebbtide-lab simulate deadline --traces spot_traces_runs.csv --series 1-node/aws-02-15 --fraction 0.9 --starts 300
  ebbtide-lab simulate deadline --traces spot_traces_runs.csv --work 24h --changeover 3m,12m --history 0
  ebbtide-lab simulate deadline --traces spot_traces_runs.csv -o json | jq '.mean.planned'";

/// A policy on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyChoice {
    /// On demand from the first second
    OnDemand,
    /// Preemptible servers while there are any, waiting otherwise, on demand when time runs out
    Greedy,
    /// Greedy in each of several slices of the time
    TimeSliced,
    /// The paper's policy
    UniformProgress,
    /// The paper's policy, keeping on-demand servers until there is a preemptible one
    UniformProgressKeep,
    /// Least expected cost
    Planned,
}

impl PolicyChoice {
    const DEFAULT: [Self; 5] = [
        Self::Greedy,
        Self::TimeSliced,
        Self::UniformProgress,
        Self::UniformProgressKeep,
        Self::Planned,
    ];

    fn kind(self, slices: u32) -> PolicyKind {
        match self {
            Self::OnDemand => PolicyKind::OnDemand,
            Self::Greedy => PolicyKind::Greedy,
            Self::TimeSliced => PolicyKind::TimeSliced { slices },
            Self::UniformProgress => PolicyKind::UniformProgress,
            Self::UniformProgressKeep => PolicyKind::UniformProgressKeep,
            Self::Planned => PolicyKind::Planned,
        }
    }
}

/// How traces were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordChoice {
    /// Servers were requested at each tick
    Availability,
    /// Servers were kept as long as they lived
    Preemption,
}

/// The job.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Job")]
pub struct DeadlineJobArgs {
    /// Work on one server without any interruption; several with commas between
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "48h"
    )]
    pub work: Vec<Hours>,
    /// Work over the time until the deadline, the paper's job fraction
    #[arg(long, value_name = "F", value_delimiter = ',', default_value = "0.6,0.7,0.8,0.9", value_parser = fraction)]
    pub fraction: Vec<f64>,
    /// From the request of a server until the job makes progress on it; several with commas between
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "12m"
    )]
    pub changeover: Vec<Hours>,
    /// Price of a preemptible server for an hour
    #[arg(long, value_name = "PRICE", default_value = "0.92", value_parser = price)]
    pub spot_price: Money,
    /// Price of an on-demand server for an hour
    #[arg(long, value_name = "PRICE", default_value = "3.06", value_parser = price)]
    pub on_demand_price: Money,
}

/// Options of `simulate deadline`.
#[derive(Debug, Clone, Args)]
pub struct DeadlineArgs {
    /// Traces of availability: a file, or a folder with files *.csv
    #[arg(long, value_name = "PATH")]
    pub traces: PathBuf,
    /// Only traces whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    pub series: Vec<String>,
    /// Only traces that were recorded like this [default: both]
    #[arg(long, value_enum, value_name = "KIND")]
    pub recorded: Option<RecordChoice>,
    #[command(flatten)]
    pub job: DeadlineJobArgs,
    /// Only these policies [default: all but on-demand]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "POLICY")]
    pub policy: Vec<PolicyChoice>,
    /// Slices of the policy time-sliced
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub slices: u32,
    /// How much of a trace before the start of a job the policy planned has seen
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub history: Hours,
    /// Show each trace, too
    #[arg(long)]
    pub by_trace: bool,
    /// Starts drawn in each trace
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Simulation")]
    pub starts: u32,
    /// Seed of the starts
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 1,
        help_heading = "Simulation"
    )]
    pub seed: u64,
    /// Threads; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Simulation")]
    pub threads: Option<u32>,
}

impl DeadlineArgs {
    fn policies(&self) -> Vec<PolicyKind> {
        let chosen = if self.policy.is_empty() {
            &PolicyChoice::DEFAULT[..]
        } else {
            &self.policy
        };
        chosen
            .iter()
            .map(|choice| choice.kind(self.slices))
            .collect()
    }

    fn prices(&self) -> HourPrices {
        HourPrices {
            spot: self.job.spot_price,
            on_demand: self.job.on_demand_price,
        }
    }

    fn takes(&self, trace: &RecordedSeries) -> bool {
        let kind = match self.recorded {
            None => true,
            Some(RecordChoice::Availability) => trace.kind == SeriesKind::Availability,
            Some(RecordChoice::Preemption) => trace.kind == SeriesKind::Preemption,
        };
        let name = trace.series.name();
        kind && (self.series.is_empty() || self.series.iter().any(|part| name.contains(part)))
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err(format!(
            "{text:?} is no part of the time: a number above 0 and below 1"
        )),
    }
}

/// Whole seconds of a time; what is too long stays too long and is refused where it is used.
fn seconds(hours: Hours) -> u64 {
    (hours.0 * 3_600.0).round().min(1e15) as u64
}

fn files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let csv = |path: &PathBuf| path.extension().is_some_and(|end| end == "csv");
    let entries = std::fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(csv);
    files.sort();
    if files.is_empty() {
        return Err(deadline_error(path, DeadlineError::Empty));
    }
    Ok(files)
}

fn traces(args: &DeadlineArgs) -> Result<Vec<RecordedSeries>, CliError> {
    let mut all = Vec::new();
    for file in files(&args.traces)? {
        let bytes = ebbtide_files::read(&file)?;
        let text = String::from_utf8_lossy(&bytes);
        all.extend(read_runs(&text).map_err(|error| deadline_error(&file, error))?);
    }
    all.retain(|trace| args.takes(trace));
    if all.is_empty() {
        return Err(CliError::Usage(
            "no trace is left: --series and --recorded fit none".to_owned(),
        ));
    }
    Ok(all)
}

fn deadline_error(file: &Path, error: DeadlineError) -> CliError {
    LabError::Deadline {
        place: format!("{}: ", file.display()),
        error,
    }
    .into()
}

/// Simulates and shows.
pub(super) fn run(context: &mut Context, args: &DeadlineArgs) -> Result<(), CliError> {
    let traces = traces(args)?;
    let settings = play::all(context, args, &traces)?;
    tables::all(context, args, &traces, &settings)?;
    let missed: u64 = settings.iter().map(play::SettingResult::missed).sum();
    if missed == 0 {
        return Ok(());
    }
    Err(CliError::Disagrees(format!("deadlines missed: {missed}")))
}
