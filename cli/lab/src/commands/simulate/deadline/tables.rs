//! The comparison in tables.

use super::DeadlineArgs;
use super::play::{SettingResult, Summary, above_optimum};
use ebbtide_deadline::RecordedSeries;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Format, ListingColumn, TableCell, number, text};
use ebbtide_shell::render::Tone;

/// Shows everything in the format asked for.
pub(super) fn all(
    context: &mut Context,
    args: &DeadlineArgs,
    traces: &[RecordedSeries],
    settings: &[SettingResult],
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => {
            let json = super::json::all(args, traces, settings);
            return context.output.json(&json);
        }
        Format::Value => return values(context, args, settings),
        Format::Table | Format::Markdown => {}
    }
    comparison(context, settings)?;
    if args.by_trace {
        context.output.line("")?;
        by_trace(context, traces, settings)?;
    }
    context.output.line("")?;
    context
        .output
        .line("Mean cost above the omniscient optimum, all jobs:")?;
    for (policy, kind) in args.policies().into_iter().enumerate() {
        let above = percent(above_optimum(settings, policy));
        context
            .output
            .line(&format!("  {}: {above}", kind.as_str()))?;
    }
    let jobs: usize = settings.iter().map(|setting| setting.jobs.len()).sum();
    let missed: u64 = settings.iter().map(SettingResult::missed).sum();
    let line = format!(
        "traces: {}, jobs: {jobs}, policies: {}, deadlines missed: {missed}",
        traces.len(),
        args.policies().len(),
    );
    let tone = if missed == 0 { Tone::Good } else { Tone::Bad };
    let line = context.output.paint(&line, tone);
    context.output.line(&line)
}

/// One line a policy: its name, and its mean cost above the optimum, over all jobs.
fn values(
    context: &mut Context,
    args: &DeadlineArgs,
    settings: &[SettingResult],
) -> Result<(), CliError> {
    for (policy, kind) in args.policies().into_iter().enumerate() {
        let above = above_optimum(settings, policy);
        context
            .output
            .line(&format!("{} {above:.6}", kind.as_str()))?;
    }
    Ok(())
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn hours(seconds: u64) -> String {
    format!("{:.1} h", seconds as f64 / 3_600.0)
}

const COLUMNS: [ListingColumn; 12] = [
    text("job", "Work, deadline"),
    text("changeover", "Changeover"),
    text("policy", "Policy"),
    number("of_on_demand", "Cost"),
    text("quartiles", "25 .. 75 %"),
    number("above_optimum", "Above opt."),
    number("above_each", "by job"),
    number("above_p95", "95 %"),
    number("on_demand_hours", "On demand"),
    number("spot_hours", "Preempt."),
    number("servers", "Servers"),
    number("missed", "Missed"),
];

fn comparison(context: &mut Context, settings: &[SettingResult]) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for result in settings {
        let setting = result.setting;
        let head = [
            format!("{}, {}", hours(setting.work), hours(setting.deadline)),
            format!("{:.0} min", setting.changeover as f64 / 60.0),
        ];
        let mut row: Vec<TableCell> = head.iter().cloned().map(TableCell::new).collect();
        row.push(TableCell::new("optimum"));
        row.push(TableCell::new(percent(result.optimum())));
        row.extend(std::iter::repeat_n("-", COLUMNS.len() - 4).map(TableCell::new));
        rows.push(row);
        for (policy, kind) in result.policies.iter().enumerate() {
            let Some(summary) = result.summary(policy, None) else {
                continue;
            };
            let mut row: Vec<TableCell> = head.iter().cloned().map(TableCell::new).collect();
            row.push(TableCell::new(kind.as_str()));
            row.extend(cells(&summary));
            rows.push(row);
        }
    }
    context.output.table(&COLUMNS, &rows)
}

fn cells(summary: &Summary) -> [TableCell; 9] {
    let (low, high) = summary.quartiles;
    let missed = TableCell::new(summary.missed);
    [
        TableCell::new(percent(summary.of_on_demand)),
        TableCell::new(format!("{} .. {}", percent(low), percent(high))).tone(Tone::Dim),
        TableCell::new(percent(summary.above_optimum)),
        TableCell::new(percent(summary.above_each)),
        TableCell::new(percent(summary.above_p95)),
        TableCell::new(format!("{:.1} h", summary.on_demand_hours)),
        TableCell::new(format!("{:.1} h", summary.spot_hours)),
        TableCell::new(format!("{:.1}", summary.servers)),
        if summary.missed == 0 {
            missed
        } else {
            missed.tone(Tone::Bad)
        },
    ]
}

/// For each trace and setting the mean cost of each policy above the optimum.
fn by_trace(
    context: &mut Context,
    traces: &[RecordedSeries],
    settings: &[SettingResult],
) -> Result<(), CliError> {
    let mut columns = vec![
        text("trace", "Trace"),
        number("available", "Available"),
        text("job", "Work, deadline"),
    ];
    let policies = settings.first().map_or(&[][..], |first| &first.policies);
    columns.extend(
        policies
            .iter()
            .map(|kind| number(kind.as_str(), kind.as_str())),
    );
    let mut rows = Vec::new();
    for (at, trace) in traces.iter().enumerate() {
        for result in settings {
            let each = 0..policies.len();
            let summaries: Vec<Summary> = each
                .filter_map(|policy| result.summary(policy, Some(at)))
                .collect();
            if summaries.is_empty() {
                continue;
            }
            let setting = result.setting;
            let job = format!("{}, {}", hours(setting.work), hours(setting.deadline));
            let mut row = vec![
                TableCell::new(trace.series.name()),
                TableCell::new(percent(trace.series.fraction())),
                TableCell::new(job),
            ];
            let above = summaries
                .iter()
                .map(|summary| percent(summary.above_optimum));
            row.extend(above.map(TableCell::new));
            rows.push(row);
        }
    }
    context.output.table(&columns, &rows)
}
