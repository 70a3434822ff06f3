//! The comparison in charts, like the ACC paper's figures 7 to 10: cost, time and product over the
//! bids of a series; the gain over all series.

use super::CheckpointingArgs;
use super::sweep::{BidSweep, SweepResult};
use ebbtide_chart::{
    Axis, BarLayer, Colour, Dash, Figure, LineLayer, Panel, PointShape, ReferenceLine,
};
use ebbtide_checkpointing::{SchemeKind, SchemeResult, SchemeSummary, Series};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::path::Path;

/// Draws everything into a directory.
pub(super) fn write(
    context: &mut Context,
    args: &CheckpointingArgs,
    directory: &Path,
    series: &[Series],
    all: &SweepResult,
) -> Result<(), CliError> {
    let mut figures: Vec<(String, Figure)> = series
        .iter()
        .zip(&all.series)
        .map(|(one, swept)| (file_name(&swept.name), figure(args, all, one, swept)))
        .collect();
    if all.series.len() > 1 && !all.summaries.is_empty() {
        figures.push(("all-series".to_owned(), gains(args, all)));
    }
    for (name, figure) in &figures {
        let path = directory.join(format!("{name}.svg"));
        let svg = figure.svg()?;
        ebbtide_files::write(&path, svg)?;
    }
    let names: Vec<String> = figures
        .iter()
        .map(|(name, _)| format!("{name}.svg"))
        .collect();
    let shown = match names.as_slice() {
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}, {} files", names.len()),
        [] => return Ok(()),
    };
    context
        .output
        .say(&format!("wrote {}: {shown}", directory.display()));
    Ok(())
}

/// A name that is a file's name everywhere.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let text: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    // A name that begins with a dot would be hidden.
    let text: String = text.trim_start_matches('.').chars().take(150).collect();
    if text.is_empty() {
        "prices".to_owned()
    } else {
        text
    }
}

/// How a scheme's line looks: the same in all charts, and different without colours.
fn style(kind: SchemeKind) -> (Colour, Dash, PointShape) {
    match kind {
        SchemeKind::None => (Colour::GREY, Dash::Dotted, PointShape::Cross),
        SchemeKind::Opt => (Colour::BLACK, Dash::Solid, PointShape::Circle),
        SchemeKind::Hour => (Colour::ORANGE, Dash::Dashed, PointShape::Square),
        SchemeKind::Edge => (Colour::PURPLE, Dash::Dashed, PointShape::Triangle),
        SchemeKind::Adapt => (Colour::GREEN, Dash::Dashed, PointShape::Circle),
        SchemeKind::Acc => (Colour::VERMILION, Dash::Solid, PointShape::Square),
    }
}

/// A figure, and how high a scheme stands in it.
type Measure = (&'static str, &'static str, fn(&SchemeResult) -> f64);

/// Figures 7, 8 and 9 for one series, with its price below.
fn figure(
    args: &CheckpointingArgs,
    all: &SweepResult,
    series: &Series,
    swept: &BidSweep,
) -> Figure {
    let measures: [Measure; 3] = [
        ("Cost", "mean cost [$]", |r| r.cost),
        ("Time", "mean time from start to end [h]", |r| r.hours),
        ("Cost × time", "mean product [$ h]", |r| r.product),
    ];
    let mut figure = Figure::new(format!("{}: a job of {}", swept.name, args.job))
        .description(format!(
            "Mean cost, time and their product for a job of {} with each checkpoint scheme, over the bid.",
            args.job
        ))
        .columns(2);
    for (title, label, measure) in measures {
        let mut panel =
            Panel::new(Axis::new("bid [$/h]"), Axis::new(label).logarithmic()).title(title);
        for kind in &all.kinds {
            let (colour, dash, shape) = style(*kind);
            let points = swept.rows.iter().filter_map(|row| {
                let result = row.of(*kind)?;
                // Means over few jobs would draw a line that nothing can be read from.
                let enough = 2 * result.finished >= row.starts;
                enough.then(|| (row.bid.micros() as f64 / 1e6, measure(result)))
            });
            let line = LineLayer::new(kind.as_str(), points.collect());
            panel = panel.with(line.colour(colour).dash(dash).marks(shape));
        }
        figure = figure.panel(panel);
    }
    figure.panel(prices(series, swept))
}

/// The price, with the lowest and the highest bid.
fn prices(series: &Series, swept: &BidSweep) -> Panel {
    let mut points: Vec<(f64, f64)> = series
        .history
        .changes()
        .map(|(at, price)| (at as f64, price.micros() as f64 / 1e6))
        .collect();
    if let Some((_, last)) = points.last().copied() {
        points.push((series.history.end() as f64, last));
    }
    let dollars = |row: Option<&ebbtide_checkpointing::BidComparison>| {
        row.map(|row| (row.bid.to_string(), row.bid.micros() as f64 / 1e6))
    };
    let mut panel = Panel::new(
        Axis::new("").dates(),
        Axis::new("price [$/h]").logarithmic(),
    )
    .title("Price, lowest and highest bid")
    .with(
        LineLayer::new("", points)
            .steps()
            .width(1)
            .colour(Colour::BLUE),
    );
    for (words, bid) in [dollars(swept.rows.first()), dollars(swept.rows.last())]
        .into_iter()
        .flatten()
    {
        panel = panel.with(ReferenceLine::horizontal(bid).label(words).reached());
    }
    panel
}

/// A figure, and how a scheme stands in it against OPT.
type Gain = (&'static str, fn(&SchemeSummary) -> f64);

/// Figure 10: a scheme against OPT, series by series.
fn gains(args: &CheckpointingArgs, all: &SweepResult) -> Figure {
    let compared: Vec<&BidSweep> = all
        .series
        .iter()
        .filter(|one| !one.summaries.is_empty())
        .collect();
    let names: Vec<&str> = compared.iter().map(|one| one.name.as_str()).collect();
    let measures: [Gain; 3] = [
        ("Cost", |s| s.cost.mean),
        ("Time", |s| s.time.mean),
        ("Cost × time", |s| s.product.mean),
    ];
    // One scheme is as much as so many series can show; ACC, as in the paper.
    let last = all
        .kinds
        .iter()
        .rev()
        .find(|kind| **kind != SchemeKind::Opt);
    let shown = last.copied().unwrap_or(SchemeKind::Acc);
    let width = 160 + 20 * u32::try_from(names.len()).unwrap_or(100);
    let mut figure = Figure::new(format!("{shown} against OPT, a job of {}", args.job))
        .description("Per cent by which cost, time and their product differ from those of OPT.")
        .width(width.clamp(640, 4000));
    for (title, measure) in measures {
        let bars = compared.iter().enumerate().filter_map(|(i, one)| {
            let summary = one.of(shown)?;
            Some((i as f64, measure(summary)))
        });
        let mut panel = Panel::new(
            Axis::categories("", names.iter().copied()),
            Axis::new("against OPT [%]"),
        )
        .title(title)
        .with(BarLayer::new(shown.as_str(), bars.collect()).colour(Colour::BLUE));
        if let Some(mean) = all.summaries.iter().find(|summary| summary.kind == shown) {
            let mean = measure(mean);
            panel = panel.with(ReferenceLine::horizontal(mean).label(format!("mean {mean:+.1} %")));
        }
        figure = figure.panel(panel.height(480));
    }
    figure
}
