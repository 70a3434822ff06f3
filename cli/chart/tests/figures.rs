//! What must hold for every figure.

use ebbtide_chart::{
    Axis, Band, BarLayer, ChartError, Colour, Dash, Figure, Gantt, LineLayer, PALETTE, Panel,
    PointLayer, PointShape, ReferenceLine, Span,
};
use proptest::prelude::*;

/// A figure with one of everything.
fn everything() -> Figure {
    let wave = |shift: f64| -> Vec<(f64, f64)> {
        (0..=48)
            .map(|i| f64::from(i) / 2.0)
            .map(|x| (x, 0.5 + 0.4 * ((x + shift) / 4.0).sin()))
            .collect()
    };
    let lines = Panel::new(
        Axis::new("age [h]"),
        Axis::new("chance of interruption").range(0.0, 1.0),
    )
    .title("Lines")
    .with(
        Band::new(
            "95 %",
            wave(0.0)
                .iter()
                .map(|(x, y)| (*x, y - 0.08, y + 0.08))
                .collect(),
        )
        .colour(Colour::BLUE),
    )
    .with(LineLayer::new("model <fit>", wave(0.0)).colour(Colour::BLUE))
    .with(
        LineLayer::new("data", wave(3.0).into_iter().step_by(4).collect())
            .steps()
            .dash(Dash::Dashed),
    )
    .with(LineLayer::new("other", wave(9.0)).dash(Dash::Dotted))
    .with(
        PointLayer::new("measured", wave(5.0).into_iter().step_by(6).collect())
            .shape(PointShape::Cross),
    )
    .with(ReferenceLine::vertical(18.0).label("T* = 18 h"))
    .with(ReferenceLine::horizontal(0.2).label("limit"));
    let prices = Panel::new(
        Axis::new("").dates(),
        Axis::new("price [$/h]").logarithmic(),
    )
    .title("Prices")
    .with(
        LineLayer::new(
            "us-east-1.linux.m2.2xlarge",
            (0..60)
                .map(|i| {
                    (
                        1_259_625_600.0 + f64::from(i) * 86_400.0,
                        0.4 * 1.1_f64.powi(i % 17),
                    )
                })
                .collect(),
        )
        .steps()
        .width(1),
    );
    let bars = Panel::new(
        Axis::categories("", ["NONE", "OPT", "HOUR", "EDGE", "ADAPT", "ACC"]),
        Axis::new("cost [$]").from(0.0),
    )
    .title("Bars")
    .with(BarLayer::new(
        "cost",
        (0..6)
            .map(|i| (f64::from(i), 3.0 + f64::from(i) / 5.0))
            .collect(),
    ))
    .with(BarLayer::new(
        "time",
        (0..6)
            .map(|i| (f64::from(i), 4.0 - f64::from(i) / 3.0))
            .collect(),
    ));
    let mut gantt = Gantt::new(
        Axis::new("time [h]").range(0.0, 10.0),
        ["c3.4xlarge (spot)", "c4.4xlarge (spot)", "m4.large"],
    );
    let work = gantt.kind("task", None);
    let away = gantt.kind("hibernated", None);
    gantt.add(0, work, Span::new(0.0, 2.0).label("t1"));
    gantt.add(0, away, Span::new(2.0, 5.0).hollow().label("away"));
    gantt.add(1, work, Span::new(1.0, 3.0).label("t2"));
    gantt.add(1, work, Span::new(3.0, 8.0).label("t3"));
    gantt.add(2, work, Span::new(3.0, 3.01).label("too narrow for words"));
    gantt.mark(9.0, "deadline");
    Figure::new("One of everything")
        .description("Made up data.")
        .columns(2)
        .panel(lines)
        .panel(prices)
        .panel(bars)
        .panel(gantt.panel().title("Gantt"))
}

/// The coordinates of everything drawn, as far as they are attributes of their own. What is no
/// number is NaN.
fn coordinates(svg: &str) -> Vec<f64> {
    [" x=\"", " y=\"", " cx=\"", " cy=\"", " points=\""]
        .into_iter()
        .flat_map(|name| svg.split(name).skip(1))
        .filter_map(|piece| piece.split('"').next())
        .flat_map(|value| value.split([',', ' ']).filter(|v| !v.is_empty()))
        .map(|value| value.parse().unwrap_or(f64::NAN))
        .collect()
}

#[test]
fn the_same_figure_is_the_same_text() {
    let svg = everything().svg().unwrap();
    assert_eq!(svg, everything().svg().unwrap());
    if let Some(file) = std::env::var_os("EBBTIDE_CHART_SEE") {
        std::fs::write(file, svg).unwrap();
    }
}

#[test]
fn everything_that_was_named_is_said() {
    let svg = everything().svg().unwrap();
    for words in [
        "One of everything",
        "Made up data.",
        "model &lt;fit&gt;",
        "T* = 18 h",
        "limit",
        "price [$/h]",
        "us-east-1.linux.m2.2xlarge",
        "2010-01-",
        "ADAPT",
        "hibernated",
        "away",
        "deadline",
        "c3.4xlarge (spot)",
    ] {
        assert!(svg.contains(words), "{words} is missing");
    }
    assert!(!svg.contains("too narrow for words"));
}

#[test]
fn a_screen_reader_hears_the_title() {
    let svg = everything().svg().unwrap();
    assert!(svg.starts_with("<svg role=\"img\""));
    assert!(svg.contains("<title>One of everything</title>"));
}

#[test]
fn a_figure_without_panels_is_refused() {
    let error = Figure::new("none").svg().unwrap_err();
    assert_eq!(error.code(), "EB-CHART-001");
    assert_eq!(error.to_string(), "the figure \"none\" has no panels");
    let panel = Panel::new(Axis::new("x").range(3.0, 2.0), Axis::new("y"));
    assert!(matches!(
        Figure::new("").panel(panel).svg(),
        Err(ChartError::Range { .. })
    ));
}

#[test]
fn a_panel_without_data_is_a_panel_with_axes() {
    let panel = Panel::new(Axis::new("x"), Axis::new("y").logarithmic())
        .with(LineLayer::new("nothing", Vec::new()))
        .with(LineLayer::new(
            "no number",
            vec![(f64::NAN, 1.0), (1.0, -1.0)],
        ));
    let svg = Figure::new("").panel(panel).svg().unwrap();
    assert!(svg.contains("nothing"));
}

#[test]
fn bars_of_one_group_do_not_hide_one_another() {
    let panel = Panel::new(Axis::categories("", ["a"]), Axis::new("y"))
        .with(BarLayer::new("one", vec![(0.0, 1.0)]))
        .with(BarLayer::new("two", vec![(0.0, 1.0)]));
    let svg = Figure::new("").panel(panel).svg().unwrap();
    // Per layer one block in the legend and one bar; the background is the other rectangle.
    let mut lefts: Vec<&str> = svg
        .lines()
        .filter(|line| line.starts_with("<rect") && !line.contains("#FFFFFF"))
        .filter_map(|line| line.split(" x=\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(lefts.len(), 4);
    lefts.sort_unstable();
    lefts.dedup();
    assert_eq!(lefts.len(), 4);
}

#[test]
fn no_two_colours_of_the_palette_are_alike_in_a_simulated_red_green_blindness() {
    // Viénot, Brettel and Mollon (1999): deuteranopia, on linear light.
    let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
    let seen = |Colour(r, g, b): Colour| {
        let (r, g, b) = (linear(r), linear(g), linear(b));
        let red_green = 0.292_75 * r + 0.707_25 * g;
        let blue = -0.022_34 * r + 0.022_34 * g + b;
        [red_green.powf(1.0 / 2.2), blue.max(0.0).powf(1.0 / 2.2)]
    };
    for (i, a) in PALETTE.iter().enumerate() {
        for b in PALETTE.iter().skip(i + 1) {
            let (x, y) = (seen(*a), seen(*b));
            let distance = (x[0] - y[0]).hypot(x[1] - y[1]);
            assert!(distance > 0.08, "{a:?} and {b:?}: {distance}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_drawn_outside_of_the_figure(
        points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..40),
        range in prop::option::of((-10.0..10.0, 0.1..20.0)),
        steps in any::<bool>(),
    ) {
        let mut axis = Axis::new("x");
        if let Some((low, width)) = range {
            axis = axis.range(low, low + width);
        }
        let mut line = LineLayer::new("line", points.clone()).dash(Dash::Dashed).marks(PointShape::Triangle);
        if steps {
            line = line.steps();
        }
        let panel = Panel::new(axis, Axis::new("y").range(-1.0, 1.0))
            .with(line)
            .with(PointLayer::new("points", points.clone()))
            .with(BarLayer::new("bars", points.clone()))
            .with(Band::new("band", points.iter().map(|(x, y)| (*x, *y, y + 1.0)).collect()));
        match Figure::new("any").panel(panel).svg() {
            Ok(svg) => for value in coordinates(&svg) {
                prop_assert!((-10.0..=700.0).contains(&value), "{value}");
            },
            // Values so far apart that their distance is no number.
            Err(error) => prop_assert_eq!(error.code(), "EB-CHART-002"),
        }
    }
}

/// The value of an attribute of an element.
fn attribute(element: &str, name: &str) -> f64 {
    let from = element.split(&format!(" {name}=\"")).nth(1);
    let value = from.and_then(|from| from.split('"').next());
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(f64::NAN)
}

/// The elements of a kind, each with what follows it.
fn elements<'a>(svg: &'a str, kind: &str) -> Vec<&'a str> {
    svg.split(&format!("<{kind} ")).skip(1).collect()
}

#[test]
fn a_bars_label_stands_in_the_middle_of_the_bar() {
    let mut chart = Gantt::new(Axis::new("time [h]").range(0.0, 10.0), ["one", "two"]);
    let work = chart.kind("work", None);
    chart.add(0, work, Span::new(0.0, 4.0).label("first"));
    chart.add(1, work, Span::new(5.0, 9.0).label("second"));
    let svg = Figure::new("").panel(chart.panel()).svg().unwrap();
    // Each bar is drawn twice, filled and with its rim; the legend's sample is smaller.
    let rects = elements(&svg, "rect").into_iter();
    let bars: Vec<&str> = rects
        .filter(|rect| (100.0..1000.0).contains(&attribute(&format!(" {rect}"), "width")))
        .filter(|rect| attribute(&format!(" {rect}"), "height") < 50.0)
        .collect();
    assert_eq!(bars.len(), 4);
    for (label, bar) in [("first", bars[0]), ("second", bars[2])] {
        let texts = elements(&svg, "text").into_iter();
        let mut own = texts.filter(|text| text.contains(label));
        let text = format!(" {}", own.next().unwrap());
        let bar = format!(" {bar}");
        let middle = |at: &str, size: &str| attribute(&bar, at) + attribute(&bar, size) / 2.0;
        assert!(text.contains("text-anchor=\"middle\""), "{text}");
        assert!(
            (attribute(&text, "x") - middle("x", "width")).abs() <= 1.0,
            "{text} {bar}"
        );
        assert!(
            (attribute(&text, "y") - middle("y", "height")).abs() <= 1.0,
            "{text} {bar}"
        );
        assert!(text.contains("dy=\"0.5ex\""), "{text}");
    }
}

#[test]
fn the_legend_has_only_states_that_occur() {
    let mut chart = Gantt::new(Axis::new("time [h]"), ["one"]);
    let work = chart.kind("work", None);
    let away = chart.kind("hibernated", None);
    chart.add(0, work, Span::new(0.0, 4.0));
    let svg = Figure::new("").panel(chart.clone().panel()).svg().unwrap();
    assert!(svg.contains("work") && !svg.contains("hibernated"));
    chart.add(0, away, Span::new(4.0, 5.0).hollow());
    let svg = Figure::new("").panel(chart.panel()).svg().unwrap();
    assert!(svg.contains("hibernated"));
}

#[test]
fn panels_below_one_another_have_the_same_time_axis() {
    let at = |factor: f64| vec![(0.0, 0.0), (3.0, factor), (10.0, 2.0 * factor)];
    let panel = |factor: f64| {
        Panel::new(Axis::new("time"), Axis::new("value")).with(PointLayer::new("p", at(factor)))
    };
    let svg = Figure::new("")
        .panel(panel(1.0))
        .panel(panel(123_456_789.0))
        .columns(1)
        .svg()
        .unwrap();
    let circles = elements(&svg, "circle").into_iter();
    let mut places: Vec<(f64, f64)> = circles
        .map(|circle| format!(" {circle}"))
        .map(|circle| (attribute(&circle, "cx"), attribute(&circle, "cy")))
        .collect();
    // Without the samples of the legends, which stand left of the plots.
    places.retain(|(x, _)| *x > 60.0);
    let (below, above): (Vec<usize>, Vec<usize>) =
        (0..places.len()).partition(|at| places[*at].1 >= 380.0);
    assert_eq!((above.len(), below.len()), (3, 3), "{places:?}");
    for (&above, &below) in above.iter().zip(&below) {
        assert_eq!(places[above].0, places[below].0);
    }
}

#[test]
fn what_hides_in_a_name_is_seen() {
    let name = "a\u{202e}b\u{200b}\u{2028}\u{e0041}\u{7}<c>";
    let shown = "a\\u{202e}b\\u{200b}\\u{2028}\\u{e0041}\\u{7}&lt;c&gt;";
    let panel =
        Panel::new(Axis::new("time"), Axis::new(name)).with(LineLayer::new(name, vec![(0.0, 1.0)]));
    let svg = Figure::new(name).panel(panel).svg().unwrap();
    assert!(svg.matches(shown).count() >= 3, "{svg}");
}
