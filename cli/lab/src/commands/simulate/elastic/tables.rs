//! The comparison in tables.

use super::play::{Figures, PartitionResults, SimulatedPartition};
use super::sweep::Knob;
use super::{ElasticArgs, Terms};
use ebbtide_elastic::Trace;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::output::{Format, ListingColumn, TableCell, number, text};
use ebbtide_shell::render::Tone;

/// Differences of the means below this are chance: seeds differ by as much.
pub(super) const CHANCE: f64 = 0.02;

/// Whether it was worth it.
pub(super) fn verdict(improvement: f64) -> &'static str {
    match improvement {
        gain if gain > 1.0 + CHANCE => "shorter",
        gain if gain < 1.0 - CHANCE => "longer",
        _ => "same",
    }
}

/// Shows everything in the format asked for.
pub(super) fn all(
    context: &mut Context,
    args: &ElasticArgs,
    trace: &Trace,
    terms: &Terms,
    all: &PartitionResults,
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => {
            let json = super::json::all(args, trace, terms, all);
            return context.output.json(&json);
        }
        Format::Value => return values(context, all),
        Format::Table | Format::Markdown => {}
    }
    comparison(context, all)?;
    for knob in all.knobs() {
        context.output.line("")?;
        sweep(context, all, knob)?;
    }
    if let Some(lifetime) = &terms.lifetime {
        let line = format!("preemptible servers live as {}", lifetime.words());
        context.output.say(&line);
    }
    let line = format!(
        "{} jobs, {} tasks, {} of them short, over {}; {} seed{}, played in {:.1} s",
        trace.jobs().len(),
        trace.tasks(),
        all.short_tasks,
        Hours(trace.span_us() as f64 / 3.6e9),
        args.seeds,
        if args.seeds == 1 { "" } else { "s" },
        all.seconds
    );
    context.output.say(&line);
    Ok(())
}

/// One line a partition: r, mean delay, improvement; then one a value of each sweep: name, value,
/// mean delay, improvement.
fn values(context: &mut Context, all: &PartitionResults) -> Result<(), CliError> {
    for one in &all.partitions {
        let name = match one.swept {
            None => format!("{}", one.elastic.policy.ratio()),
            Some((knob, value)) => format!("{} {value}", knob.as_str()),
        };
        let line = format!("{name} {:.6} {:.6}", one.figures.mean, one.improvement);
        context.output.line(&line)?;
    }
    Ok(())
}

pub(super) fn times(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2}×")
    } else {
        "no wait".to_owned()
    }
}

pub(super) fn toned(improvement: f64) -> TableCell {
    let tone = match verdict(improvement) {
        "shorter" => Tone::Good,
        "longer" => Tone::Bad,
        _ => Tone::Plain,
    };
    TableCell::new(times(improvement)).tone(tone)
}

pub(super) fn seconds(value: f64) -> TableCell {
    TableCell::new(format!("{value:.2}"))
}

const COLUMNS: [ListingColumn; 13] = [
    text("partition", "Partition"),
    number("budget", "K"),
    number("mean", "Mean wait"),
    number("p90", "90 %"),
    number("p99", "99 %"),
    number("max", "Longest"),
    number("improvement", "Mean"),
    number("max_improvement", "Longest"),
    number("long_mean", "Long tasks"),
    number("transients", "Active"),
    number("normalised", "Active/r"),
    number("saving", "Saved"),
    number("lives", "Lives mean, max"),
];

fn comparison(context: &mut Context, all: &PartitionResults) -> Result<(), CliError> {
    let waits =
        |figures: &Figures| [figures.mean, figures.p90, figures.p99, figures.max].map(seconds);
    let mut fixed = vec![TableCell::new("static"), TableCell::new("-")];
    fixed.extend(waits(&all.fixed));
    fixed.extend(["1.00×", "1.00×"].map(TableCell::new));
    fixed.push(seconds(all.fixed.long_mean));
    fixed.extend(["-", "-", "-", "-"].map(TableCell::new));
    let mut rows = vec![fixed];
    for one in all.asked() {
        let policy = &one.elastic.policy;
        let figures = &one.figures;
        let mut row = vec![
            TableCell::new(format!("r = {}", policy.ratio())),
            TableCell::new(policy.budget()),
        ];
        row.extend(waits(figures));
        row.push(toned(one.improvement));
        row.push(TableCell::new(times(one.max_improvement)));
        row.push(seconds(figures.long_mean));
        row.push(TableCell::new(format!("{:.1}", figures.transients_up)));
        row.push(TableCell::new(format!("{:.1}", one.normalised)));
        row.push(TableCell::new(format!("{:.1} %", one.saving * 100.0)));
        row.push(TableCell::new(format!(
            "{:.2}, {:.1} h",
            figures.life_mean_hours, figures.life_max_hours
        )));
        rows.push(row);
    }
    context.output.table(&COLUMNS, &rows)
}

fn sweep(context: &mut Context, all: &PartitionResults, knob: Knob) -> Result<(), CliError> {
    let columns = [
        number(knob.as_str(), knob.as_str()),
        number("mean", "Mean wait"),
        number("p99", "99 %"),
        number("improvement", "Mean"),
        text("spread", "by seed"),
        text("verdict", "Waits"),
        number("transients", "Active"),
        number("launched", "Launched"),
        number("saving", "Saved"),
        number("interrupted", "Interrupted"),
        number("lost", "Tasks lost"),
        number("lost_hours", "Lost [h]"),
    ];
    let row = |(value, one): (f64, &SimulatedPartition)| {
        let figures = &one.figures;
        vec![
            TableCell::new(value),
            seconds(figures.mean),
            seconds(figures.p99),
            toned(one.improvement),
            TableCell::new(format!(
                "{} .. {}",
                times(one.spread.0),
                times(one.spread.1)
            ))
            .tone(Tone::Dim),
            TableCell::new(verdict(one.improvement)),
            TableCell::new(format!("{:.1}", figures.transients_up)),
            TableCell::new(format!("{:.0}", figures.launched)),
            TableCell::new(format!("{:.1} %", one.saving * 100.0)),
            TableCell::new(format!("{:.0}", figures.interrupted)),
            TableCell::new(format!("{:.0}", figures.lost)),
            TableCell::new(format!("{:.1}", figures.lost_seconds / 3_600.0)),
        ]
    };
    let rows: Vec<Vec<TableCell>> = all.swept(knob).map(row).collect();
    context.output.table(&columns, &rows)
}
