//! The comparison in tables.

use super::CheckpointingArgs;
use super::sweep::{BidSweep, SweepResult};
use ebbtide_checkpointing::{BidComparison, SchemeKind, SchemeResult, SchemeSummary, Spread};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Format, ListingColumn, TableCell, number, text};
use ebbtide_shell::render::Tone;

/// Shows everything in the format asked for.
pub(super) fn all(
    context: &mut Context,
    args: &CheckpointingArgs,
    all: &SweepResult,
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => {
            let json = super::json::all(args, all);
            return context.output.json(&json);
        }
        Format::Value => return values(context, all),
        Format::Table | Format::Markdown => {}
    }
    match all.series.as_slice() {
        [one] => single(context, all, one)?,
        _ => many(context, all)?,
    }
    warnings(context, all);
    let jobs = all.jobs;
    let line = format!(
        "{} series, {} bids, {jobs} jobs of {} played in {:.1} s",
        all.series.len(),
        all.series.iter().map(|one| one.rows.len()).sum::<usize>(),
        args.job,
        all.seconds
    );
    context.output.say(&line);
    Ok(())
}

/// One line a scheme: scheme, number of series or bids, cost, time, product in per cent against
/// OPT.
fn values(context: &mut Context, all: &SweepResult) -> Result<(), CliError> {
    let single = match all.series.as_slice() {
        [one] => Some(one),
        _ => None,
    };
    let summaries = single.map_or(&all.summaries, |one| &one.summaries);
    for summary in summaries {
        let line = format!(
            "{} {} {:.3} {:.3} {:.3}",
            summary.kind, summary.of, summary.cost.mean, summary.time.mean, summary.product.mean
        );
        context.output.line(&line)?;
    }
    Ok(())
}

fn percent(value: f64) -> String {
    // Minus zero is zero.
    format!("{:+.1} %", if value.abs() < 0.05 { 0.0 } else { value })
}

fn toned(value: f64) -> TableCell {
    let tone = match value {
        v if v < -0.05 => Tone::Good,
        v if v > 0.05 => Tone::Warn,
        _ => Tone::Plain,
    };
    TableCell::new(percent(value)).tone(tone)
}

fn spread(spread: Spread) -> TableCell {
    TableCell::new(format!(
        "{} .. {}",
        percent(spread.min),
        percent(spread.max)
    ))
    .tone(Tone::Dim)
}

fn summary_rows(kinds: &[SchemeKind], summaries: &[SchemeSummary]) -> Vec<Vec<TableCell>> {
    let of = |kind: SchemeKind| summaries.iter().find(|summary| summary.kind == kind);
    kinds
        .iter()
        .map(|kind| {
            let mut row = vec![TableCell::new(kind)];
            match of(*kind) {
                Some(summary) => row.extend([
                    TableCell::new(summary.of),
                    toned(summary.cost.mean),
                    spread(summary.cost),
                    toned(summary.time.mean),
                    toned(summary.product.mean),
                ]),
                None => row.extend(["0", "-", "-", "-", "-"].map(TableCell::new)),
            }
            row
        })
        .collect()
}

const AGAINST: [ListingColumn; 4] = [
    number("cost_percent", "Cost vs OPT"),
    number("cost_spread", "from .. to"),
    number("time_percent", "Time vs OPT"),
    number("product_percent", "Product vs OPT"),
];

fn many(context: &mut Context, all: &SweepResult) -> Result<(), CliError> {
    // Each series for the paper's own scheme, or whatever stands last.
    let last = all
        .kinds
        .iter()
        .rev()
        .find(|kind| **kind != SchemeKind::Opt);
    if let Some(kind) = last {
        let mut columns = vec![
            text("series", "Series"),
            number("bids", "Bids"),
            number("counted", "Counted"),
        ];
        columns.extend(AGAINST);
        let rows = all.series.iter().map(|one| {
            let bids = match (one.rows.first(), one.rows.last()) {
                (Some(low), Some(high)) => format!("{} .. {}", low.bid, high.bid),
                _ => "none".to_owned(),
            };
            let mut row = vec![TableCell::new(&one.name), TableCell::new(bids)];
            match one.of(*kind) {
                Some(summary) => row.extend([
                    TableCell::new(format!("{} of {}", summary.of, one.rows.len())),
                    toned(summary.cost.mean),
                    spread(summary.cost),
                    toned(summary.time.mean),
                    toned(summary.product.mean),
                ]),
                None => row.extend(["none", "-", "-", "-", "-"].map(TableCell::new)),
            }
            row
        });
        let rows: Vec<Vec<TableCell>> = rows.collect();
        context
            .output
            .line(&format!("{kind} against OPT, series by series:"))?;
        context.output.table(&columns, &rows)?;
    }
    let mut columns = vec![text("scheme", "Scheme"), number("series", "Series")];
    columns.extend(AGAINST);
    let title = format!("Mean over {} series, each series alike:", all.series.len());
    context.output.line(&title)?;
    context
        .output
        .table(&columns, &summary_rows(&all.kinds, &all.summaries))
}

/// A title, and what a cell below it says.
type Measure = (&'static str, fn(&SchemeResult) -> String);

fn single(context: &mut Context, all: &SweepResult, one: &BidSweep) -> Result<(), CliError> {
    let measures: [Measure; 3] = [
        ("Mean cost of the job [$]:", |r| format!("{:.3}", r.cost)),
        ("Mean time from start to end [h]:", |r| {
            format!("{:.2}", r.hours)
        }),
        ("Mean product of cost and time [$ h]:", |r| {
            format!("{:.2}", r.product)
        }),
    ];
    let headings: Vec<String> = all.kinds.iter().map(ToString::to_string).collect();
    let mut columns = vec![number("bid", "Bid [$/h]"), number("available", "Available")];
    columns.extend(all.kinds.iter().map(|_| number("", "")));
    for (title, measure) in measures {
        let rows: Vec<Vec<TableCell>> = one.rows.iter().map(|row| by_bid(row, measure)).collect();
        context.output.line(title)?;
        context
            .output
            .table_with_headings(&columns, &headings, &rows)?;
    }
    let mut columns = vec![text("scheme", "Scheme"), number("bids", "Bids")];
    columns.extend(AGAINST);
    let name = if one.name.is_empty() {
        "the series"
    } else {
        &one.name
    };
    context
        .output
        .line(&format!("Mean over the bids of {name}:"))?;
    context
        .output
        .table(&columns, &summary_rows(&all.kinds, &one.summaries))
}

fn by_bid(row: &BidComparison, measure: fn(&SchemeResult) -> String) -> Vec<TableCell> {
    let mut cells = vec![
        TableCell::new(row.bid),
        TableCell::new(format!("{:.1} %", 100.0 * row.available)),
    ];
    cells.extend(row.schemes.iter().map(|result| {
        if result.never_ran == row.starts {
            return TableCell::new("never runs").tone(Tone::Bad);
        }
        if result.finished == 0 {
            return TableCell::new("never ends").tone(Tone::Bad);
        }
        let value = measure(result);
        if result.finished < row.starts {
            // A mean over those that finished says too little of a scheme with which many do not.
            let share = 100 * result.finished / row.starts;
            return TableCell::new(format!("{value} ({share} %)")).tone(Tone::Warn);
        }
        TableCell::new(value)
    }));
    cells
}

/// Says what the figures leave out.
fn warnings(context: &mut Context, all: &SweepResult) {
    let rows = || {
        all.series
            .iter()
            .flat_map(|one| one.rows.iter().map(move |row| (one, row)))
    };
    let never = |row: &BidComparison| row.schemes.iter().all(|s| s.never_ran == row.starts);
    let mut told = 0;
    for (one, row) in rows().filter(|(_, row)| never(row)) {
        told += 1;
        if told > 5 {
            break;
        }
        let line = format!(
            "the bid {} lies below every price of {} after the starts: it never runs",
            row.bid, one.name
        );
        context.output.say(&line);
    }
    if told > 5 {
        let count = rows().filter(|(_, row)| never(row)).count();
        context
            .output
            .say(&format!("{count} bids in all never run"));
    }
    if all.kinds.contains(&SchemeKind::Opt) {
        let left_out = all.series.iter().filter(|one| one.summaries.is_empty());
        for one in left_out {
            let line = format!(
                "{}: with no bid half of the jobs finish, so it is left out of the means",
                one.name
            );
            context.output.say(&line);
        }
    } else {
        context
            .output
            .say("without OPT among --schemes nothing is compared with it");
    }
    let starved = all.kinds.iter().any(|kind| {
        all.series.iter().any(|one| {
            let used = one.of(*kind).map_or(0, |summary| summary.of);
            !one.summaries.is_empty() && used < one.rows.len()
        })
    });
    if starved {
        context.output.say(
            "bids count only where at least half of the jobs finish within the history, with the scheme and with OPT; (…%) marks how many did",
        );
    }
}
