//! `ebbtide burst`: what preemptible nodes of a Slurm cluster were good for. The controller itself
//! is `ebbtide-burst`.

use clap::{Args, Subcommand};
use ebbtide_burst::report::{Baseline, BurstReport, KindReport, WaitingTimes, report};
use ebbtide_burst::{BurstError, BurstRecord};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use std::path::{Path, PathBuf};

/// The record's name in the controller's state directory.
const FILE: &str = "record.jsonl";

pub(crate) const HELP: &str = "\
Queueing delay is the time from a job's submission to its first start. It is held against that of the
same cluster without preemptible nodes: measured, if --baseline has the record of such a run
(`ebbtide-burst run --observe` writes one), else reckoned: the same jobs, with the run times that they
had, on the nodes that stay, in order of submission, each as early as possible without delaying those
before it. No real cluster knows run times beforehand, so the reckoned one is rather too good.

Instances are paid from launch to end, by the millisecond, at the flavor's price at their launch.

Examples:
  ebbtide burst report --state /var/lib/ebbtide-burst
  ebbtide burst report --state burst --baseline without -o json | jq .improvement";

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum BurstCommand {
    /// How long jobs waited with and without preemptible nodes, and what these cost
    #[command(after_help = HELP)]
    Report(ReportArgs),
}

/// Options of `burst report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The controller's state_dir
    #[arg(long, default_value = "/var/lib/ebbtide-burst", value_name = "DIR")]
    pub state: PathBuf,
    /// The state_dir of a run of the same jobs without preemptible nodes
    #[arg(long, value_name = "DIR")]
    pub baseline: Option<PathBuf>,
}

/// Does it.
///
/// # Errors
/// [`CliError::Burst`] for a record that cannot be read.
pub fn run(context: &mut Context, command: &BurstCommand) -> Result<(), CliError> {
    let BurstCommand::Report(args) = command;
    let record = read(&args.state)?;
    let other = args.baseline.as_deref().map(read).transpose()?;
    let baseline = other
        .as_ref()
        .map_or(Baseline::Reckoned, Baseline::Measured);
    let made = report(&record, baseline);
    match context.output.format() {
        Format::Json => context.output.json(&json(&made)),
        Format::Value => {
            let best = made.kinds.first().and_then(KindReport::improvement);
            let words = best.map_or_else(|| "-".to_owned(), |best| format!("{best:.2}"));
            context.output.line(&words)
        }
        Format::Table | Format::Markdown => tables(context, &made),
    }
}

fn read(dir: &Path) -> Result<BurstRecord, CliError> {
    let path = dir.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| BurstError::Storage {
        what: "read",
        path: path.display().to_string(),
        problem: error.to_string(),
    })?;
    Ok(BurstRecord::parse(&text)?)
}

fn tables(context: &mut Context, made: &BurstReport) -> Result<(), CliError> {
    let columns = [
        text("jobs", "Jobs"),
        text("nodes", "Preemptible nodes"),
        number("started", "Started"),
        number("mean", "Mean delay"),
        number("median", "Median"),
        number("p95", "95 %"),
        number("longest", "Longest"),
        number("mean_all", "Mean, all waiting"),
    ];
    let row = |kind: &KindReport, name: &str, waits: &WaitingTimes| {
        let seconds = |value: f64| TableCell::new(format!("{value:.1} s")).value(value);
        vec![
            TableCell::new(kind.kind.as_str()),
            TableCell::new(name),
            TableCell::new(waits.started),
            seconds(waits.mean),
            seconds(waits.median),
            seconds(waits.p95),
            seconds(waits.longest),
            seconds(waits.mean_all),
        ]
    };
    let rows: Vec<Vec<TableCell>> = made
        .kinds
        .iter()
        .filter(|kind| kind.jobs > 0)
        .flat_map(|kind| {
            [
                row(kind, "with", &kind.with),
                row(kind, "without", &kind.without),
            ]
        })
        .collect();
    context.output.table(&columns, &rows)?;
    context
        .output
        .line(&format!("Without: {}.", made.baseline))?;
    for kind in made.kinds.iter().filter(|kind| kind.jobs > 0) {
        let better = kind.improvement().map_or_else(
            || "nothing to compare".to_owned(),
            |times| match times.is_finite() {
                true => format!("mean delay {times:.2} times shorter"),
                false => "no job waits any more".to_owned(),
            },
        );
        context.output.line(&format!(
            "{} jobs: {} of {} ended well, {} otherwise; {} were put back {} times, after {:.1} s of running; {better}.",
            kind.kind.as_str(), kind.completed, kind.jobs, kind.failed, kind.cut_jobs, kind.cuts, kind.in_vain,
        ))?;
    }
    let money = &made.money;
    context.output.line(&format!(
        "{} instances, {} interrupted, {} never up, {:.4} h in all: {} paid, {} on demand.",
        money.instances,
        money.interrupted,
        money.never_up,
        money.hours,
        Money::from_micros(money.paid),
        Money::from_micros(money.on_demand),
    ))?;
    for (code, count) in &made.troubles {
        context.output.line(&format!(
            "{code}: {count} times; see docs/reference/errors.md."
        ))?;
    }
    Ok(())
}

fn json(made: &BurstReport) -> Json {
    let count = |value: usize| Json::from(value as u64);
    let waits = |waits: &WaitingTimes| {
        Json::object([("started", count(waits.started))])
            .with("mean_seconds", waits.mean)
            .with("median_seconds", waits.median)
            .with("p95_seconds", waits.p95)
            .with("longest_seconds", waits.longest)
            .with("mean_all_waiting_seconds", waits.mean_all)
    };
    let kinds: Vec<Json> = made
        .kinds
        .iter()
        .map(|kind| {
            Json::object([("kind", Json::from(kind.kind.as_str()))])
                .with("jobs", count(kind.jobs))
                .with("completed", count(kind.completed))
                .with("failed", count(kind.failed))
                .with("cut_jobs", count(kind.cut_jobs))
                .with("cuts", count(kind.cuts))
                .with("in_vain_seconds", kind.in_vain)
                .with("with", waits(&kind.with))
                .with("without", waits(&kind.without))
                .with(
                    "improvement",
                    kind.improvement().map_or(Json::Null, Json::from),
                )
        })
        .collect();
    let money = &made.money;
    let currency = |micros: u64| Json::from(Money::from_micros(micros).to_string());
    let bill = Json::object([("instances", count(money.instances))])
        .with("interrupted", count(money.interrupted))
        .with("never_up", count(money.never_up))
        .with("hours", money.hours)
        .with("paid", currency(money.paid))
        .with("on_demand", currency(money.on_demand));
    let troubles: Vec<Json> = made
        .troubles
        .iter()
        .map(|(code, times)| {
            Json::object([("code", Json::from(code.as_str()))]).with("times", *times)
        })
        .collect();
    let first = made.kinds.first().and_then(KindReport::improvement);
    Json::object([("improvement", first.map_or(Json::Null, Json::from))])
        .with("baseline", made.baseline.as_str())
        .with("measured", made.measured)
        .with("seconds", (made.until - made.from) as f64 / 1_000.0)
        .with("kinds", kinds)
        .with("money", bill)
        .with("troubles", troubles)
}
