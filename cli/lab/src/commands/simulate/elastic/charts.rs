//! The distributions of the delays, as in the paper's figure 3, and what the sweeps gave.

use super::play::PartitionResults;
use super::sweep::Knob;
use super::{ElasticArgs, Terms};
use ebbtide_chart::{Axis, Colour, Dash, Figure, LineLayer, Panel, PointShape, ReferenceLine};

/// One panel for the distributions, one for each sweep.
pub(super) fn figure(args: &ElasticArgs, terms: &Terms, all: &PartitionResults) -> Figure {
    let knobs = all.knobs();
    let title = format!(
        "Short tasks on {} servers, {} for short jobs only",
        terms.cluster.servers, terms.cluster.short_only
    );
    let mut figure = Figure::new(title)
        .description(
            "Distribution of the queueing delays of short tasks with the static and the elastic partition; then the improvement of the \
             mean over each setting that was varied.",
        )
        .columns(if knobs.is_empty() { 1 } else { 2 })
        .panel(distributions(args, all));
    for knob in knobs {
        figure = figure.panel(sweep(all, knob));
    }
    figure
}

/// Steps that begin at the bottom. Times of zero have no place on a logarithmic axis: they lie at
/// its beginning.
fn steps(name: String, distribution: &[(f64, f64)], least: f64) -> LineLayer {
    let mut points = vec![(least, 0.0)];
    points.extend(
        distribution
            .iter()
            .map(|(time, share)| (time.max(least), *share)),
    );
    LineLayer::new(name, points).steps()
}

fn distributions(args: &ElasticArgs, all: &PartitionResults) -> Panel {
    /// A millisecond: what messages take.
    const LEAST: f64 = 1e-3;
    let longest = all.asked().map(|one| one.figures.max);
    let longest = longest.fold(all.fixed.max, f64::max).max(1.0);
    let x = Axis::new("queueing delay of a short task [s]")
        .logarithmic()
        .range(LEAST, longest);
    let y = Axis::new("share of the tasks").range(0.0, 1.0);
    let name = args.trace.file_name().map(|name| name.to_string_lossy());
    let mut panel = Panel::new(x, y).title(name.unwrap_or_default()).with(
        steps("static".to_owned(), &all.fixed.distribution, LEAST)
            .colour(Colour::BLACK)
            .dash(Dash::Dashed),
    );
    for one in all.asked() {
        let name = format!("r = {}", one.elastic.policy.ratio());
        panel = panel.with(steps(name, &one.figures.distribution, LEAST));
    }
    panel
}

fn sweep(all: &PartitionResults, knob: Knob) -> Panel {
    // The chart cuts off infinite values; at these points no task waits.
    let of = |value: fn(&super::play::SimulatedPartition) -> f64| -> Vec<(f64, f64)> {
        all.swept(knob).map(|(x, one)| (x, value(one))).collect()
    };
    Panel::new(
        Axis::new(knob.label()),
        Axis::new("improvement of the mean").from(0.0),
    )
    .title(knob.as_str())
    .with(
        LineLayer::new("improvement", of(|one| one.improvement))
            .marks(PointShape::Circle)
            .colour(Colour::BLUE),
    )
    .with(ReferenceLine::horizontal(1.0).reached().label("static"))
}
