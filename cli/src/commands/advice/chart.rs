//! Advice as charts.

use ebbtide_chart::{Axis, Band, Colour, Dash, Figure, LineLayer, Panel, PointLayer, PointShape};
use ebbtide_proto::v1;

/// The life that is left, and what was told before against what happened.
pub(super) fn figure(advice: &v1::GetAdviceResponse) -> Figure {
    let figure = Figure::new(format!("Advice for {}", advice.flavor))
        .description("The distribution of the life that is left, as the model says and as it was seen; what past lives were told, and what happened")
        .columns(2)
        .width(520)
        .panel(life_left(advice));
    match &advice.calibration {
        Some(tested) if !tested.rows.is_empty() => figure.panel(calibration(tested)),
        _ => figure,
    }
}

fn life_left(advice: &v1::GetAdviceResponse) -> Panel {
    let points = advice.curve.iter();
    let model = points.clone().map(|point| (point.hours, point.model));
    let seen = points.filter_map(|point| Some((point.hours, point.seen?)));
    let end = advice.curve.last().map_or(1.0, |point| point.hours);
    let from = if advice.age_hours > 0.0 {
        "hours from now"
    } else {
        "hours from the launch"
    };
    Panel::new(
        Axis::new(from).range(0.0, end * 1.02),
        Axis::new("share that has been interrupted").range(0.0, 1.0),
    )
    .title("the life that is left")
    .with(
        LineLayer::new("seen", seen.collect())
            .steps()
            .colour(Colour::GREEN),
    )
    .with(
        LineLayer::new("model", model.collect())
            .colour(Colour::VERMILION)
            .width(2),
    )
}

fn calibration(tested: &v1::Calibration) -> Panel {
    let mut panel = Panel::new(
        Axis::new("told, share").range(0.0, 1.0),
        Axis::new("were interrupted, share").range(0.0, 1.0),
    )
    .title("told before, and what happened")
    .with(
        LineLayer::new("as told", vec![(0.0, 0.0), (1.0, 1.0)])
            .colour(Colour::GREY)
            .dash(Dash::Dashed),
    );
    let looks = [
        (1.0, Colour::BLUE, PointShape::Circle),
        (6.0, Colour::VERMILION, PointShape::Square),
        (24.0, Colour::GREEN, PointShape::Triangle),
    ];
    for (within, colour, shape) in looks {
        let rows = tested.rows.iter().filter(|row| row.within_hours == within);
        let rows: Vec<(f64, &v1::SeenShare)> = rows
            .filter_map(|row| Some((row.told, row.were.as_ref()?)))
            .collect();
        if rows.is_empty() {
            continue;
        }
        // A narrow band is a whisker.
        for (told, were) in &rows {
            let (left, right) = (told - 0.004, told + 0.004);
            let edges = vec![(left, were.low, were.high), (right, were.low, were.high)];
            panel = panel.with(Band::new("", edges).colour(colour));
        }
        let points = rows.iter().map(|(told, were)| (*told, were.share));
        panel = panel.with(
            PointLayer::new(format!("within {within} h"), points.collect())
                .colour(colour)
                .shape(shape),
        );
    }
    panel
}
