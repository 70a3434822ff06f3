//! `ebbtide-lab bench request`.

use super::chart;
use super::report::{ProgressDisplay, rows_json, time, where_measured, write};
use crate::error::LabError;
use clap::{Args, ValueHint};
use ebbtide_bench::Machine;
use ebbtide_bench::request::{RequestOptions, RequestReport, run as measure};
use ebbtide_chart::Figure;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Listing, TableCell, number};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Hosts are partly filled with both kinds of instances; requests are of mixed sizes, every fourth one
preemptible; all of them find room, which is checked. \"Read once\" is the time that this machine needs, on
one thread, to sum up as many bytes as the columns have that every decision must look at (101 a host): no
scheduler that looks at every host can be faster than its memory.

Examples:
  ebbtide-lab bench request --hosts 100000
  ebbtide-lab bench request --hosts 1000,10000,100000 --output json --svg request.svg";

/// Options of `bench request`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RequestArgs {
    /// How many hosts; several numbers with commas between them
    #[arg(
        long,
        default_value = "100000",
        value_name = "N,…",
        value_delimiter = ','
    )]
    pub hosts: Vec<u32>,
    /// How many requests are measured
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub requests: u32,
    /// Another seed, another cloud and other requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Draw how the time grows with the hosts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
}

/// Measures and shows.
///
/// # Errors
/// Options, files, [`CliError::Disagrees`] if a request found no room.
pub(super) fn run(context: &mut Context, args: RequestArgs) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for &hosts in &args.hosts {
        let options = RequestOptions {
            hosts,
            requests: args.requests,
            seed: args.seed,
        };
        context.output.say(&format!("{hosts} hosts"));
        rows.push(measure(&options, &mut ProgressDisplay::new(context)).map_err(LabError::Bench)?);
    }
    show(context, &rows)?;
    if let Some(path) = &args.svg {
        write(context, path, &figure(&rows))?;
    }
    match rows.iter().find(|row| row.placed_with_room < row.requests) {
        None => Ok(()),
        Some(row) => Err(CliError::Disagrees(format!(
            "{} hosts: only {} of {} requests found a host with room",
            row.hosts, row.placed_with_room, row.requests
        ))),
    }
}

fn show(context: &mut Context, rows: &[RequestReport]) -> Result<(), CliError> {
    let machine = Machine::here();
    let json = rows_json(rows, &machine)?;
    let cells = |row: &RequestReport| {
        let us = |us: f64| TableCell::new(time(us)).value(us);
        vec![
            TableCell::new(row.hosts),
            us(row.latency.p50_us),
            us(row.latency.p99_us),
            us(row.latency.mean_us),
            us(row.latency.max_us),
            us(row.latency.cpu_p99_us.unwrap_or_default()),
            us(row.read_once_us),
            TableCell::new(format!("{:.1}", row.read_gib_per_s)).value(row.read_gib_per_s),
            TableCell::new(format!("{:.1}", row.ratio_to_read_once)).value(row.ratio_to_read_once),
            TableCell::new(row.placed_with_room),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            number("hosts", "Hosts"),
            number("p50_us", "p50"),
            number("p99_us", "p99"),
            number("mean_us", "Mean"),
            number("max_us", "Max"),
            number("cpu_p99_us", "CPU p99"),
            number("read_once_us", "Read once"),
            number("read_gib_per_s", "GiB/s"),
            number("ratio_to_read_once", "p50 / read once"),
            number("placed_with_room", "Placed"),
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

fn figure(rows: &[RequestReport]) -> Figure {
    let line = |label: &str, value: fn(&RequestReport) -> f64| {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .map(|r| (f64::from(r.hosts), value(r)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (label.to_owned(), points)
    };
    let lines = [
        line("p50", |r| r.latency.p50_us),
        line("p99", |r| r.latency.p99_us),
        line("reading the columns once", |r| r.read_once_us),
    ];
    let panel = chart::growth("over hosts", "hosts", lines);
    chart::figure("Ordinary requests", vec![panel])
}
