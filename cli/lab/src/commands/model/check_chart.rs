//! The statistic of a check over the lifetimes.

use ebbtide_chart::{Axis, Colour, Figure, LineLayer, Panel, ReferenceLine};
use ebbtide_lifetime::change::ChangeReport;

/// One panel: the statistic, what it would be on average, and the bound.
pub(super) fn figure(report: &ChangeReport) -> Figure {
    let points: Vec<(f64, f64)> = report
        .statistic
        .iter()
        .enumerate()
        .map(|(number, value)| ((number + 1) as f64, value.max(1e-3)))
        .collect();
    let expected = points.iter().map(|(number, _)| (*number, *number));
    let mut panel = Panel::new(
        Axis::new("lifetimes, in the order of launches"),
        Axis::new("statistic").logarithmic(),
    )
    .with(LineLayer::new("average while the model holds", expected.collect()).colour(Colour::GREY))
    .with(LineLayer::new("statistic", points).colour(Colour::BLUE))
    .with(
        ReferenceLine::horizontal(report.bound)
            .reached()
            .label("alarm")
            .colour(Colour::VERMILION),
    );
    if let Some(alarm) = report.alarm {
        panel = panel
            .with(ReferenceLine::vertical(alarm.since as f64).label("changed"))
            .with(ReferenceLine::vertical(alarm.at as f64).label("certain"));
    }
    Figure::new("Do new lifetimes fit the model?")
        .description("The test statistic after each lifetime, and the bound for an alarm")
        .panel(panel)
}
