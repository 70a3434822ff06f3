//! `ebbtide-lab bench nova`.

use super::report::{ProgressDisplay, rows_json, time, where_measured};
use crate::error::LabError;
use clap::{Args, ValueHint};
use ebbtide_bench::nova::{
    ColumnPath, NovaPath, NovaReport, Reference, nova_cpu_median_us, read_answers, read_input,
    run as measure,
};
use ebbtide_bench::{BenchError, Machine};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Filters and weighs with Nova's defaults, on the hosts and requests of Nova's own benchmark, and holds every
answer against Nova's: how many hosts pass, the first twenty, their weights to the last bit. Exit code 1
unless all are equal. What is compared with Nova is the median of the processor time for filters and weighers.
The path `columns` puts the best 20 hosts in order, as many as are compared; `whole order` all, as Nova does.
devstack/bench-nova installs Nova, runs it on the same input in the same minute, and shows both.

Examples:
  ebbtide-lab bench nova --input integration/nova/bench/hosts_1000.jsonl.gz
  ebbtide-lab bench nova --input hosts_1000.jsonl.gz --answers answers_1000.jsonl --nova nova_1000.json -o json";

/// Options of `bench nova`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NovaArgs {
    /// Hosts and requests, as bench_nova.py reads them; gzip or plain
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: PathBuf,
    /// Nova's answers [default: answers_N.jsonl beside hosts_N.jsonl.gz]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub answers: Option<PathBuf>,
    /// Nova's times, as bench_nova.py --json writes them, to print the ratio
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub nova: Option<PathBuf>,
    /// How many requests are measured
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub iterations: usize,
    /// Time the simple version too, that the columns are tested against
    #[arg(long)]
    pub reference: bool,
}

/// Measures and shows.
///
/// # Errors
/// Files, [`CliError::Disagrees`] if an answer is not Nova's.
pub(super) fn run(context: &mut Context, args: NovaArgs) -> Result<(), CliError> {
    let answers = match &args.answers {
        Some(file) => file.clone(),
        None => beside(&args.input)?,
    };
    let expected = read_answers(&answers).map_err(LabError::Bench)?;
    let nova = args
        .nova
        .as_deref()
        .map(nova_cpu_median_us)
        .transpose()
        .map_err(LabError::Bench)?;
    context
        .output
        .say(&format!("reading {}", args.input.display()));
    let input = read_input(&args.input).map_err(LabError::Bench)?;
    let mut paths: Vec<Box<dyn NovaPath + '_>> = vec![
        Box::new(ColumnPath::best(&input)),
        Box::new(ColumnPath::whole_order(&input)),
    ];
    if args.reference {
        paths.push(Box::new(Reference::new(&input)));
    }
    let mut rows = Vec::new();
    for path in &mut paths {
        let mut progress = ProgressDisplay::new(context);
        rows.push(
            measure(
                &input,
                path.as_mut(),
                &expected,
                args.iterations,
                nova,
                &mut progress,
            )
            .map_err(LabError::Bench)?,
        );
    }
    show(context, &rows)?;
    match rows
        .iter()
        .find(|row| row.equal < row.checked || row.checked == 0)
    {
        None => Ok(()),
        Some(row) => Err(CliError::Disagrees(format!(
            "{}: {} of {} answers are Nova's{}",
            row.path,
            row.equal,
            row.checked,
            row.first_difference
                .as_ref()
                .map_or_else(String::new, |first| format!("; {first}"))
        ))),
    }
}

/// `answers_N.jsonl` beside `hosts_N.jsonl.gz`.
fn beside(input: &Path) -> Result<PathBuf, CliError> {
    let name = input
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let size = name
        .strip_prefix("hosts_")
        .and_then(|rest| rest.split('.').next());
    let found = size.map(|size| input.with_file_name(format!("answers_{size}.jsonl")));
    found.ok_or_else(|| {
        LabError::Bench(BenchError::Option(format!(
            "{name} is not named hosts_N.jsonl.gz: name Nova's answers with --answers"
        )))
        .into()
    })
}

fn show(context: &mut Context, rows: &[NovaReport]) -> Result<(), CliError> {
    let machine = Machine::here();
    let json = rows_json(rows, &machine)?;
    let cells = |row: &NovaReport| {
        let us = |us: f64| TableCell::new(time(us)).value(us);
        let same = row.equal == row.checked && row.checked > 0;
        let tone = if same { Tone::Good } else { Tone::Bad };
        vec![
            TableCell::new(row.hosts),
            TableCell::new(row.path),
            row.latency
                .cpu_p50_us
                .map_or_else(|| TableCell::new("-"), us),
            us(row.latency.p50_us),
            us(row.latency.p99_us),
            row.nova_cpu_p50_us.map_or_else(|| TableCell::new("-"), us),
            row.ratio.map_or_else(
                || TableCell::new("-"),
                |r| TableCell::new(format!("{r:.0}×")).value(r),
            ),
            TableCell::new(format!("{} of {}", row.equal, row.checked))
                .tone(tone)
                .value(same),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            number("hosts", "Hosts"),
            text("path", "Path"),
            number("cpu_p50_us", "CPU median"),
            number("p50_us", "p50"),
            number("p99_us", "p99"),
            number("nova_cpu_p50_us", "Nova, CPU median"),
            number("ratio", "Ratio"),
            number("equal", "Equal to Nova"),
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
