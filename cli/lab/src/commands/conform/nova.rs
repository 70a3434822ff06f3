//! `ebbtide-lab conform nova`: anyone can see that we decide as Nova does. No region is needed.
//!
//! - `corpus` reads a file of cases, `verdict` runs and compares them on all cores, here is what
//!   the user sees.

mod corpus;
mod verdict;

use clap::Args;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;
use verdict::{CaseDifference, ConformSummary};

/// Help of the command.
pub(super) const HELP: &str = "\
Reads cases with Nova's answers, recorded by integration/nova/oracle/nova_oracle.py, decides each one
and compares everything that Nova defines: the verdict of each filter on each host, the
pipeline, raw, normalised and weighted numbers of all weighers to the last bit, the order, what chance
may choose, claims, selections and alternates, what they use up, the Placement query, and the class
of error where Nova fails. Exit code 1 unless all cases agree. Needs no region.

Left out are messages of errors, the order of hosts where a weight is NaN, and what follows from
`random` where Nova had several hosts to choose from.

Examples:
  ebbtide-lab conform nova integration/nova/corpus/dev.jsonl.gz
  ebbtide-lab conform nova dev.jsonl.gz --only numa --max-differences 3
  ebbtide-lab conform nova dev.jsonl.gz -o json | jq '.fields'";

/// What to compare.
#[derive(Debug, Clone, Args)]
pub struct NovaArgs {
    /// Cases and answers, one pair a line, as JSON; gzip or plain; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only cases of this id or shape; may be repeated
    #[arg(long, value_name = "ID|SHAPE")]
    pub only: Vec<String>,
    /// How many differences to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub max_differences: usize,
    /// How many cases to decide at once; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

/// Runs and shows.
///
/// # Errors
/// [`crate::error::LabError::Corpus`] if the file is none, [`CliError::Disagrees`] if a case does
/// not agree.
pub(super) fn run(context: &mut Context, args: &NovaArgs) -> Result<(), CliError> {
    let lines = corpus::read(&args.file)?;
    let threads = args
        .threads
        .and_then(|n| usize::try_from(n).ok())
        .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
        .unwrap_or(1);
    let summary = verdict::run(context, args, &lines, threads)?;
    let verdict = format!("{} of {} cases agree", summary.agree, summary.total);
    match context.output.format() {
        Format::Json => context.output.json(&json(args, &summary))?,
        Format::Value => {
            for shown in &summary.shown {
                let d = &shown.difference;
                context.output.line(&format!(
                    "{} {} {} {}",
                    shown.case, d.path, d.expected, d.ours
                ))?;
            }
            context.output.line(&verdict)?;
        }
        Format::Table | Format::Markdown => {
            tables(context, &summary)?;
            let all = summary.agree == summary.total;
            let line = context
                .output
                .paint(&verdict, if all { Tone::Good } else { Tone::Bad });
            context.output.line(&line)?;
        }
    }
    if summary.agree == summary.total {
        Ok(())
    } else {
        Err(CliError::Disagrees(verdict))
    }
}

fn tables(context: &mut Context, summary: &ConformSummary) -> Result<(), CliError> {
    let columns = [
        text("shape", "Shape"),
        number("cases", "Cases"),
        number("agree", "Agree"),
        number("differ", "Differ"),
    ];
    let row = |(shape, (agree, total)): (&String, &(usize, usize))| {
        let differ = total - agree;
        let tone = if differ == 0 { Tone::Plain } else { Tone::Bad };
        vec![
            TableCell::new(shape),
            TableCell::new(total),
            TableCell::new(agree),
            TableCell::new(differ).tone(tone),
        ]
    };
    let rows: Vec<Vec<TableCell>> = summary.shapes.iter().map(row).collect();
    context.output.table(&columns, &rows)?;
    if summary.fields.is_empty() {
        return Ok(());
    }
    let columns = [text("field", "Field"), number("cases", "Cases that differ")];
    let rows: Vec<Vec<TableCell>> = summary
        .fields
        .iter()
        .map(|(field, cases)| vec![TableCell::new(field), TableCell::new(cases).tone(Tone::Bad)])
        .collect();
    context.output.table(&columns, &rows)?;
    let mut last = "";
    for CaseDifference {
        case,
        shape,
        difference,
    } in &summary.shown
    {
        if case != last {
            context.output.line(&format!("{case} ({shape})"))?;
            last = case;
        }
        context.output.line(&format!("  {}", difference.path))?;
        context
            .output
            .line(&format!("    Nova: {}", difference.expected))?;
        context
            .output
            .line(&format!("    ours: {}", difference.ours))?;
    }
    if summary.hidden > 0 {
        let line = format!(
            "… and {} more differences; --max-differences shows more, --only ID shows one case",
            summary.hidden
        );
        context.output.line(&line)?;
    }
    Ok(())
}

fn json(args: &NovaArgs, summary: &ConformSummary) -> Json {
    let count = |n: usize| Json::from(n as u64);
    let shapes = summary.shapes.iter().map(|(shape, (agree, total))| {
        Json::object([("shape", Json::from(shape.as_str()))])
            .with("total", count(*total))
            .with("agree", count(*agree))
    });
    let fields = summary.fields.iter().map(|(field, cases)| {
        Json::object([("field", Json::from(field.as_str()))]).with("cases", count(*cases))
    });
    let differences = summary.shown.iter().map(|shown| {
        let d = &shown.difference;
        Json::object([("case", Json::from(shown.case.as_str()))])
            .with("shape", shown.shape.as_str())
            .with("field", d.field.as_str())
            .with("path", d.path.as_str())
            .with("nova", d.expected.as_str())
            .with("ours", d.ours.as_str())
    });
    Json::object([("file", Json::from(args.file.display().to_string()))])
        .with("total", count(summary.total))
        .with("agree", count(summary.agree))
        .with("shapes", Json::List(shapes.collect()))
        .with("fields", Json::List(fields.collect()))
        .with("differences", Json::List(differences.collect()))
        .with("differences_left_out", count(summary.hidden))
}
