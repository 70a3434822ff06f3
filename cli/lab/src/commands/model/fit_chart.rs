//! Distribution and hazard of fitted models over what was seen.

use super::fitted::FittedGroup;
use ebbtide_chart::{Axis, Band, Colour, Dash, Figure, LineLayer, Panel, PointLayer};
use ebbtide_lifetime::fit::{Curve, observed};
use ebbtide_lifetime::{Lifetime, Observations};

/// Points of a curve of the model, and bars of the observed hazard.
const POINTS: usize = 480;
const BARS: usize = 24;

/// Two panels a group. Groups without a model are left out.
pub(super) fn figure(outcomes: &[FittedGroup]) -> Figure {
    let mut figure = Figure::new("Lifetimes of preemptible instances")
        .description(
            "For each group the share of instances that has ended by each age, and the rate at which they end, as seen and as the model says",
        )
        .columns(2)
        .width(520);
    for outcome in outcomes {
        if let Ok(fitted) = &outcome.fitted {
            let model = fitted.model.as_ref();
            figure = figure
                .panel(distribution(&outcome.name, model, &outcome.seen))
                .panel(hazard(&outcome.name, model, &outcome.seen));
        }
    }
    figure
}

/// The last age of the charts, hours.
fn end_of(seen: &Observations) -> f64 {
    if seen.maximum().is_finite() {
        return seen.maximum();
    }
    let longest = seen.all().last().map_or(1.0, |one| one.hours);
    longest.max(0.1)
}

fn ages(end: f64) -> impl Iterator<Item = f64> {
    (0..=POINTS).map(move |at| end * at as f64 / POINTS as f64)
}

fn distribution(name: &str, model: &dyn Lifetime, seen: &Observations) -> Panel {
    let end = end_of(seen);
    let ended = seen.ended();
    let stairs = |curve| {
        let mut points = vec![(0.0, 0.0)];
        points.extend(observed(curve, seen));
        if let Some(&(_, share)) = points.last() {
            points.push((end, share));
        }
        points
    };
    let mut panel = Panel::new(
        Axis::new("age [h]").range(0.0, end * 1.02),
        Axis::new("share that has ended").range(0.0, 1.0),
    )
    .title(name)
    .with(
        LineLayer::new(
            format!("ended by the provider ({ended})"),
            stairs(Curve::EndedOnly),
        )
        .steps()
        .colour(Colour::SKY),
    );
    if seen.censored() > 0 {
        panel = panel.with(
            LineLayer::new(
                format!("with {} stopped as censored", seen.censored()),
                stairs(Curve::KaplanMeier),
            )
            .steps()
            .colour(Colour::GREEN),
        );
    }
    let curve = ages(end).map(|t| (t, model.continuous_cdf(t)));
    let mut curve: Vec<(f64, f64)> = curve.collect();
    if model.atom() > 0.0 {
        curve.push((end, 1.0));
    }
    panel.with(
        LineLayer::new(model.name(), curve)
            .colour(Colour::VERMILION)
            .width(2),
    )
}

/// The hazard, on a logarithmic axis: ends by hours lived, in equal spans of age, with Poisson's 95
/// % around.
fn hazard(name: &str, model: &dyn Lifetime, seen: &Observations) -> Panel {
    let end = end_of(seen);
    let width = end / BARS as f64;
    let (mut points, mut band) = (Vec::new(), Vec::new());
    for bar in 0..BARS {
        let (from, to) = (bar as f64 * width, (bar + 1) as f64 * width);
        let (mut ended, mut lived) = (0.0f64, 0.0);
        for one in seen.all() {
            lived += (one.hours.min(to) - from).max(0.0);
            let here = (from..to).contains(&one.hours) && one.hours < seen.maximum();
            ended += f64::from(u8::from(one.ended && here));
        }
        if ended > 0.0 && lived > 0.0 {
            let spread = (1.96 / ended.sqrt()).exp();
            let rate = ended / lived;
            points.push((0.5 * (from + to), rate));
            band.push((0.5 * (from + to), rate / spread, rate * spread));
        }
    }
    // The axis follows what was seen; a model far outside of it is cut off.
    let least = band.iter().map(|b| b.1).fold(f64::INFINITY, f64::min);
    let most = band.iter().map(|b| b.2).fold(0.0, f64::max);
    let axis = Axis::new("hazard [1/h]").logarithmic();
    let axis = if least < most {
        axis.range(least * 0.5, most * 2.0)
    } else {
        axis
    };
    let line = ages(end)
        .map(|t| (t, model.hazard(t)))
        .filter(|(_, rate)| rate.is_finite() && *rate > 0.0)
        .collect();
    Panel::new(Axis::new("age [h]").range(0.0, end * 1.02), axis)
        .title(name)
        .with(Band::new("95 % of chance", band).colour(Colour::SKY))
        .with(PointLayer::new("ends by hours lived", points).colour(Colour::BLUE))
        .with(
            LineLayer::new(model.name(), line)
                .colour(Colour::VERMILION)
                .width(2)
                .dash(Dash::Solid),
        )
}
