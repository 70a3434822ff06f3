//! `ebbtide-lab simulate elastic --demand`: figure 1 of the paper.

use super::ElasticArgs;
use crate::figure_rows::{FigureRows, FigureUnit};
use ebbtide_chart::{Axis, Colour, Figure, LineLayer, Panel, ReferenceLine};
use ebbtide_elastic::{Demand, Trace};
use ebbtide_shell::Context;
use ebbtide_shell::charts::write;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;

/// Shows how many tasks would run on a cluster without end.
pub(super) fn show(
    context: &mut Context,
    args: &ElasticArgs,
    trace: &Trace,
    window_us: u64,
) -> Result<(), CliError> {
    let demand = Demand::of(trace, window_us)?;
    if let Some(path) = &args.svg {
        write(context, path, &figure(args, &demand, window_us))?;
    }
    let window = window_us as f64 / 3.6e9;
    let rows = demand.windows.iter().enumerate().map(|(at, tasks)| {
        let from = at as f64 * window;
        vec![Some(from), Some(*tasks)]
    });
    let rows = FigureRows {
        figure: "1",
        columns: vec![
            ("from_hours", "From [h]", FigureUnit::Hours),
            ("tasks", "Running tasks", FigureUnit::Count),
        ],
        rows: rows.collect(),
    };
    let ratio = demand.most() / demand.least();
    let words = format!(
        "{} windows of {}: {:.0} tasks in the mean, standard deviation {:.0}, {:.0} to {:.0} ({ratio:.1} times)",
        demand.windows.len(),
        Hours(window),
        demand.mean(),
        demand.deviation(),
        demand.least(),
        demand.most(),
    );
    let facts = vec![
        ("window_hours", Json::from(window)),
        ("mean", Json::from(demand.mean())),
        ("standard_deviation", Json::from(demand.deviation())),
        ("least", Json::from(demand.least())),
        ("most", Json::from(demand.most())),
    ];
    rows.show(context, &words, facts)
}

/// The demand in steps, its mean, and a standard deviation to either side, as the paper draws them.
fn figure(args: &ElasticArgs, demand: &Demand, window_us: u64) -> Figure {
    let window = window_us as f64 / 3.6e9;
    let name = args.trace.file_name().map(|name| name.to_string_lossy());
    let title = format!(
        "Tasks that would run on a cluster without end, windows of {}",
        Hours(window)
    );
    // Each window is a step from its begin to its end.
    let windows = demand.windows.iter().enumerate();
    let points = windows.flat_map(|(at, tasks)| {
        let from = at as f64 * window;
        [(from, *tasks), (from + window, *tasks)]
    });
    let (mean, deviation) = (demand.mean(), demand.deviation());
    let mut panel = Panel::new(
        Axis::new("time since the first arrival [h]").from(0.0),
        Axis::new("running tasks").from(0.0),
    )
    .title(name.unwrap_or_default())
    .with(LineLayer::new("tasks", points.collect::<Vec<_>>()).colour(Colour::BLUE))
    .with(ReferenceLine::horizontal(mean).label("mean"));
    for (at, label) in [
        (mean - deviation, "mean − deviation"),
        (mean + deviation, "mean + deviation"),
    ] {
        if at > 0.0 {
            panel = panel.with(ReferenceLine::horizontal(at).label(label));
        }
    }
    Figure::new(title)
        .description("Concurrent tasks of the trace over time, with their mean and deviation.")
        .panel(panel)
}
