//! The curves of the paper's figures 4 to 7.

use ebbtide_chart::{Axis, Colour, Dash, Figure, LineLayer, Panel, ReferenceLine};
use ebbtide_lifetime::distributions::Uniform;
use ebbtide_lifetime::plan::RunningTime;
use ebbtide_lifetime::plan::curves::{failure_by_age, failure_by_length, wasted_by_length};
use ebbtide_lifetime::{Lifetime, LifetimeError};
use ebbtide_shell::hours::Hours;

const POINTS: u32 = 240;
/// Averages over all ages take a while each.
const LENGTHS: u32 = 24;

/// Three panels; two for a model without a maximum lifetime, which has no ages to average over.
pub(super) fn figure(
    model: &dyn Lifetime,
    wrong: Option<&dyn Lifetime>,
    job: f64,
    age: f64,
    switch: Option<f64>,
) -> Result<Figure, LifetimeError> {
    let policy = Some(RunningTime::UntilDone);
    let end = if model.maximum().is_finite() {
        model.maximum()
    } else {
        model.quantile(0.99)
    };
    let chance = || Axis::new("chance to fail").range(0.0, 1.02);
    let mut by_age = Panel::new(
        Axis::new("age of the instance [h]").range(0.0, end),
        chance(),
    )
    .title(format!("a job of {}", Hours(job)))
    .with(
        LineLayer::new(
            "always kept",
            failure_by_age(model, job, end, POINTS, None)?,
        )
        .colour(Colour::VERMILION),
    )
    .with(
        LineLayer::new(
            "kept while that is better",
            failure_by_age(model, job, end, POINTS, policy)?,
        )
        .colour(Colour::BLUE)
        .width(2),
    )
    .with(ReferenceLine::vertical(age).label("now"));
    if let Some(switch) = switch {
        by_age = by_age.with(ReferenceLine::vertical(switch).label("switch"));
    }
    let mut wasted = Panel::new(
        Axis::new("length of the job [h]").range(0.0, end),
        Axis::new("expected waste on a new instance [h]").from(0.0),
    )
    .title("work lost by one failure at most")
    .with(
        LineLayer::new(model.name(), wasted_by_length(model, end * 0.999, POINTS)?)
            .colour(Colour::BLUE)
            .width(2),
    );
    let mut figure = Figure::new("Keep the instance or take a new one?")
        .description("The chance that a job fails by the age of the instance and by its own length, and the work that is lost")
        .columns(3)
        .width(420);
    if model.maximum().is_finite() {
        let uniform = Uniform::new(end)?;
        wasted = wasted.with(
            LineLayer::new("uniform", wasted_by_length(&uniform, end * 0.999, POINTS)?)
                .colour(Colour::GREY)
                .dash(Dash::Dashed),
        );
        let longest = end * 23.0 / 24.0;
        let mut by_length =
            Panel::new(Axis::new("length of the job [h]").range(0.0, end), chance())
                .title("averaged over instances of every age")
                .with(
                    LineLayer::new(
                        "always kept",
                        failure_by_length(model, model, longest, LENGTHS, None)?,
                    )
                    .colour(Colour::VERMILION),
                )
                .with(
                    LineLayer::new(
                        "kept while that is better",
                        failure_by_length(model, model, longest, LENGTHS, policy)?,
                    )
                    .colour(Colour::BLUE)
                    .width(2),
                );
        if let Some(wrong) = wrong {
            let points = failure_by_length(model, wrong, longest, LENGTHS, policy)?;
            by_length = by_length.with(
                LineLayer::new(format!("decided by the other {}", wrong.name()), points)
                    .colour(Colour::GREEN)
                    .dash(Dash::Dashed),
            );
        }
        figure = figure.panel(by_age).panel(by_length);
    } else {
        figure = figure.panel(by_age);
    }
    Ok(figure.panel(wasted))
}
