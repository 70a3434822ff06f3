//! What came of it, in the format asked for.

use super::{Job, chart};
use crate::error::LabError;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::{Tone, number as decimal, span_f64};
use ebbtide_simulator::ReplayReport;

/// Writes the report's files, and prints it.
pub(super) fn print(
    context: &mut Context,
    job: &Job,
    report: &ReplayReport,
) -> Result<(), CliError> {
    if let Some(directory) = &job.args.report {
        let chart = chart::figure(&report.title(), &report.samples).svg()?;
        for file in report.write(directory, chart).map_err(LabError::Sim)? {
            context.output.say(&format!("wrote {}", file.display()));
        }
    }
    if context.output.format() == Format::Json {
        let json = serde_json::to_string_pretty(report).map_err(std::io::Error::from)?;
        return context.output.line(&json);
    }
    let rows = rows(report);
    if context.output.format() == Format::Value {
        for row in rows {
            let cells: Vec<String> = row.into_iter().map(|cell| cell.text).collect();
            context.output.line(&cells.join(" "))?;
        }
    } else {
        context
            .output
            .table(&[text("field", "Field"), number("value", "Value")], &rows)?;
    }
    if let Some(comparison) = &report.placements {
        let tone = if comparison.agrees() {
            Tone::Good
        } else {
            Tone::Bad
        };
        let line = context.output.paint(&comparison.to_string(), tone);
        context.output.line(&line)?;
    }
    Ok(())
}

fn rows(report: &ReplayReport) -> Vec<Vec<TableCell>> {
    let count = |n: u64, tone: Tone| {
        if n == 0 {
            TableCell::new(n)
        } else {
            TableCell::new(n).tone(tone)
        }
    };
    let ms = |value: f64| TableCell::new(format!("{} ms", decimal(value)));
    let latency = &report.decision_latency;
    let row = |field: &str, cell: TableCell| vec![TableCell::new(field), cell];
    vec![
        row("against", TableCell::new(&report.against)),
        row("policy", TableCell::new(&report.policy)),
        row("cost_module", TableCell::new(&report.cost_module)),
        row(
            "events",
            TableCell::new(format!("{} of {}", report.events, report.events_in_trace)),
        ),
        row("trace_time", TableCell::new(span_f64(report.trace_seconds))),
        row(
            "wall_time",
            TableCell::new(format!("{} s", decimal(report.wall_seconds))),
        ),
        row("creates", TableCell::new(report.creates)),
        row("placed", count(report.placed, Tone::Good)),
        row("waited", count(report.waited, Tone::Warn)),
        row("refused", count(report.refused, Tone::Warn)),
        row("failed", count(report.failed, Tone::Bad)),
        row("preempted", count(report.preempted, Tone::Warn)),
        row("deletes", TableCell::new(report.deletes)),
        row(
            "deletes_without_server",
            TableCell::new(report.deletes_without_server),
        ),
        row("decision_p50", ms(latency.p50_ms)),
        row("decision_p90", ms(latency.p90_ms)),
        row("decision_p99", ms(latency.p99_ms)),
        row("decision_max", ms(latency.max_ms)),
    ]
}

/// Whether the command has succeeded.
pub(super) fn verdict(report: &ReplayReport) -> Result<(), CliError> {
    if report.interrupted {
        return Err(CliError::Interrupted(format!(
            "after {} of {} events",
            report.events, report.events_in_trace
        )));
    }
    match &report.placements {
        Some(comparison) if !comparison.agrees() => Err(CliError::Disagrees(
            "placements differ from the recorded ones".to_owned(),
        )),
        _ => Ok(()),
    }
}
