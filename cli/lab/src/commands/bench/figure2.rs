//! `ebbtide-lab bench figure2`.

use super::chart;
use super::report::{ProgressDisplay, rows_json, time, where_measured, write};
use crate::error::LabError;
use clap::{Args, ValueHint};
use ebbtide_bench::Machine;
use ebbtide_bench::figure2::{Figure2Options, Figure2Row, Scenario, SchedulerKind, run as measure};
use ebbtide_chart::Panel;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Three schedulers on the same engine, with the same filters, weighers and table. \"plain\" knows one state and
no preemption; \"preemptible-aware\" is Ebbtide; \"retry\" asks like plain first and goes through a second, whole
cycle only where that fails. Each asks for servers of one size, and every answer is applied before the next
request: in an empty cloud for normal and for preemptible ones, and in a cloud full of preemptible ones, where
each request ends one of them. Ratios are of medians. Exit code 1 if the schedulers' answers differ.

Examples:
  ebbtide-lab bench figure2
  ebbtide-lab bench figure2 --hosts 24 --requests 130 --svg figure2.svg
  ebbtide-lab bench figure2 --hosts 24,10000 --output json";

/// Options of `bench figure2`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Figure2Args {
    /// How many hosts; several numbers with commas between them
    #[arg(
        long,
        default_value = "24,10000",
        value_name = "N,…",
        value_delimiter = ','
    )]
    pub hosts: Vec<u32>,
    /// Requests in one round
    #[arg(long, default_value_t = 130, value_name = "N")]
    pub requests: u32,
    /// Rounds, each from the beginning
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub rounds: u32,
    /// Another seed, other ages of the instances
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Draw the bars
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
}

/// Measures and shows.
///
/// # Errors
/// Options, files, [`CliError::Disagrees`] if the schedulers do not agree.
pub(super) fn run(context: &mut Context, args: Figure2Args) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for &hosts in &args.hosts {
        let options = Figure2Options {
            hosts,
            requests: args.requests,
            rounds: args.rounds,
            seed: args.seed,
        };
        context.output.say(&format!("{hosts} hosts"));
        rows.extend(
            measure(&options, &mut ProgressDisplay::new(context)).map_err(LabError::Bench)?,
        );
    }
    show(context, &rows)?;
    if let Some(path) = &args.svg {
        let panels = args.hosts.iter().map(|&hosts| panel(hosts, &rows));
        let title = format!("{} requests: time of each (median)", args.requests);
        write(context, path, &chart::figure(&title, panels.collect()))?;
    }
    let unlike = |row: &&Figure2Row| {
        let cannot =
            row.scheduler == SchedulerKind::Plain && row.scenario == Scenario::SaturatedNormal;
        !row.same_answers && !cannot
    };
    match rows.iter().find(unlike) {
        None => Ok(()),
        Some(row) => Err(CliError::Disagrees(format!(
            "{} hosts, {}: {} answered unlike preemptible-aware",
            row.hosts,
            row.scenario.as_str(),
            row.scheduler.as_str()
        ))),
    }
}

fn show(context: &mut Context, rows: &[Figure2Row]) -> Result<(), CliError> {
    let machine = Machine::here();
    let json = rows_json(rows, &machine)?;
    let cells = |row: &Figure2Row| {
        let us = |us: f64| TableCell::new(time(us)).value(us);
        let ratio = |ratio: f64| TableCell::new(format!("{ratio:.2}")).value(ratio);
        vec![
            TableCell::new(row.hosts),
            TableCell::new(row.scenario.as_str()),
            TableCell::new(row.scheduler.as_str()),
            us(row.latency.p50_us),
            us(row.latency.mean_us),
            us(row.latency.p99_us),
            us(row.latency.cpu_p50_us.unwrap_or_default()),
            row.ratio_to_plain
                .map_or_else(|| TableCell::new("-"), ratio),
            ratio(row.ratio_to_aware),
            TableCell::new(row.placed),
            TableCell::new(row.victims),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            number("hosts", "Hosts"),
            text("scenario", "Scenario"),
            text("scheduler", "Scheduler"),
            number("p50_us", "p50"),
            number("mean_us", "Mean"),
            number("p99_us", "p99"),
            number("cpu_p50_us", "CPU p50"),
            number("ratio_to_plain", "/ plain"),
            number("ratio_to_aware", "/ aware"),
            number("placed", "Placed"),
            number("victims", "Victims"),
        ],
        rows: rows.iter().map(cells).collect(),
        json,
        none: "nothing was measured",
    })?;
    if context.output.is_table() {
        context.output.say(&where_measured(&machine));
    }
    Ok(())
}

fn panel(hosts: u32, rows: &[Figure2Row]) -> Panel {
    let of = |scenario: Scenario, kind: SchedulerKind| {
        rows.iter()
            .find(|row| (row.hosts, row.scenario, row.scheduler) == (hosts, scenario, kind))
            .map_or(0.0, |row| row.latency.p50_us)
    };
    let series = SchedulerKind::ALL.map(|kind| {
        let values = Scenario::ALL.map(|scenario| of(scenario, kind));
        (kind.as_str(), values.to_vec())
    });
    let groups = Scenario::ALL.map(Scenario::as_str);
    chart::bars(&format!("{hosts} hosts"), groups, &series)
}
