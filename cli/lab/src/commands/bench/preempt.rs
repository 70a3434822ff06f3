//! `ebbtide-lab bench preempt`.

use super::chart;
use super::report::{ProgressDisplay, rows_json, time, where_measured, write};
use crate::error::LabError;
use clap::{Args, ValueHint};
use ebbtide_bench::Machine;
use ebbtide_bench::preempt::{PreemptOptions, PreemptReport, run as measure};
use ebbtide_chart::Figure;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::collections::BTreeMap;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Every host holds K preemptible instances of mixed sizes and ages, and normal ones until nothing fits any
more. Normal requests of mixed sizes are decided one after another by one thread, with the default
configuration, 37 seconds apart. \"exact\" is true only if the engine has proven every answer to be the
cheapest over all hosts, and every answer that was checked against a reference of its own (all of them up
to 50,000 instances, else 25 of them) is equal to it. Exit code 1 if one is not.

With several numbers of hosts or of preemptibles, each pair of them is measured, and --svg shows how the
time grows.

Examples:
  ebbtide-lab bench preempt --hosts 10000 --preemptibles 16 --output json
  ebbtide-lab bench preempt --hosts 1000,10000,100000 --preemptibles 8,16,40 --svg growth.svg";

/// Options of `bench preempt`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PreemptArgs {
    /// How many hosts; several numbers with commas between them
    #[arg(
        long,
        default_value = "1000",
        value_name = "N,…",
        value_delimiter = ','
    )]
    pub hosts: Vec<u32>,
    /// Preemptible instances on each host; several numbers with commas between them
    #[arg(long, default_value = "16", value_name = "K,…", value_delimiter = ',')]
    pub preemptibles: Vec<u32>,
    /// How many requests are measured
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub requests: u32,
    /// Another seed, another cloud and other requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Do what was answered: the victims leave, the new instance comes
    #[arg(long)]
    pub apply: bool,
    /// Draw how the time grows with hosts and preemptibles
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
}

/// Measures and shows.
///
/// # Errors
/// Options, files, [`CliError::Disagrees`] if an answer was not exact.
pub(super) fn run(context: &mut Context, args: PreemptArgs) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for &hosts in &args.hosts {
        for &preemptibles in &args.preemptibles {
            let options = PreemptOptions {
                hosts,
                preemptibles,
                requests: args.requests,
                seed: args.seed,
                apply: args.apply,
            };
            context.output.say(&format!(
                "{hosts} hosts, {preemptibles} preemptible instances each"
            ));
            rows.push(
                measure(&options, &mut ProgressDisplay::new(context)).map_err(LabError::Bench)?,
            );
        }
    }
    show(context, &rows)?;
    if let Some(path) = &args.svg {
        write(context, path, &figure(&rows))?;
    }
    match rows.iter().find(|row| !row.exact) {
        None => Ok(()),
        Some(row) => Err(CliError::Disagrees(format!(
            "{} hosts with {} preemptible instances: {} answers of {} checked were wrong, {} were cut{}",
            row.hosts,
            row.preemptibles,
            row.wrong,
            row.checked,
            row.cut,
            row.first_fault
                .as_ref()
                .map_or_else(String::new, |fault| format!("; the first: {fault}"))
        ))),
    }
}

fn show(context: &mut Context, rows: &[PreemptReport]) -> Result<(), CliError> {
    let machine = Machine::here();
    let json = rows_json(rows, &machine)?;
    let cells = |row: &PreemptReport| {
        let times = [
            row.latency.p50_us,
            row.latency.p99_us,
            row.latency.mean_us,
            row.latency.max_us,
            row.latency.cpu_p99_us.unwrap_or_default(),
        ];
        let exact = if row.exact {
            ("yes", Tone::Good)
        } else {
            ("NO", Tone::Bad)
        };
        let mut cells = vec![TableCell::new(row.hosts), TableCell::new(row.preemptibles)];
        cells.extend(times.map(|us| TableCell::new(time(us)).value(us)));
        cells.push(TableCell::new(exact.0).tone(exact.1).value(row.exact));
        cells.push(
            TableCell::new(format!("{} of {}", row.checked, row.requests)).value(row.checked),
        );
        cells.push(TableCell::new(row.mean_victims));
        cells.push(TableCell::new(row.no_valid_host));
        cells
    };
    context.output.listing(Listing {
        columns: vec![
            number("hosts", "Hosts"),
            number("preemptibles", "Preemptibles"),
            number("p50_us", "p50"),
            number("p99_us", "p99"),
            number("mean_us", "Mean"),
            number("max_us", "Max"),
            number("cpu_p99_us", "CPU p99"),
            text("exact", "Exact"),
            number("checked", "Checked"),
            number("mean_victims", "Victims"),
            number("no_valid_host", "No valid host"),
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

/// One panel over the hosts, one over the preemptibles of a host.
fn figure(rows: &[PreemptReport]) -> Figure {
    let over = |x: fn(&PreemptReport) -> u32, by: fn(&PreemptReport) -> u32, word: &str| {
        let mut series: BTreeMap<(u32, &str), Vec<(f64, f64)>> = BTreeMap::new();
        for row in rows {
            let mut add = |name, us| {
                let points = series.entry((by(row), name)).or_default();
                points.push((f64::from(x(row)), us));
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
            };
            add("p50", row.latency.p50_us);
            add("p99", row.latency.p99_us);
        }
        series
            .into_iter()
            .map(|((count, name), points)| (format!("{count} {word}, {name}"), points))
            .collect::<Vec<_>>()
    };
    let (hosts, each) = (
        |r: &PreemptReport| r.hosts,
        |r: &PreemptReport| r.preemptibles,
    );
    let x = "preemptible instances a host";
    let panels = vec![
        chart::growth("over hosts", "hosts", over(hosts, each, "a host")),
        chart::growth(&format!("over {x}"), x, over(each, hosts, "hosts")),
    ];
    chart::figure(
        "Requests that preempt: the cheapest victims over all hosts",
        panels,
    )
}
