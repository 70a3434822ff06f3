//! `ebbtide-lab replay`: drives the region, or the engine alone, with a VM request trace.
//!
//! - `online` sends the events, in order, at the speed asked for; `servers` knows what has become
//!   of the servers;
//! - `setup` checks the region and makes the flavors; `offline` does all of it without a region;
//! - `chart` draws, `tables` says what came of it.

mod chart;
mod offline;
mod online;
mod servers;
mod setup;
mod tables;

use crate::error::LabError;
use clap::{Args, ValueHint};
use ebbtide_engine::WeigherConfig;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_simulator::{
    HostPattern, PreemptibleShare, ReadOptions, RecordedPlacements, ReplayReport, Sampling, Trace,
};
use std::path::PathBuf;

const EXAMPLES: &str = "\
FILE is a CSV, plain, gzip or zstd, whose header names at least the columns event (create or
delete), vm, cpu, mem_gb and time_s. Lines that cannot be understood are errors with their number.
Lines that contradict those before them (a delete before its create, a second create, time that runs
backwards) are errors too, unless --lenient: then they are counted and skipped.

With --in-flight 1 every event is finished before the next begins: a create is decided, a delete has
freed its room. Only so the placements can be compared with recorded ones. With more, events overlap,
but a delete still waits for its create.

Flavors replay.cXmY and replay.cXmY.preemptible are made as needed. At the end everything that was
made is deleted, unless --keep. Ctrl-C stops cleanly and still reports; a second one skips the
cleaning. Exit code 1 if a create failed (no valid host is no failure), if placements differ, or
after Ctrl-C.

Examples:
  ebbtide-lab replay requests.csv --preemptible-share 0.3 --report /tmp/report
  ebbtide-lab replay requests.csv --speed-up max --in-flight 16 --limit 2000
  ebbtide-lab replay requests.csv --speed-up max --expect-placements placement_firstfit.csv.zst
  ebbtide-lab replay requests.csv --offline --hosts 10 --host-cpu 40 --host-mem-gb 90 --policy first-fit
  ebbtide-lab replay requests.csv --offline --hosts 4 --weigher interruption_risk --interruption-model m.json";

/// Options of `replay`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The trace
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Share of the VMs that are preemptible, 0 to 1; which ones, a hash of their names says
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub preemptible_share: f64,
    /// Another seed chooses other VMs
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Seconds of trace time in one second, or "max" not to wait at all
    #[arg(long, default_value = "1000", value_name = "N|max", value_parser = speed)]
    pub speed_up: ReplaySpeed,
    /// Seconds from a victim's notice to its end [default: 0 on a region, where it is real time
    /// while the trace runs faster; 30 with --offline, where it is trace time]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=900))]
    pub grace: Option<u32>,
    /// Only the first so many events
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Count and skip lines that contradict those before them
    #[arg(long)]
    pub lenient: bool,
    /// How many events may be under way at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub in_flight: u32,
    /// Leave servers and flavors there at the end
    #[arg(long)]
    pub keep: bool,
    /// Write report.json and utilisation.svg into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub report: Option<PathBuf>,
    /// Look at both states every so many seconds of trace time [default: a 400th of the trace]
    #[arg(long, value_name = "SECONDS")]
    pub sample_every: Option<f64>,
    /// Compare each placement with this recording (columns event, vm, action = server * 2 + numa)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub expect_placements: Option<PathBuf>,
    /// How the recording's hosts are named here: {server} and {numa}, or {host} for the action
    #[arg(long, default_value = "s{server}n{numa}", value_name = "PATTERN")]
    pub host_pattern: String,
    /// Without a region: against the engine alone
    #[arg(long)]
    pub offline: bool,
    /// The hosts, with --offline
    #[command(flatten)]
    pub cloud: CloudArgs,
}

/// Options of `replay --offline`.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --offline")]
pub struct CloudArgs {
    /// How many hosts
    #[arg(long, default_value_t = 10, value_name = "N", requires = "offline", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub hosts: u32,
    /// Virtual CPUs of each
    #[arg(long, default_value_t = 40, value_name = "N", requires = "offline", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub host_cpu: u32,
    /// Memory of each, in GiB
    #[arg(long, default_value_t = 90, value_name = "GIB", requires = "offline", value_parser = clap::value_parser!(u32).range(1..=2_097_151))]
    pub host_mem_gb: u32,
    /// Ranking policy
    #[arg(long, default_value = "tiered", requires = "offline", value_parser = ["tiered", "nova", "first-fit"])]
    pub policy: String,
    /// Cost module [default: the engine's]
    #[arg(long, value_name = "NAME", requires = "offline")]
    pub cost_module: Option<String>,
    /// One more weigher behind the engine's, with a multiplier if not its own; can be said several
    /// times
    #[arg(long = "weigher", value_name = "NAME[=MULTIPLIER]", requires = "offline", value_parser = weigher)]
    pub weighers: Vec<WeigherConfig>,
    /// How long instances live, for the cost module remaining_lifetime: what
    /// `ebbtide-lab model fit -o json` writes
    #[arg(long, value_name = "FILE", requires = "offline", value_hint = ValueHint::FilePath)]
    pub lifetime_model: Option<PathBuf>,
    /// How soon they are interrupted, for the weigher interruption_risk: what
    /// `ebbtide-lab model fit -o json` writes
    #[arg(long, value_name = "FILE", requires = "offline", value_hint = ValueHint::FilePath)]
    pub interruption_model: Option<PathBuf>,
    /// How long preemptible work takes, for the weigher interruption_risk; and which VMs the report
    /// counts as short work
    #[arg(long, default_value_t = 3600, value_name = "SECONDS", requires = "offline", value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub horizon: u32,
}

/// How fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplaySpeed {
    /// So many seconds of trace time in one second.
    Times(f64),
    /// Without waiting.
    Max,
}

fn weigher(text: &str) -> Result<WeigherConfig, String> {
    let (name, multiplier) = match text.split_once('=') {
        None => (text, None),
        Some((name, number)) => match number.parse::<f64>() {
            Ok(number) if number.is_finite() => (name, Some(number)),
            _ => return Err(format!("{number:?} is no multiplier: use a number")),
        },
    };
    Ok(WeigherConfig {
        multiplier,
        ..WeigherConfig::named(name)
    })
}

fn speed(text: &str) -> Result<ReplaySpeed, String> {
    if text == "max" {
        return Ok(ReplaySpeed::Max);
    }
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && times > 0.0 => Ok(ReplaySpeed::Times(times)),
        _ => Err("use a number above 0, or \"max\"".to_owned()),
    }
}

/// Everything that is read before anything is done.
struct Job {
    args: ReplayArgs,
    trace: Trace,
    share: PreemptibleShare,
    sampling: Sampling,
    recorded: Option<RecordedPlacements>,
    pattern: HostPattern,
}

impl Job {
    fn read(args: ReplayArgs) -> Result<Self, CliError> {
        let share =
            PreemptibleShare::new(args.preemptible_share, args.seed).map_err(LabError::Sim)?;
        if args.expect_placements.is_some() && share.share() > 0.0 {
            return Err(CliError::Usage(
                "recorded placements know no preemptible VMs: leave --preemptible-share out"
                    .to_owned(),
            ));
        }
        if args.expect_placements.is_some() && args.in_flight > 1 {
            return Err(CliError::Usage(
                "placements can be compared only in order: leave --in-flight out".to_owned(),
            ));
        }
        let options = ReadOptions {
            limit: args.limit,
            lenient: args.lenient,
        };
        let trace = Trace::read(&args.file, options).map_err(LabError::Sim)?;
        let pattern = HostPattern::new(&args.host_pattern).map_err(LabError::Sim)?;
        let recorded = match &args.expect_placements {
            Some(file) => {
                Some(RecordedPlacements::read(file, &pattern, &trace).map_err(LabError::Sim)?)
            }
            None => None,
        };
        let sampling = Sampling::new(trace.span(), args.sample_every).map_err(LabError::Sim)?;
        Ok(Self {
            args,
            trace,
            share,
            sampling,
            recorded,
            pattern,
        })
    }

    /// A report with what is known before the first event.
    fn blank_report(&self, against: &str) -> ReplayReport {
        ReplayReport {
            trace: self.args.file.display().to_string(),
            against: against.to_owned(),
            preemptible_share: self.share.share(),
            seed: self.share.seed(),
            events_in_trace: self.trace.events.len() as u64,
            irregularities: self.trace.irregularities,
            placements: self.recorded.as_ref().map(RecordedPlacements::comparison),
            ..ReplayReport::default()
        }
    }
}

/// Replays and reports.
///
/// # Errors
/// What is wrong with the trace, what the region says, [`CliError::Disagrees`] and
/// [`CliError::Interrupted`] at the end.
pub async fn run(context: &mut Context, args: ReplayArgs) -> Result<(), CliError> {
    let job = Job::read(args)?;
    if job.trace.irregularities.total() > 0 {
        let irregular = job.trace.irregularities;
        context.output.say(&format!(
            "skipped {} deletes without a create and {} repeated creates, mended {} times that ran backwards",
            irregular.deletes_without_create, irregular.repeated_creates, irregular.backwards
        ));
    }
    let (report, problem) = if job.args.offline {
        (offline::run(context, &job)?, None)
    } else {
        online::run(context, &job).await?
    };
    tables::print(context, &job, &report)?;
    problem.map_or_else(|| tables::verdict(&report), Err)
}
